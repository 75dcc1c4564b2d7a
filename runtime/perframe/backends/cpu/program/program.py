"""Steps and programs of the CPU: runs of native kernels that one call executes, and steps in Python between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels import team
from perframe.backends.cpu.program.arena import Arena
from perframe.backends.cpu.program.bindings import Addresses, Bindings, Ints
from perframe.backends.cpu.program.step_clock import StepClock
from perframe.backends.cpu.threads import helpers
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.backends.protocol import TimedRun
from perframe.ir.sizes.size import at_least, at_most, plain
from perframe.safety.records import dataclass
from perframe.tensor import HostStorage, Storage
from perframe.tensor.storage import address_of

# Limits in nanoseconds. Measured on two cores: a job begins in another thread after 40 to 80 µs, and takes half as long
# again there, since the other core has other caches; a helper begins after 30 to 50 µs.
BRIEF = 200_000  # a shorter program runs in the thread that submits it: handing it over takes 20 to 90 µs of CPU time
LONG = 100_000  # a longer program is worth waking the helpers for

CHUNKS_PER_THREAD = 16  # a thread that is held up delays the others by one chunk


class Table:
    """An array that a kernel reads, and that depends on sizes: `make(*arguments)`. Some arguments may be followed."""

    def __init__(self, make: Callable[..., NDArray[Any]], arguments: Sequence[Any]) -> None:
        self.make, self.arguments = make, arguments
        self.array = make(*map(plain, arguments))


class NativeStep:
    """A compiled kernel and the numbers that it reads after the addresses of its operands: shapes and strides.

    Every kernel is called as `kernel(numbers, begin, end)` for a range of its `items`, independent units of work.
    `grain` is the least number of items worth handing to another core; without it the step is not split. `check` is
    called after a run, and raises if the kernel has reported an error. The addresses of `tables` are the first of the
    numbers.
    """

    __slots__ = ("_keep", "check", "definition", "grain", "items", "kernel", "layer", "numbers", "operands", "tables")

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
        check: Callable[[], None] | None = None,
        tables: Sequence[Table] = (),
    ) -> None:
        self.layer, self.kernel, self.items, self._keep, self.check = layer, kernel, items, keep, check
        self.grain = items if grain is None else grain  # 1 where it is less
        self.operands = [operand for operand in operands if isinstance(operand, HostStorage)]
        self.numbers = [*(address_of(table.array) for table in tables), *numbers] if tables else numbers
        self.tables = tables
        # on the first step of a layer with a kernel that is compiling: the layer in NumPy, and its number of steps
        self.definition: tuple[Any, int] | None = None

    @property
    def missing(self) -> list[int]:
        """The kernels that are still being compiled: its own, and those that it calls, whose addresses are numbers."""
        if jit.all_compiled():
            return []
        return [kernel for kernel in (self.kernel, *self.numbers) if not jit.is_compiled(kernel)]

    @property
    def chunk(self) -> int:
        """The items that a thread takes at once: whole grains, few enough to keep all threads busy to the end."""
        threads, grain = thread_count(), at_least(self.grain, 1)
        return at_most(-(-self.items // (grain * threads * CHUNKS_PER_THREAD)) * grain, self.items)

    def on(self, layer: str, operands: Sequence[Storage]) -> NativeStep:
        """Return this step for another layer on other operands."""
        numbers = self.numbers[len(self.tables) :]
        return NativeStep(
            layer, self.kernel, operands, numbers, self.items, self._keep, grain=self.grain, tables=self.tables
        )


class PythonStep:
    """A layer computed with NumPy. `again` makes the step for other shapes and storages of its operands."""

    numbers = None

    def __init__(
        self,
        layer: str,
        operands: Sequence[Storage],
        function: Callable[[list[HostStorage]], None],
        shapes: Sequence[Sequence[int]] = (),
        again: Callable[[Sequence[Sequence[int]], Sequence[Storage]], PythonStep] | None = None,
    ) -> None:
        self.layer, self.function, self.shapes, self.again = layer, function, shapes, again
        self.operands = [operand for operand in operands if isinstance(operand, HostStorage)]


CpuStep = NativeStep | PythonStep
Rows = tuple[int, int]  # the first, and how many


def row_begin(index: int) -> int:
    """The index of the word where a step's row begins. All numbers begin where a row after the last would."""
    return team.PROGRAM + team.ROW * index


def table_of(words: Ints, count: int) -> Ints:
    """Return the table in a program's words, with a row for each of `count` steps. See kernels/team.py for a row."""
    return words[row_begin(0) : row_begin(count)].reshape(-1, team.ROW)


