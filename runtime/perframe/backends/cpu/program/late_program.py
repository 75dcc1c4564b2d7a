"""A program some of whose kernels are still being compiled. NumPy computes the layers whose kernels are missing.

When all kernels are compiled, a thread makes the native program. The next run that begins uses it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.program.arena import Arena
from perframe.backends.cpu.program.program import CpuProgram, CpuStep, NativeStep, PythonStep, Rows
from perframe.backends.cpu.threads import helpers
from perframe.backends.protocol import TimedRun
from perframe.ir.sizes.size import plain
from perframe.tensor import HostStorage
from perframe.tensor.protocol import Storage
from perframe.tensor.storage import address_of


class LateProgram:
    """Runs layers by their definitions until all kernels are compiled, and is a `CpuProgram` from then on.

    Runs follow each other, and no operand is replaced during a run.
    """

    def __init__(self, steps: Sequence[CpuStep], arena: Arena, waits: bool) -> None:
        """`waits` says whether the first run waits for the kernels."""
        self.steps, self._arena, self._waits = list(steps), arena, waits
        self._compiled: CpuProgram | None = None
        self._interpreted: CpuProgram | None = None
        self._replaced: dict[int, tuple[Storage, Storage]] = {}
        self.times_steps = False
        self._prepare()

    held_bytes = 0

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def is_provisional(self) -> bool:
        """Whether NumPy may still compute layers, so that later runs take less time."""
        return self._compiled is None

    @property
    def nanoseconds(self) -> int | None:
        """The time of a run of kernels; None before the first."""
        return None if self._compiled is None else self._compiled.nanoseconds

    @property
    def is_brief(self) -> bool:
        """Whether a run takes less time than handing it to another thread."""
        return self._compiled is not None and self._compiled.is_brief

    def rows(self, index: int) -> int:
        """The number of a step's chunks; 1 while kernels are compiling."""
        return 1 if self._compiled is None else self._compiled.rows(index)

    def replace(self, planned: Storage, new: Storage) -> None:
        """Make all steps use `new` instead of the planned storage."""
        if self._compiled is not None:
            self._compiled.replace(planned, new)
            return
        self._replaced[id(planned)] = planned, new
        if self._interpreted is not None:
            self._interpreted.replace(planned, new)

    def lend(self, planned: Storage, array: NDArray[Any]) -> None:
        """Make all steps read an array until the planned storage is replaced again. Only a brief run is lent arrays."""
        assert self._compiled is not None, "it has run"
        self._compiled.lend(planned, array)

    def run(self, begin: int, end: int, away: bool = False, rows: Rows | None = None) -> None:
        """Run some steps, all with NumPy or all with kernels. Raises BackendError for one that does not compile."""
        if self._compiled is None and begin == 0:
            self._exchange()
        if self._compiled is not None:
            self._compiled.times_steps = self.times_steps
            self._compiled.run(begin, end, away, rows)
            return
        if self._interpreted is None:
            self._interpreted = self._bound(CpuProgram.of(_interpreted(self.steps), self._arena))
        self._interpreted.run(begin, end, away, rows)

    def settle(self) -> None:
        """Wait for the kernels. No run may be under way. Raises BackendError for one that cannot be compiled."""
        if self._compiled is None:
            self._exchange(wait=True)

    def step_seconds(self, repeats: int) -> list[float] | None:
        """The shortest time of each step. Repeats wait for the kernels."""
        if repeats:
            self.settle()
        return None if self._compiled is None else self._compiled.step_seconds(repeats)

    def take_runs(self, wait: bool = False) -> list[TimedRun]:
        """Return the timed runs that have ended since the last call."""
        return [] if self._compiled is None else self._compiled.take_runs(wait)

    # --- the exchange ---

    def _prepare(self) -> None:
        """Begin to make the native program in a thread, which does not keep this program alive."""
        kernels = [kernel for step in self.steps if isinstance(step, NativeStep) for kernel in step.missing]
        self._preparation = made = Preparation(kernels, weakref.ref(self))
        self._process = os.getpid()
        made.begin()

    def made(self) -> CpuProgram:
        """Return the native program, with the planned operands."""
        return CpuProgram.of(self.steps, self._arena)

    def _exchange(self, wait: bool = False) -> None:
        """Use the native program from now on, if it is ready."""
        if self._process != os.getpid():  # forked since: the thread is the parent's
            self._prepare()
        made = self._preparation.result(wait or self._waits)
        if made is not None:
            self._compiled = self._bound(made)
            self._interpreted, self._replaced = None, {}

    def _bound(self, program: CpuProgram) -> CpuProgram:
        for planned, new in self._replaced.values():
            program.replace(planned, new)
        return program


