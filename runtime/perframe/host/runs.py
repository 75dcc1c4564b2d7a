"""Runs of workers that advance within milliseconds a frame, and what happens to those that come too fast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol, get_args

from perframe.errors import InputError
from perframe.host.frame import Clock, is_number
from perframe.host.signatures import check_callback
from perframe.host.tasks import Task, TaskList
from perframe.tensor.frames import current_frame

Policy = Literal["newest", "queue", "skip"]


class RunsInSlices(Protocol):
    """A worker, as the host sees it."""

    def schedule_iterable(self, /, *inputs: Any, budget_ms: float, **named: Any) -> Iterator[float]:
        """Take the inputs, and return the steps of a run. The run begins at the first, advances by the given
        milliseconds at each, and yields the time used.
        """


class Run(Task[Any]):
    """A run of a worker that advances in each frame: poll `done`, `await` it, or `cancel()` it. Its result is the
    worker.

    `frame` is the frame in which it was asked for, and `source` whatever the caller wants to find again with the
    result, such as the texture that the inputs came from. `frames` and `spent_ms` say in how many frames it advanced
    and what it took in all. `longest` is the layer of the longest step that could not be divided further, and
    `longest_ms` its milliseconds.
    """

    def __init__(
        self,
        worker: RunsInSlices,
        inputs: Any,
        budget_ms: float,
        clock: Clock,
        priority: float = 0,
        deadline_ms: float | None = None,
        source: Any = None,
        on_done: Callable[[Run], object] | None = None,
        owner: object | None = None,
    ) -> None:
        if not callable(getattr(worker, "schedule_iterable", None)):
            raise InputError(f"schedule takes a worker, and got {worker!r}")
        if not is_number(budget_ms) or budget_ms < 0:
            raise InputError(f"budget_ms is a number of milliseconds of at least 0, not {budget_ms!r}")
        if not is_number(priority):
            raise InputError(f"priority is a finite number, not {priority!r}")
        if deadline_ms is not None and not (is_number(deadline_ms) and deadline_ms > 0):
            raise InputError(f"deadline_ms is a number above 0 or None, and got {deadline_ms!r}")
        if on_done is not None:
            check_callback(on_done, "schedule(on_done=)", "run")
        model = getattr(worker, "model", None)
        super().__init__(f"run of {getattr(model, 'name', '') or type(worker).__name__}", owner)
        self.worker, self.source, self.frame = worker, source, current_frame().index
        self.budget_ms, self.priority = float(budget_ms), float(priority)
        self.frames, self.spent_ms, self.latest_ms = 0, 0.0, 0.0
        self.longest, self.longest_ms = "", 0.0
        self._begun = False
        self._inputs, self._on_done = inputs, on_done
        self._steps: Iterator[float] | None = None
        self._refusal: Exception | None = None
        self._clock, self._asked = clock, clock.now()
        self._deadline_ms = deadline_ms

    @property
    def has_begun(self) -> bool:
        """Whether it has advanced in any frame."""
        return self._begun

    @property
    def is_late(self) -> bool:
        """Whether its deadline has passed."""
        return self._deadline_ms is not None and (self._clock.now() - self._asked) * 1000 > self._deadline_ms

    def take_inputs(self) -> None:
        """Let the worker take the inputs now: the run may begin in a later frame, when the caller has filled its arrays
        again. Raises InputError for inputs that do not fit; with any other error, the run fails when it begins.
        """
        inputs, self._inputs = self._inputs, None
        budget_ms = math.inf if current_frame().waits else self.budget_ms
        if isinstance(inputs, list) and not inputs:
            inputs = ()
        try:
            given = inputs if isinstance(inputs, tuple) else (inputs,)
            self._steps = self.worker.schedule_iterable(*given, budget_ms=budget_ms)
        except InputError:
            self.cancel()
            raise
        except Exception as error:
            self._refusal = error

    def _advance(self) -> None:
        self._begun = True
        if self._refusal is not None:
            raise self._refusal
        assert self._steps is not None
        taken = next(self._steps, None)
        self.latest_ms = 0.0 if taken is None else float(taken)
        if taken is not None:
            self.frames += 1
            self.spent_ms += self.latest_ms
            if getattr(taken, "longest_ms", 0.0) >= self.longest_ms:
                self.longest, self.longest_ms = getattr(taken, "longest", ""), getattr(taken, "longest_ms", 0.0)
            if not getattr(taken, "is_last", False):
                return
        self._steps = None  # it holds the inputs
        self._finish(self.worker)
        if self._on_done is not None:
            self._on_done(self)

    def _close(self) -> None:
        close = getattr(self._steps, "close", None)
        self._steps = None
        if close is not None:
            close()


class RunList(TaskList[Run]):
    """The runs of all workers. A worker has one run at a time; `policy` says what happens to a run that is asked for
    meanwhile: the newest one waits and replaces an older one that waits, all wait in a queue, or it is skipped.
    """

    def request(self, run: Run, policy: Policy) -> None:
        """Add a run. Runs that it replaces, or the run itself if it is skipped, are canceled."""
        if policy not in get_args(Policy):
            raise InputError(f"policy is one of {', '.join(get_args(Policy))}, and got {policy!r}")
        others = [other for other in self if other.worker is run.worker and not other.done]
        if others and policy == "skip":
            run.cancel()
            return
        run.take_inputs()
        if policy == "newest":
            for other in others:
                if not other.has_begun:
                    other.cancel()
        self.add(run)

    def current(self) -> list[Run]:
        """The run of each worker, the highest priority first."""
        first: dict[int, Run] = {}
        for run in self:
            if not run.done:
                first.setdefault(id(run.worker), run)
        return sorted(first.values(), key=lambda run: -run.priority)

    def step_within(self, budget_ms: float | None) -> None:
        """Let each worker's run advance, the highest priority first. A run waits if the milliseconds that all share
        are not enough for its own after those before it; the first one always advances.
        """
        for run in self:
            if run.is_late:
                run.cancel()
        spent = 0.0
        for run in self.current():
            if spent and budget_ms is not None and spent + run.budget_ms > budget_ms:
                continue
            self._step(run)
            spent += run.latest_ms
        self._remove_done()