@dataclass(frozen=True)
class ProgramLayout:
    """What programs of equal steps share: for each step the end of the native steps that begin with it, the checks of
    steps by their numbers, and the function that walks the table.
    """

    native_until: Sequence[int]
    checks: Sequence[tuple[int, Callable[[], None]]]
    walk: Callable[..., Any] | None


class CpuProgram:
    """Steps in order. Native code walks the table of consecutive native steps without the GIL, with the helpers.

    `words` hold everything that native code reads: the program's own words (see kernels/team.py), the table, and the
    steps' numbers.
    """

    def __init__(
        self,
        steps: Sequence[CpuStep],
        layout: ProgramLayout,
        words: Ints,
        bindings: Bindings,
        splits: bool,
        memories: Sequence[NDArray[Any]] = (),
    ) -> None:
        """`memories` keeps alive the memory to which the words refer."""
        self.steps, self.layout, self.words, self.bindings, self._memories = steps, layout, words, bindings, memories
        self._native_until, self._checks, self._walk = layout.native_until, layout.checks, layout.walk
        self._address, self._arguments = address_of(words), dict[tuple[int, int], tuple[Any, ...]]()
        self._begin(splits)

    @classmethod
    def of(cls, steps: Sequence[CpuStep], arena: Arena | None = None, known: Addresses | None = None) -> CpuProgram:
        """Make a program of steps. `known` are their addresses, if the caller has them already."""
        steps, known = list(steps), known or Addresses.of(steps)
        natives = [(index, step) for index, step in enumerate(steps) if isinstance(step, NativeStep)]
        checks = [(index, step.check) for index, step in natives if step.check is not None]
        layout = ProgramLayout(_ends_of_native_runs(steps), checks, jit.function("walk") if natives else None)
        numbers = row_begin(len(steps))
        words = np.zeros(numbers + len(known.numbers), np.int64)
        address, table = address_of(words), table_of(words, len(steps))
        words[team.TABLE] = address + 8 * row_begin(0)
        for index, step in natives:
            row = table[index]
            row[team.KERNEL], row[team.ITEMS], row[team.CHUNK] = step.kernel, plain(step.items), plain(step.chunk)
        table[:, team.NUMBERS] = np.array(known.starts, np.int64) * 8 + (address + 8 * numbers)
        words[numbers:] = [plain(number) for number in known.numbers]
        bindings = Bindings(arena, known.size, known, words[numbers:], known.by_whole())
        bindings.attach(steps)
        return cls(steps, layout, words, bindings, bool((table[:, team.CHUNK] < table[:, team.ITEMS]).any()))

    def _begin(self, splits: bool) -> None:
        """Begin without a measured run. `splits` says whether any step is for more than one thread."""
        self.nanoseconds: int | None = None
        self._splits = self._wants_helpers = splits and thread_count() > 1
        self._helped: int | None = None  # the time of a run with helpers, once runs without them were tried
        self.times_steps = False  # what the backend wants; the next run does it
        self._clock: StepClock | None = None
        self.words[team.TICKS] = 0

    def resize(self, splits: bool, memories: Sequence[NDArray[Any]]) -> None:
        """Note that the words are those of other sizes, and refer to this memory."""
        self._splits, self._memories = splits, memories
        self._wants_helpers = splits and self._wants_helpers

    held_bytes = 0

    def __len__(self) -> int:
        return len(self.steps)

    is_provisional = False

    @property
    def is_brief(self) -> bool:
        """Whether a run takes less time than handing it to another thread."""
        return self.nanoseconds is not None and self.nanoseconds < BRIEF

    def rows(self, index: int) -> int:
        """The number of a step's chunks. A step in Python has one."""
        row = table_of(self.words, len(self.steps))[index]
        return int(-(-row[team.ITEMS] // max(1, row[team.CHUNK])) or 1)

    def replace(self, planned: Storage, new: Storage) -> None:
        """Make all steps use `new` instead of the planned storage."""
        if isinstance(planned, HostStorage) and isinstance(new, HostStorage):
            self.bindings.replace(planned, new)

    def lend(self, planned: Storage, array: NDArray[Any]) -> None:
        """Make all steps read an array, contiguous and aligned, until the planned storage is replaced again."""
        if isinstance(planned, HostStorage):
            self.bindings.lend(planned, array)

    def run(self, begin: int, end: int, away: bool = False, rows: Rows | None = None) -> None:
        """Run the steps from `begin` up to `end` in this thread, while helpers run chunks of them. `away` says that
        another thread submitted the steps. `rows` selects chunks of one step: the first, and how many.
        """
        if rows is not None:
            self._run_rows(begin, rows)
            return
        start = perf_counter_ns()
        if self.times_steps is (self._clock is None):
            self._clock = StepClock(len(self.steps)) if self.times_steps else None
            self.words[team.TICKS] = 0
        clock = self._clock
        if clock is not None:
            self.words[team.TICKS] = clock.begin(begin, end)
        block = self.bindings.follow_arena()  # keeps the block until the run ends
        at = begin
        while at < end:
            last = self._native_until[at]
            if last > at:
                if last > end:
                    last = end
                self._run_native(at, last)
                if self._checks:
                    self._check(at, last)
                if clock is not None:
                    clock.note(at, last, native=True)
                at = last
            else:
                step = self.steps[at]
                assert isinstance(step, PythonStep)
                step.function(step.operands)
                if clock is not None:
                    clock.note(at, at + 1, native=False)
                at += 1
        del block
        if clock is not None:
            clock.end()
        if end - begin == len(self.steps):
            elapsed = perf_counter_ns() - start
            self._note(elapsed * 2 // 3 if away else elapsed)

    def _run_rows(self, index: int, rows: Rows) -> None:
        """Run some chunks of a step: meanwhile its row in the table has no others."""
        row = table_of(self.words, len(self.steps))[index]
        items, first = int(row[team.ITEMS]), rows[0] * int(row[team.CHUNK])
        row[team.FIRST], row[team.ITEMS] = first, min(items - first, rows[1] * int(row[team.CHUNK]))
        ticks, self.words[team.TICKS] = int(self.words[team.TICKS]), 0
        block = self.bindings.follow_arena()  # keeps the block until the run ends
        try:
            self._run_native(index, index + 1)
            self._check(index, index + 1)
        finally:
            row[team.FIRST], row[team.ITEMS] = 0, items
            self.words[team.TICKS] = ticks
        del block

    def step_seconds(self, repeats: int) -> list[float] | None:
        """The shortest time of each step: of `repeats` more runs or, without repeats, of the timed ones."""
        before = self.times_steps, self._clock
        if repeats:  # by a clock of their own
            self.times_steps, self._clock = True, None
            for _ in range(repeats):
                self.run(0, len(self.steps))
        times = [math.inf] if self._clock is None else self._clock.shortest()
        self.times_steps, self._clock = before
        self.words[team.TICKS] = 0
        return times if all(map(math.isfinite, times)) else None

    def take_runs(self, wait: bool = False) -> list[TimedRun]:
        """Return the timed runs that have ended since the last call."""
        return [] if self._clock is None else self._clock.take_runs()

    def _check(self, begin: int, end: int) -> None:
        """Raise the error that one of these steps has reported."""
        for index, check in self._checks:
            if begin <= index < end:
                try:
                    check()
                except Exception:
                    self._forget_errors()
                    raise

    def _forget_errors(self) -> None:
        """Clear the errors that all kernels have reported: a remaining one would be raised after the next run."""
        for _, check in self._checks:
            with suppress(Exception):
                check()

    def _run_native(self, begin: int, end: int) -> None:
        assert self._walk is not None
        arguments = self._arguments.get((begin, end))
        if arguments is None:
            arguments = jit.arguments(self._address, begin, end)
            self._arguments[begin, end] = arguments
        crew = helpers.team() if self._wants_helpers else None
        if crew is None or not crew.join():
            self._walk(*arguments)
            return
        try:
            self.words[team.TEAM] = crew.address
            self._walk(*arguments)
        finally:
            self.words[team.TEAM] = 0
            crew.leave()

    def _note(self, elapsed: int) -> None:
        """Update the measured time of a run. Runs are held up and never hurried: a shorter one counts at once, and a
        longer one raises the figure by a quarter at most.
        """
        known = self.nanoseconds
        if known is not None and elapsed > known:
            elapsed = known + min(elapsed - known, known) // 4
        self.nanoseconds = now = elapsed
        if not self._splits:
            return
        if now > LONG or now < LONG // 2:
            self._wants_helpers = now > LONG
        elif self._wants_helpers and self._helped is None:  # in between helpers may help, or hold the run up
            self._helped, self._wants_helpers = now, False
        elif self._helped is not None and now > self._helped:
            self._wants_helpers = True


def _ends_of_native_runs(steps: Sequence[CpuStep]) -> list[int]:
    """Return for each step the end of the native steps that begin with it, or its own index if it is not native."""
    ends = list(range(len(steps) + 1))
    for index in reversed(range(len(steps))):
        if isinstance(steps[index], NativeStep):
            native_next = index + 1 < len(steps) and isinstance(steps[index + 1], NativeStep)
            ends[index] = ends[index + 1] if native_next else index + 1
    return ends
