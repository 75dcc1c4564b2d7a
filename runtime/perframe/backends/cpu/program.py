"""Steps and programs of the CPU: runs of native kernels that one call executes, and steps in Python between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu import jit
from perframe.tensor import HostStorage, Storage

Array = NDArray[Any]


class NativeStep:
    """A compiled kernel and the numbers that it reads: addresses of its operands first, then shapes and strides.

    Every kernel is called as `kernel(numbers, begin, end)` for a range of its `items`, independent pieces of its work.
    """

    def __init__(
        self, layer: str, kernel: int, operands: Sequence[Storage], numbers: Sequence[int], items: int, keep: Any = None
    ) -> None:
        self.layer, self.kernel, self.items, self._keep = layer, kernel, items, keep
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
    """Steps in order. A run of native ones is a table of (kernel, numbers, items), which native code walks without
    the GIL.
    """

    def __init__(self, steps: Sequence[CpuStep]) -> None:
        self._steps = list(steps)
        rows = [
            (step.kernel, step.numbers.ctypes.data, step.items) if isinstance(step, NativeStep) else (0, 0, 0)
            for step in steps
        ]
        self._table = np.array(rows, np.int64).reshape(-1, 3)
        self._native = [isinstance(step, NativeStep) for step in steps]
        self._walk = jit.walker() if any(self._native) else None

    def __len__(self) -> int:
        return len(self._steps)

    def replace(self, old: Storage, new: Storage) -> None:
        """Read `new` wherever `old` was read."""
        for step in self._steps:
            step.replace(old, new)

    def run(self, begin: int, end: int) -> None:
        """Run the steps from `begin` up to `end` in this thread."""
        at = begin
        while at < end:
            step = self._steps[at]
            if isinstance(step, PythonStep):
                step.function(step.operands)
                at += 1
                continue
            last = at
            while last < end and self._native[last]:
                last += 1
            assert self._walk is not None
            self._walk(self._table.ctypes.data, at, last)
            at = last
