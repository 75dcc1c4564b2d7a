"""A program of GL whose numbers are written anew for other sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.gl.context.device import Device
from perframe.backends.gl.program.sequence import GLProgram, GLStep
from perframe.backends.gl.program.timers import StepTimers
from perframe.backends.gl.replay import CommandList, SizeAt


class ResizedProgram(GLProgram):
    """A program of steps whose numbers are places (`SizeAt`) in an array of numbers. Call `apply` before a run."""

    def __init__(
        self, device: Device, steps: Sequence[GLStep], make_timers: Callable[[Device, int], StepTimers]
    ) -> None:
        super().__init__(device, steps, make_timers)
        self._numbers: NDArray[np.int64] = np.zeros(0, np.int64)
        self._bytes = b""  # those of the numbers
        self._is_written = True  # whether the uniform buffer has the present numbers
        self._resolved: dict[int, GLStep] = {}  # steps with the present numbers
        found = [((step.offset + at) // 4, number.place) for step in steps for at, number in step.sizes]
        self._ints = self._data.view(np.int32)
        self._words, self._places = (np.array([pair[k] for pair in found], np.intp) for k in (0, 1))

    def apply(self, numbers: NDArray[np.int64]) -> None:
        """Take the numbers for some sizes. The next run writes them, inside the context."""
        if (given := numbers.tobytes()) != self._bytes:
            self._bytes, self._numbers = given, np.frombuffer(given, np.int64)
            self._is_written = False
            self._resolved.clear()

    def _write(self) -> None:
        if not self._is_written:
            self._ints[self._words] = self._numbers[self._places]
            if self._uniforms is not None:
                self._uniforms.write(self._data)
            self._is_written = True

    def run_rows(self, index: int, rows: tuple[int, int]) -> None:
        """Submit some rows of a step: the first, and how many."""
        with self._device.using():
            self._write()
            super().run_rows(index, rows)

    def _commands(self, begin: int, end: int, timers: StepTimers | None) -> CommandList:
        self._write()
        found = super()._commands(begin, end, timers)
        found.fill_sizes(self._numbers)
        return found

    def _step(self, index: int) -> GLStep:
        """A step with the present numbers."""
        if index not in self._resolved:
            self._resolved[index] = self._steps[index].with_numbers(self._number)
        return self._resolved[index]

    def _number(self, number: Any) -> Any:
        return int(self._numbers[number.place]) if isinstance(number, SizeAt) else number
