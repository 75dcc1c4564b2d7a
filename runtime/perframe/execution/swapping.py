"""The exchange of a worker's model at run time."""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from perframe.backends.preloading import Preloading
from perframe.errors import ClosedError, PerframeError
from perframe.execution.instance import Instance
from perframe.execution.readying import Waiting, check_inputs, frozen, machine_for, ready, trial_values
from perframe.importers.loading import load
from perframe.ir import Model
from perframe.plan.budget import Budget
from perframe.safety.collection import count_as_old
from perframe.tensor.background import Background, Work
from perframe.tensor.frames import current_frame, frame_watchers, give_frames_back

log = logging.getLogger("perframe")
T = TypeVar("T")
LAST = "waits for the end of a run"
REST = 4  # outside of frames, the rest after a slice, in lengths of the slice
Source = Model | str | Path | bytes | IO[bytes] | Any


class Swap:
    """A swap in progress: poll `done`, `await` it in any loop, or `cancel()` it. The old model runs until then.

    `doing` says what it does, and `progress` is the fraction of that step, from 0 to 1. After it, `reset_states` names
    the carried states that did not fit the new model, and began again with zeros.
    """

    def __init__(self, name: str, drive: Callable[[bool], object]) -> None:
        self.name = name
        self.doing, self.progress = "", 0.0
        self.reset_states: tuple[str, ...] = ()
        self._state: Literal["pending", "finished", "failed", "cancelled"] = "pending"
        self._error: BaseException | None = None
        self._drive, self._frame = drive, current_frame().index
        self._work: Background[Any] | None = None

    @property
    def done(self) -> bool:
        """Whether it has finished, failed or been canceled. Takes a slice at most, and never waits."""
        if self._state == "pending":
            self._drive(False)
        return self._state != "pending"

    @property
    def failed(self) -> bool:
        """Whether it has ended with an error. The worker then keeps its model."""
        return self._state == "failed"

    def result(self, wait: bool = False) -> None:
        """Raise the error of a swap that failed, ClosedError if it was canceled, and PerframeError if it is not done,
        unless `wait`, which blocks. A run that advances in steps must end before.
        """
        while wait and self._state == "pending":
            self._drive(True)
            if self.doing == LAST:
                raise PerframeError(f"{self.name} waits for a run that advances in steps: end it, or begin another")
            time.sleep(0.0005)
        if self._state == "pending":
            raise PerframeError(f"{self.name} is not done: poll .done, or await it")
        if self._state == "cancelled":
            raise ClosedError(f"{self.name} was canceled, and the worker keeps its model")
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        """Keep the old model. Does nothing if the swap is done. Never blocks."""
        if self._state == "pending":
            self._state = "cancelled"
            if self._work is not None:
                self._work.cancel()

    def __await__(self) -> Generator[Any, None, None]:
        """Frames continue until it is done. Whoever cancels the waiting code cancels the swap."""
        try:
            yield from give_frames_back(lambda: self.done, self._frame)
        except BaseException:
            self.cancel()
            raise
        self.result()

    def note(self, what: str, share: float) -> None:
        """Note the progress."""
        self.doing, self.progress = what, share

    def beside(self, what: str, function: Callable[[Work], T]) -> Waiting[T]:
        """Run a function in a thread beside the frames."""
        self._work = work = Background(function, f"{self.name}: {what}")
        while not work.done:
            self.note(work.doing or what, work.progress)
            yield True
        self._work = None
        return work.result()

    def finish(self, error: BaseException | None = None) -> None:
        """Note the end."""
        if self._state == "pending":
            self._state, self._error = "finished" if error is None else "failed", error
            self.progress = 1.0

    def __repr__(self) -> str:
        state = self._state if self._state != "pending" else f"{self.doing} {self.progress:.0%}"
        return f"<{self.name}: {state}>"


