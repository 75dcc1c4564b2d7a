"""What the system offers to threads: cores, and functions that native code calls to sleep, to wake others, and to give
way. They are found by name, so that an older system without them still works.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from perframe.c_functions import c_function, sysctl
from perframe.errors import InputError

_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}  # the system call's number on Linux
_FUTEX_WAIT, _FUTEX_WAKE, _EVERYONE = 128, 129, 1 << 30  # for threads of one process
_WORD_BYTES = 8
_FOR_EVER = 0xFFFFFFFF  # milliseconds, on Windows
_CORES = 0  # of GetLogicalProcessorInformationEx: one record for each core

Call = tuple[int, ...]
"""A C function's address and its arguments, five at most."""


class SystemCalls(NamedTuple):
    """The calls that native code makes: to sleep while a word is 0, to wake the sleepers, to give way to other threads.
    An empty one cannot be made on this system.
    """

    wait: Call
    wake: Call
    give_way: Call


def find_calls(word: int, zero: int) -> SystemCalls:
    """The system's calls for the word at an address. `zero` is the address of another word, which stays 0.

    With PERFRAME_HELPERS=event, helpers sleep in Python, as they do where the system has no such calls. Any other value
    raises InputError.
    """
    asked = os.environ.get("PERFRAME_HELPERS", "")
    if asked not in ("", "event"):
        raise InputError(f"PERFRAME_HELPERS is 'event', for helpers that sleep in Python, or not set; it is {asked!r}")
    finders: dict[str, Callable[[int, int], SystemCalls]] = {
        "linux": _of_linux,
        "darwin": _of_macos,
        "win32": _of_windows,
    }
    found = finders.get(sys.platform, _of_others)(word, zero)
    return found if found.wait and found.wake and not asked else SystemCalls((), (), found.give_way)


def _of_linux(word: int, zero: int) -> SystemCalls:
    number, syscall = _FUTEX.get(platform.machine()), _address("", "syscall")
    if number is None:
        return _of_others(word, zero)
    wait, wake = (syscall, number, word, _FUTEX_WAIT, 0, 0), (syscall, number, word, _FUTEX_WAKE, _EVERYONE, 0)
    return SystemCalls(wait, wake, _call("", "sched_yield"))


def _of_macos(word: int, zero: int) -> SystemCalls:
    """macOS has them since 14.4."""
    wait = _call("", "os_sync_wait_on_address", word, 0, _WORD_BYTES, 0)
    return SystemCalls(wait, _call("", "os_sync_wake_by_address_all", word, _WORD_BYTES, 0), _call("", "sched_yield"))


def _of_windows(word: int, zero: int) -> SystemCalls:
    library = "api-ms-win-core-synch-l1-2-0"
    wait = _call(library, "WaitOnAddress", word, zero, _WORD_BYTES, _FOR_EVER)
    return SystemCalls(wait, _call(library, "WakeByAddressAll", word), _call("kernel32", "SwitchToThread"))


def _of_others(word: int, zero: int) -> SystemCalls:
    return SystemCalls((), (), _call("", "sched_yield"))


def _call(library: str, name: str, *arguments: int) -> Call:
    address = _address(library, name)
    return (address, *arguments) if address else ()


def _address(library: str, name: str) -> int:
    """The address of a C function, or 0. Without a library's name it is one of the process itself."""
    function = c_function(library, name)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def core_count() -> int:
    """The cores that this process may use. Where cores are of two kinds, the slower ones do not count: a step that is
    cut into equal chunks would wait for them.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    every = os.cpu_count() or 1
    fast = {"darwin": _fast_of_macos, "win32": _fast_of_windows}.get(sys.platform, lambda: 0)()
    return min(every, fast) if fast else every


def _fast_of_macos() -> int:
    """The cores of the fastest kind, or 0 where there is one kind."""
    return sysctl("hw.perflevel0.logicalcpu")


def _fast_of_windows() -> int:
    """The logical processors of the fastest kind, or 0 where the system does not tell."""
    describe = c_function("kernel32", "GetLogicalProcessorInformationEx")
    if describe is None:
        return 0
    ask = partial(describe, ctypes.c_int(_CORES))
    size = ctypes.c_uint32()
    ask(None, ctypes.byref(size))  # fails, and tells the size
    records = ctypes.create_string_buffer(size.value)
    return count_fast(records.raw[: size.value]) if ask(records, ctypes.byref(size)) else 0


def count_fast(records: bytes) -> int:
    """Count the logical processors of the highest efficiency class, which is the fastest, in Windows' records of cores
    (SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX).
    """
    counts: dict[int, int] = {}
    at = 0
    while at < len(records):
        (size,), (kind,) = struct.unpack_from("<I", records, at + 4), struct.unpack_from("<B", records, at + 9)
        (groups,) = struct.unpack_from("<H", records, at + 30)
        masks = [struct.unpack_from("<Q", records, at + 32 + 16 * group)[0] for group in range(groups)]
        counts[kind] = counts.get(kind, 0) + sum(mask.bit_count() for mask in masks)
        at += size
    return counts[max(counts)] if counts else 0
