"""The program of a GL plan: bound steps, the uniform buffer of their numbers, and the lists that replay them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self

import moderngl
import numpy as np
from numpy.typing import NDArray

from perframe.backends.gl.context.device import Device
from perframe.backends.gl.program.timers import StepTimers
from perframe.backends.gl.replay import CommandList
from perframe.backends.protocol import Step, TimedRun
from perframe.errors import BackendError
from perframe.tensor import Storage
from perframe.tensor.memory import counted_bytes

MOST_LISTS = 128  # of a program; the oldest goes


class GLStep(Step, Protocol):
    """A bound step. Its program sets its offset in the uniform buffer."""

    block: bytes
    offset: int

    @property
    def sizes(self) -> Sequence[tuple[int, Any]]:
        """Byte of the block, and number, for each of the numbers that depend on sizes."""

    def with_numbers(self, function: Callable[[Any], Any]) -> Self:
        """Return the step with other numbers in the place of those that may depend on sizes."""

    def record(self, commands: CommandList, uniforms: int, rows: tuple[int, int] | None = None) -> None:
        """Record its bindings and launch, or some rows: the first, and how many. `uniforms` is a buffer's GL name."""

    @property
    def rows(self) -> int:
        """The number of parts that it may be launched in."""


class GLProgram:
    """Bound steps, one uniform buffer with all their numbers, and the command lists that replay them."""

    nanoseconds: int | None = None  # of a whole run: the GPU runs beside the CPU, and planning does not wait for it
    is_brief = is_provisional = False

    def __init__(
        self, device: Device, steps: Sequence[GLStep], make_timers: Callable[[Device, int], StepTimers]
    ) -> None:
        self._timers: StepTimers | None = None
        self._make_timers = make_timers
        self._device, self._steps = device, list(steps)
        self._bound: dict[Storage, Storage] = {}  # what stands in for the plan's storages
        self._lists: dict[tuple[int, int, bool], CommandList] = {}  # by the range of their steps, and whether timed
        self._stamps: dict[CommandList, NDArray[Any]] = {}  # the rows that write a stamp
        alignment = max(16, device.limits["uniform_alignment"])
        data = bytearray()
        for step in steps:
            step.offset = len(data)
            data += step.block + bytes(-len(step.block) % alignment)
        self._uniforms: moderngl.Buffer | None = None
        self._data = np.frombuffer(data, np.uint8)
        with device.using():
            device.programs.settle()
            if data:
                self._uniforms = device.buffer(len(data))
                self._uniforms.write(data)

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def held_bytes(self) -> int:
        """The bytes of the uniform buffer."""
        return counted_bytes(self._uniforms)

    def replace(self, planned: Storage, new: Storage) -> None:
        """Use `new` instead of the plan's storage `planned`. The context is current, and its state guarded."""
        self._bound[planned] = new
        for commands in self._lists.values():
            commands.replace(planned, new)

    def run(self, begin: int, end: int) -> None:
        """Submit the steps from `begin` up to `end`."""
        with self._device.using():
            timers = self._timers
            places = None if timers is None else timers.begin(begin, end - begin + 1)
            commands = self._commands(begin, end, None if places is None else timers)
            if timers is not None and places is not None:
                commands.fill(self._stamps[commands], timers.word, places)
            if self._device.mapped and commands.uses(self._device.mapped):
                raise BackendError(
                    "a run needs a tensor that CUDA has mapped, and GL must not use it: schedule the run after the "
                    "block of `with tensor.on_cuda()`"
                )
            commands.run()

    def rows(self, index: int) -> int:
        """The number of parts in which a step may run."""
        return self._step(index).rows

    def _step(self, index: int) -> GLStep:
        return self._steps[index]

    def run_rows(self, index: int, rows: tuple[int, int]) -> None:
        """Submit some rows of a step: the first, and how many."""
        with self._device.using():
            commands = CommandList(self._device.gl, self._bound)
            self._step(index).record(commands, self._uniforms.glo if self._uniforms is not None else 0, rows)
            commands.finish().run()

    def _commands(self, begin: int, end: int, timers: StepTimers | None) -> CommandList:
        """The commands of these steps. They rely on no state that other commands have left behind. With `timers`, they
        write a stamp before each step and after the last; a run fills in where.
        """
        key = begin, end, timers is not None
        found = self._lists.get(key)
        if found is None:
            if len(self._lists) >= MOST_LISTS:  # a budget cuts a run elsewhere in each frame
                self._stamps.pop(self._lists.pop(next(iter(self._lists))), None)
            found = CommandList(self._device.gl, self._bound)
            uniforms = self._uniforms.glo if self._uniforms is not None else 0
            rows = []
            for step in self._steps[begin:end]:
                if timers is not None:
                    rows.append(len(found))
                    found.call(*timers.call)
                step.record(found, uniforms)
            if timers is not None:
                rows.append(len(found))
                found.call(*timers.call)
                self._stamps[found] = np.array(rows)
            self._lists[key] = found.finish()
            found.moves = self._device.moves
        found.refresh(self._device.moves)
        return found

    def record_ahead(self) -> Iterator[None]:
        """Record the commands of a whole run without times, a step at a time. They are dropped if a storage moves."""
        key, moves, bound = (0, len(self._steps), False), self._device.moves, dict(self._bound)
        found = CommandList(self._device.gl, self._bound)
        for step in self._steps:
            with self._device.using():
                step.record(found, self._uniforms.glo if self._uniforms is not None else 0)
            yield
        if moves == self._device.moves and bound == self._bound and key not in self._lists:
            self._lists[key] = found.finish()
            found.moves = moves

    def time_steps(self, on: bool) -> None:
        """Let the GPU time the steps of each run from now on, or no longer."""
        if on is (self._timers is None):
            with self._device.using():
                self._timers = self._make_timers(self._device, len(self._steps)) if on else None

    def step_seconds(self, repeats: int) -> list[float] | None:
        """The shortest time of each step on the GPU: of `repeats` more runs or, without repeats, of the timed ones.
        None if none was. Blocks if there are repeats.
        """
        timed = self._timers
        if repeats:
            self.time_steps(True)
            for _ in range(repeats):
                self.run(0, len(self._steps))
        if self._timers is None:
            return None
        with self._device.using():
            found = self._timers.shortest(wait=repeats > 0)
        self._timers = self._timers if timed else None
        return found if all(map(math.isfinite, found)) else None

    def take_runs(self, wait: bool = False) -> list[TimedRun]:
        """Return the timed runs that the GPU has reported since the last call. With `wait`, block for all."""
        if self._timers is None:
            return []
        with self._device.using():
            return self._timers.take(wait)

    def __del__(self) -> None:
        if self._uniforms is not None:
            self._device.drop(self._uniforms)