class Swaps:
    """The swap of a worker, and the instances that it no longer runs. Runs and frames let them advance in slices."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._swap: Swap | None = None
        self._steps: list[Iterator[bool]] = []
        self._seconds = 0.0  # of a slice
        self._thread, self._frame, self._rested_at = 0, -1, 0.0
        self._is_usable: Callable[[], bool] = lambda: True
        self._watches = False  # whether frames call it
        self._rests = False  # whether a run has left a frame to its slice
        self._closes = False  # whether instances are freed even if a tensor of theirs is held

    def begin(
        self,
        own: Instance,
        source: Source,
        inputs: Mapping[str, Any] | None,
        seconds: float,
        exchange: Callable[[Instance], tuple[str, ...] | None],
    ) -> Swap:
        """Begin a swap in slices of these seconds. It cancels one that is under way.

        `exchange` puts an instance in the place of `own`, and returns the names of states that begin again, or None
        while a run is under way.
        """
        self._seconds = seconds
        if self._swap is not None:
            self._swap.cancel()
        reference = weakref.ref(self)

        def drive(waits: bool) -> None:
            swaps = reference()
            if swaps is None:
                swap.cancel()
            elif waits and not swaps._is_usable():
                own.backend.flush()  # raises
            else:
                swaps.advance()

        self._swap = swap = Swap(f"swap of {own.model.name}", drive)
        self._thread = threading.get_ident()
        backend = own.backend
        if isinstance(backend, Preloading):
            self._is_usable = lambda: backend.is_usable
        self._add(self._guarded(swap, self._stages(swap, own, source, inputs, exchange)))
        return swap

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._steps

    def _stages(
        self,
        swap: Swap,
        old: Instance,
        source: Source,
        inputs: Mapping[str, Any] | None,
        exchange: Callable[[Instance], tuple[str, ...] | None],
    ) -> Waiting[None]:
        made: Instance | None = None
        try:
            model = source
            if not isinstance(model, Model):
                model = yield from swap.beside("loads", lambda work: load(source, progress=work.report))
            check_inputs(old, model)
            machine = machine_for(old)
            made = yield from swap.beside("prepares", lambda work: Instance(frozen(model), old.settings, machine))
            values = trial_values(old, made, inputs)
            if values is not None:
                yield from ready(made, values, swap.beside, swap.note)
            count_as_old()  # one frame would take milliseconds to search the new plan for garbage
            while (reset := exchange(made)) is None:
                swap.note(LAST, 0)
                yield True
            swap.reset_states, made = reset, None
        finally:
            if made is not None:
                self._add(self._released(made, swap._work))

    def _guarded(self, swap: Swap, stages: Waiting[None]) -> Iterator[bool]:
        """Take the stages of a swap, and note how it ends."""
        try:
            while swap._state == "pending" and (step := next(stages, None)) is not None:
                yield step
            swap.finish()
        except Exception as error:
            error.add_note(f"in {swap.name}, whose worker keeps its model")
            swap.finish(error)
            log.warning("%s failed, and the worker keeps its model: %s: %s", swap.name, type(error).__name__, error)
        finally:
            stages.close()
            if self._swap is swap:
                self._swap = None

    def retire(self, old: Instance, shown: Callable[[], bool]) -> None:
        """Free an instance in slices, when it is no longer `shown` and its runs are over."""
        self._add(self._released(old, None, shown))

    def _released(
        self, old: Instance, work: Background[Any] | None, shown: Callable[[], bool] = lambda: False
    ) -> Iterator[bool]:
        while (work is not None and not work.ended) or (not self._closes and (shown() or old.is_busy)):
            yield True
        for _ in old.releasing():
            yield False

    def _add(self, steps: Iterator[bool]) -> None:
        if not self._watches:
            self._watch_frames()
        self._steps.append(steps)

    def advance_within(self, budget: Budget | None, seconds: float) -> bool:
        """Take a slice. It is a part of the seconds of a run with a budget, half of them at most. Returns whether the
        run continues in this frame: it rests for one where a step, such as to make a large texture, took longer.
        """
        most = self._seconds if budget is None else seconds / 2
        used = 0.0 if self.is_idle else self.advance(most)
        if budget is None or seconds == math.inf:
            return True
        budget.seconds = max(seconds - used, 0.0)
        self._rests = used > min(self._seconds, most) and not self._rests
        return not self._rests

    def advance(self, most: float = math.inf) -> float:
        """Take a slice of `most` seconds, at most one in each frame, if this thread may. Returns the seconds used."""
        frame, begin = current_frame(), time.perf_counter()
        is_late = frame.index == self._frame if frame.inside else begin < self._rested_at
        if not self._steps or is_late or not self._is_usable() or not self._lock.acquire(blocking=False):
            return 0.0
        try:
            self._frame, end = frame.index if frame.inside else -1, begin + min(self._seconds, most)
            now, longest = begin, 0.0
            for steps in tuple(self._steps):
                waits: bool | None = False
                while waits is False:
                    waits, before = next(steps, None), now
                    now = time.perf_counter()
                    longest = max(longest, now - before)
                    if now + longest >= end:  # the next step may take as long
                        break
                if waits is None:
                    self._steps.remove(steps)
                if now + longest >= end:
                    break
        finally:
            self._lock.release()
        used = time.perf_counter() - begin
        self._rested_at = begin + (1 + REST) * used
        return used

    def release(self) -> None:
        """End the swap, and free all instances."""
        self._closes = True
        if self._swap is not None:
            self._swap.cancel()
        while self._steps:
            steps = self._steps[0]
            while (waits := next(steps, None)) is not None:
                if waits:
                    time.sleep(0.0005)
            self._steps.remove(steps)

    def _watch_frames(self) -> None:
        """Take a slice at the begin of each frame of this thread, where no run has taken one in the frame before."""
        reference = weakref.ref(self)

        def frame_begins(index: int) -> None:
            swaps = reference()
            if swaps is None or swaps.is_idle:
                frame_watchers.remove(frame_begins)
                if swaps is not None:
                    swaps._watches = False
            elif threading.get_ident() == swaps._thread and swaps._frame < index - 1:
                swaps.advance()

        self._watches = True
        frame_watchers.append(frame_begins)
