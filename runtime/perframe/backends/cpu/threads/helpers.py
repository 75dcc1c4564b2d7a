"""Helper threads: they run chunks of a program's steps while another thread walks the program, and sleep in between.

A process has one team, which helps one program at a time. A thread that walks another program meanwhile has no help,
which costs little, since all cores are busy then. PERFRAME_THREADS caps the number of threads for one program.
"""

from __future__ import annotations

import functools
import os
import threading
from contextlib import suppress

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels import team as words
from perframe.backends.cpu.threads.system import core_count, find_calls
from perframe.errors import InputError


@functools.cache
def thread_count() -> int:
    """The number of threads that may work on one program: one for each fast core, capped by PERFRAME_THREADS.

    Raises InputError where PERFRAME_THREADS is not a number of at least 1.
    """
    cores = core_count()
    given = os.environ.get("PERFRAME_THREADS", "")
    if not given:
        return cores
    if not given.isdecimal() or not int(given):
        raise InputError(f"PERFRAME_THREADS is a number of threads, at least 1, not {given!r}")
    return min(cores, int(given))


class Team:
    """The helpers of a process. A thread joins the team before it walks a program, and leaves it afterwards."""

    def __init__(self, helpers: int) -> None:
        self._words = np.zeros(words.WORDS + 8, np.int64)
        start = -self._words.ctypes.data % 64 // 8
        self._words = self._words[start : start + words.WORDS]
        self.address = int(self._words.ctypes.data)
        self._taken = threading.Lock()
        self._called = threading.Event()  # wakes the helpers where they cannot sleep in native code
        self._help = jit.function("walk.build_help")
        self._sleeps_natively = self._find_system()
        for index in range(helpers):
            with suppress(RuntimeError):  # the system allows no more threads, so that there are fewer helpers
                threading.Thread(target=self._serve, name=f"perframe-helper-{index}", daemon=True).start()

    def _find_system(self) -> bool:
        """Give native code the system's calls. Return whether helpers can sleep in native code, without the GIL."""
        calls = find_calls(self.address + 8 * words.RUNNING, self.address + 8 * words.ZERO)
        for at, call in ((words.GIVE_WAY, calls.give_way), (words.WAIT, calls.wait), (words.WAKE, calls.wake)):
            self._words[at : at + len(call)] = call
        return bool(calls.wait)

    def _serve(self) -> None:
        if self._sleeps_natively:
            self._help(*jit.arguments(self.address, 1, 0))  # does not return
        arguments = jit.arguments(self.address, 0, 0)
        while True:
            self._called.wait()
            self._help(*arguments)

    def join(self) -> bool:
        """Reserve the helpers for a program until `leave`. Return False if they help another program."""
        if not self._taken.acquire(blocking=False):
            return False
        if not self._sleeps_natively:
            self._called.set()
        return True

    def leave(self) -> None:
        """Release the helpers for other programs."""
        if not self._sleeps_natively:
            self._called.clear()
        self._taken.release()


_team: Team | None = None
_lock = threading.Lock()


def team() -> Team | None:
    """Return the team of this process, or None where only one thread may run. The first call makes the team."""
    global _team
    if _team is None and thread_count() > 1:
        with _lock:
            if _team is None:
                _team = Team(thread_count() - 1)
    return _team


def _forget() -> None:
    """Forget the team in a forked child, which has no helper threads and makes its own."""
    global _team, _lock
    _team, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