_preparing: set[Preparation] = set()  # those whose threads run

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_preparing.clear)


def settle() -> None:
    """Wait until the programs whose kernels are compiled are ready."""
    for preparation in list(_preparing):
        preparation.wait()


class Preparation:
    """Makes a native program when its kernels are compiled, in a thread."""

    def __init__(self, kernels: Sequence[int], program: weakref.ref[LateProgram]) -> None:
        self._kernels, self._program = kernels, program
        self._done = threading.Event()
        self._made: CpuProgram | None = None
        self._error: Exception | None = None

    def begin(self) -> None:
        """Start the thread. Where the system allows no more threads, the first run waits here for the kernels."""
        _preparing.add(self)
        try:
            threading.Thread(target=self._make, name="perframe-exchange", daemon=True).start()
        except RuntimeError:
            self._make()

    def _make(self) -> None:
        try:
            for kernel in self._kernels:
                int(kernel)  # waits, and links
            helpers.team()  # starts the helper threads here rather than within a frame
            jit.function("walk")
            program = self._program()
            if program is not None:
                self._made = program.made()
        except Exception as error:
            self._error = error
        finally:
            self._done.set()
            _preparing.discard(self)

    def wait(self) -> None:
        """Wait for the program, or for the error of a compiler."""
        self._done.wait()

    def result(self, wait: bool) -> CpuProgram | None:
        """Return the native program, or None if it is not ready. Raises the error of the compiler."""
        if wait:
            self._done.wait()
        if not self._done.is_set():
            return None
        if self._error is not None:
            raise self._error
        return self._made


def _interpreted(steps: Sequence[CpuStep]) -> list[CpuStep]:
    """Return as many steps. Where a layer lacks kernels, the first of its native steps stands for all of them, in
    Python. The other layers run as ever, once the kernel that walks a program is there.
    """
    walks = jit.is_compiled(jit.kernel("walk"))
    made: list[CpuStep] = []
    for index, step in enumerate(steps):
        if index < len(made):
            continue
        if isinstance(step, PythonStep):
            made.append(PythonStep(step.layer, step.operands, step.function))
        else:
            natives = [step] if step.definition is None else steps[index : index + step.definition[1]]
            if walks and not any(isinstance(native, NativeStep) and native.missing for native in natives):
                made += natives
                continue
            made.append(_in_python([native for native in natives if isinstance(native, NativeStep)]))
            made += [PythonStep(step.layer, (), _nothing)] * (len(natives) - 1)
    return made


def _in_python(natives: Sequence[NativeStep]) -> PythonStep:
    """Make one step of a layer's native steps. It calls their kernels if all are compiled, and else NumPy computes the
    layer. A layer that takes NumPy longer than a compiler waits for its kernels.
    """
    definition = None if natives[0].definition is None else natives[0].definition[0]
    own = [] if definition is None else definition.storages
    operands = [*own, *(operand for native in natives for operand in native.operands)]

    def run(bound: list[HostStorage]) -> None:
        missing = [kernel for native in natives for kernel in native.missing]
        if definition is not None and missing and not definition.is_long:
            definition.run(bound[: len(own)])
            return
        for kernel in missing:
            jit.hurry(kernel)
        rest = iter(bound[len(own) :])
        for native in natives:
            _call(native, [next(rest) for _ in native.operands])

    return PythonStep(natives[0].layer, operands, run)


def _call(step: NativeStep, operands: Sequence[HostStorage]) -> None:
    """Run all items of a native step in this thread."""
    addresses = [operand.address for operand in operands]
    numbers = np.array([*addresses, *map(plain, step.numbers)], np.int64)
    jit.call(int(step.kernel), address_of(numbers), 0, plain(step.items))
    if step.check is not None:
        step.check()


def _nothing(operands: list[HostStorage]) -> None:
    """Stand in for a native step whose layer has run."""
