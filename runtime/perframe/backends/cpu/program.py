"""Steps and programs of the CPU: runs of native kernels that one call executes, and steps in Python between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from perframe.backends.cpu import helpers, jit
from perframe.backends.cpu.kernels import team
from perframe.tensor import HostStorage, Storage

THREADS = helpers.thread_count()  # that may work on one program

# nanoseconds. Measured on two cores: a job begins in another thread after 40 to 80 µs, a helper after 30 to 50
BRIEF = 60_000  # a program that takes less runs where it is submitted
LONG = 100_000  # one that takes more is worth waking the helpers for

CHUNKS_PER_THREAD = 16  # a thread that was held up delays the others by one chunk


class NativeStep:
    """A compiled kernel and the numbers that it reads: addresses of its operands first, then shapes and strides.

    Every kernel is called as `kernel(numbers, begin, end)` for a range of its `items`, independent pieces of its work.
    `grain` is the least number of items worth handing to another core; without it the step is not split.
    """

    def __init__(
        self,
        layer: str,
        kernel: int,
        operands: Sequence[Storage],
        numbers: Sequence[int],
        items: int,
        keep: Any = None,
        *,
        grain: int | None = None,
    ) -> None:
        self.layer, self.kernel, self.items, self._keep = layer, kernel, items, keep
        self.grain = max(1, items if grain is None else grain)
        self.operands = [operand for operand in operands if isinstance(operand, HostStorage)]
        self.numbers = np.array([*(operand.address for operand in self.operands), *numbers], np.int64)

    def replace(self, old: Storage, new: Storage) -> None:
        """Read `new` wherever `old` was read."""
        for index, operand in enumerate(self.operands):
            if operand is old and isinstance(new, HostStorage):
                self.operands[index] = new
                self.numbers[index] = new.address


class PythonStep:
    """A layer computed with NumPy."""

    def __init__(self, layer: str, operands: Sequence[Storage], function: Callable[[list[HostStorage]], None]) -> None:
        self.layer, self.function = layer, function
        self.operands = [operand for operand in operands if isinstance(operand, HostStorage)]

    def replace(self, old: Storage, new: Storage) -> None:
        """Read `new` wherever `old` was read."""
        self.operands = [
            new if operand is old and isinstance(new, HostStorage) else operand for operand in self.operands
        ]


CpuStep = NativeStep | PythonStep


class CpuProgram:
    """Steps in order. A run of native ones is a table, which native code walks without the GIL, with the helpers."""

    def __init__(self, steps: Sequence[CpuStep]) -> None:
        self._steps = list(steps)
        self._table = np.zeros((len(self._steps), team.ROW), np.int64)
        for row, step in zip(self._table, self._steps, strict=True):
            if isinstance(step, NativeStep):
                row[:] = step.kernel, step.numbers.ctypes.data, step.items, _chunk(step)
        self._splits = bool((self._table[:, team.CHUNK] < self._table[:, team.ITEMS]).any())
        self._native_until = _ends_of_native_runs(self._steps)
        self._program = np.zeros(team.PROGRAM, np.int64)
        self._program[team.TABLE] = self._table.ctypes.data
        self._walk = jit.function("walk") if self._table[:, team.KERNEL].any() else None
        self._arguments: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._readers: dict[int, list[CpuStep]] = {}
        for step in self._steps:
            for operand in step.operands:
                self._readers.setdefault(id(operand), []).append(step)
        self._nanoseconds: int | None = None
        self._wants_helpers = self._splits

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def is_brief(self) -> bool:
        """Whether its runs took less time than handing one to another thread."""
        return self._nanoseconds is not None and self._nanoseconds < BRIEF

    def replace(self, old: Storage, new: Storage) -> None:
        """Read `new` wherever `old` was read."""
        for step in self._readers.get(id(old), ()):
            step.replace(old, new)
        self._readers.setdefault(id(new), []).extend(self._readers.pop(id(old), ()))

    def run(self, begin: int, end: int) -> None:
        """Run the steps from `begin` up to `end` in this thread, and chunks of them in the helpers."""
        start = perf_counter_ns()
        at = begin
        while at < end:
            last = min(self._native_until[at], end)
            if last > at:
                self._run_native(at, last)
                at = last
            else:
                step = self._steps[at]
                assert isinstance(step, PythonStep)
                step.function(step.operands)
                at += 1
        if end - begin == len(self._steps):
            self._note(perf_counter_ns() - start)

    def _run_native(self, begin: int, end: int) -> None:
        assert self._walk is not None
        arguments = self._arguments.get((begin, end))
        if arguments is None:
            arguments = jit.arguments(self._program.ctypes.data, begin, end)
            self._arguments[begin, end] = arguments
        crew = helpers.team() if self._wants_helpers else None
        if crew is None or not crew.join():
            self._walk(*arguments)
            return
        try:
            self._program[team.TEAM] = crew.address
            self._walk(*arguments)
        finally:
            self._program[team.TEAM] = 0
            crew.leave()

    def _note(self, elapsed: int) -> None:
        """Follow what a run takes. One that was held up moves the figure by a quarter at most."""
        known = self._nanoseconds
        self._nanoseconds = elapsed if known is None else known + (min(elapsed, 2 * known) - known) // 4
        if self._splits and (self._nanoseconds > LONG or self._nanoseconds < LONG // 2):
            self._wants_helpers = self._nanoseconds > LONG  # in between, as before: helpers make it shorter


def _chunk(step: NativeStep) -> int:
    """How many items a thread takes at once: whole grains, as many as keep all threads busy to the end."""
    if THREADS == 1 or step.items <= step.grain:
        return step.items
    grains = -(-step.items // (step.grain * THREADS * CHUNKS_PER_THREAD))
    return min(step.items, grains * step.grain)


def _ends_of_native_runs(steps: Sequence[CpuStep]) -> list[int]:
    """For each step the end of the run of native ones that it begins; its own index where it is none."""
    ends = list(range(len(steps) + 1))
    for index in reversed(range(len(steps))):
        if isinstance(steps[index], NativeStep):
            native_next = index + 1 < len(steps) and isinstance(steps[index + 1], NativeStep)
            ends[index] = ends[index + 1] if native_next else index + 1
    return ends
