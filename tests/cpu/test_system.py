"""What other systems offer to threads, as far as it can be had here: their functions are stood in for."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cpu.test_program import Chain
from perframe import c_functions
from perframe.backends.cpu.kernels import team as words
from perframe.backends.cpu.program import program
from perframe.backends.cpu.threads import helpers, system
from perframe.errors import InputError

_WORD = ctypes.c_int64
_kept: list[Any] = []  # helpers sleep in these functions until the process ends


@pytest.fixture(autouse=True)
def without_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests choose how helpers sleep, in a suite that runs with PERFRAME_HELPERS=event too."""
    monkeypatch.delenv("PERFRAME_HELPERS", raising=False)


class Sleepers:
    """Sleeps and wakes as a system does, and counts."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.slept = self.woken = self.gave_way = 0

    def sleep(self, address: int, value: int, size: int) -> int:
        assert size == 8
        with self.changed:
            self.slept += 1
            while _WORD.from_address(address).value == value:
                self.changed.wait()
        return 0

    def wake(self, address: int) -> int:
        with self.changed:
            self.woken += 1
            self.changed.notify_all()
        return 0

    def give_way(self) -> int:
        self.gave_way += 1
        return 1

    def of_windows(self) -> dict[str, Any]:
        def wait_on_address(address: int, compared: int, size: int, milliseconds: int) -> int:
            assert milliseconds == 0xFFFFFFFF
            return self.sleep(address, _WORD.from_address(compared).value, size)

        kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32)
        return {
            "WaitOnAddress": ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(wait_on_address),
            "WakeByAddressAll": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self.wake),
            "SwitchToThread": ctypes.CFUNCTYPE(ctypes.c_int)(self.give_way),
        }

    def of_macos(self) -> dict[str, Any]:
        def wait(address: int, value: int, size: int, flags: int) -> int:
            assert flags == 0
            return self.sleep(address, value, size)

        def wake(address: int, size: int, flags: int) -> int:
            assert (size, flags) == (8, 0)
            return self.wake(address)

        kinds = (ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint32)
        return {
            "os_sync_wait_on_address": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *kinds)(wait),
            "os_sync_wake_by_address_all": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *kinds[1:])(wake),
            "sched_yield": ctypes.CFUNCTYPE(ctypes.c_int)(self.give_way),
        }


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, functions: dict[str, Any]) -> None:
    """Let the module see another system that has these functions."""
    monkeypatch.setattr(system, "sys", SimpleNamespace(platform=name))
    for module in (system, c_functions):
        monkeypatch.setattr(module, "c_function", lambda library, function: functions.get(function))
    _kept.append(functions)


@pytest.mark.parametrize(("name", "functions"), [("win32", Sleepers.of_windows), ("darwin", Sleepers.of_macos)])
def test_helpers_sleep_in_the_functions_of_other_systems(
    name: str, functions: Callable[[Sleepers], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleepers = Sleepers()
    pretend(monkeypatch, name, functions(sleepers))
    team = helpers.Team(2)
    assert team._sleeps_natively
    monkeypatch.setattr(helpers, "_team", team)
    monkeypatch.setattr(program, "thread_count", lambda: 3)
    monkeypatch.setattr(program, "LONG", 0)
    chain = Chain(3, 20, 1)
    expected = chain.expected()
    for _ in range(200):
        assert (chain.run() == expected).all()
    with sleepers.changed:
        assert sleepers.changed.wait_for(lambda: sleepers.slept >= 2, 20)
    chain.run()
    assert sleepers.woken > 0


@pytest.mark.parametrize(
    ("name", "machine"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "loongarch64"), ("freebsd14", "amd64")]
)
def test_systems_without_such_functions(name: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS before 14.4, Windows before 8, processors whose number we do not know: helpers wait for an event."""
    pretend(monkeypatch, name, {})
    monkeypatch.setattr(system, "platform", SimpleNamespace(machine=lambda: machine))
    assert system.find_calls(8, 16) == ((), (), ())
    team = helpers.Team(0)
    assert not team._sleeps_natively and not team._words[words.GIVE_WAY :].any()


def test_a_setting_lets_helpers_sleep_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.find_calls(8, 16).wait
    monkeypatch.setenv("PERFRAME_HELPERS", "event")
    calls = system.find_calls(8, 16)
    assert (calls.wait, calls.wake) == ((), ()) and calls.give_way
    monkeypatch.setenv("PERFRAME_HELPERS", "often")
    with pytest.raises(InputError, match=r"PERFRAME_HELPERS.*'often'"):
        system.find_calls(8, 16)


def record(kind: int, *masks: int) -> bytes:
    """A core as GetLogicalProcessorInformationEx describes it: of an efficiency class, with a mask for each group."""
    groups = b"".join(struct.pack("<QH6x", mask, group) for group, mask in enumerate(masks))
    return struct.pack("<IIBB20xH", 0, 32 + len(groups), 1, kind, len(masks)) + groups


def test_fast_cores_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    records = record(1, 0b11) + record(0, 0b10000) + record(1, 0b1100) + record(0, 0b100000)
    assert system.count_fast(records) == 4
    assert system.count_fast(record(0, 0b11, 0b1) + record(0, 0b1100)) == 5
    assert system.count_fast(b"") == 0

    def describe(relation: Any, buffer: Any, size: Any) -> int:
        assert relation.value == 0
        size._obj.value = len(records)
        if buffer is None:
            return 0
        buffer[: len(records)] = records
        return 1

    pretend(monkeypatch, "win32", {"GetLogicalProcessorInformationEx": describe})
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert system.core_count() == 4
    pretend(monkeypatch, "win32", {})
    assert system.core_count() == 6


def test_fast_cores_of_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    def sysctlbyname(name: bytes, value: Any, size: Any, new: None, new_size: Any) -> int:
        if name != b"hw.perflevel0.logicalcpu":
            return -1
        value._obj.value = 4
        return 0

    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    pretend(monkeypatch, "darwin", {"sysctlbyname": sysctlbyname})
    assert system.core_count() == 4
    pretend(monkeypatch, "darwin", {"sysctlbyname": lambda *_: -1})  # one of Intel's
    assert system.core_count() == 8
