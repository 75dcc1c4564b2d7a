"""The part of an app that carries on work from frame to frame: coroutines, readbacks, schedules and workers' runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from perframe.errors import InputError
from perframe.host.coroutines import CoroutineTask
from perframe.host.event_loop import FrameLoop
from perframe.host.frame import Timeline, is_number
from perframe.host.runs import Policy, Run, RunList, RunsInSlices
from perframe.host.scripts import Hooks
from perframe.host.tasks import PendingResult, ReadbackTask, ScheduleTask, Task, TaskList

T = TypeVar("T")


class TaskControls(ABC):
    """The part of an app that carries on work."""

    _timeline: Timeline

    def __init__(self, budget_ms: float | None) -> None:
        if budget_ms is not None and not (is_number(budget_ms) and budget_ms >= 0):
            raise InputError(f"budget_ms is a number of milliseconds of at least 0 or None, and got {budget_ms!r}")
        self.budget_ms = budget_ms
        self._readbacks: TaskList[ReadbackTask[Any]] = TaskList(self._goes_on)
        self._coroutines: TaskList[CoroutineTask[Any]] = TaskList(self._goes_on)
        self._schedules: TaskList[ScheduleTask] = TaskList(self._goes_on)
        self._runs = RunList(self._goes_on)
        self._event_loop: FrameLoop | None = None

    @abstractmethod
    def _goes_on(self, where: str, error: Exception, stays: bool = False) -> bool:
        """Report an error, and return whether the loop continues."""

    @abstractmethod
    def _require_open(self) -> None:
        """Raise ClosedError after a release, and BackendError in another thread."""

    def start_coroutine(
        self, coroutine: Coroutine[Any, Any, T], name: str | None = None, owner: Hooks | None = None
    ) -> Task[T]:
        """Run a coroutine in the loop: at once up to its first `await`, from then on once a frame.

        The coroutine may await asyncio's functions (`sleep`, `create_task`, `gather`, `wait_for`, `to_thread`): the
        app's event loop runs in each frame, without waiting. It is canceled when `owner` is removed or the app is
        released. If it fails, `name` says where. The default is the coroutine's own name.
        """
        self._require_open()
        task = CoroutineTask(coroutine, self._timeline, self._asyncio, name, owner)
        task.step()
        self._coroutines.add(task)
        return task

    def when_done(
        self, readback: PendingResult[T], callback: Callable[[T], object], owner: Hooks | None = None
    ) -> Task[T]:
        """Call `callback` with the result of a readback at the beginning of the first frame that finds it done.

        Never blocks. `owner` is as for `start_coroutine`.
        """
        self._require_open()
        task = ReadbackTask(readback, callback, owner)
        self._readbacks.add(task)
        return task

    def advance(
        self,
        steps: Iterable[object],
        budget_ms: float = 2.0,
        on_done: Callable[[], object] | None = None,
        owner: Hooks | None = None,
    ) -> Task[None]:
        """Take steps of an iterator, such as `worker.schedule_iterable(x)`, for `budget_ms` milliseconds a frame.

        Each frame takes at least one step, and never splits one, so a long step may exceed the budget. A step may yield
        its cost in milliseconds as a float: the spent time is the sum of these costs, or the time by the app's clock if
        that is more. When the iterator ends, `on_done` is called, in the same frame and before `render`. `owner` is as
        for `start_coroutine`.
        """
        self._require_open()
        task = ScheduleTask(steps, self._timeline.clock, budget_ms, on_done, owner)
        self._schedules.add(task)
        return task

    def schedule(
        self,
        worker: RunsInSlices,
        inputs: Any = (),
        budget_ms: float = 4.0,
        *,
        policy: Policy = "newest",
        priority: float = 0,
        deadline_ms: float | None = None,
        source: Any = None,
        on_done: Callable[[Run], object] | None = None,
        owner: Hooks | None = None,
    ) -> Run:
        """Run a worker over as many frames as it needs, `budget_ms` milliseconds in each: after `late_update` and
        before `render`.

        `inputs` is what `worker.schedule` takes: an array or tensor, a dict by name, or a tuple by position. Those that
        do not fit raise InputError. Arrays are copied in this call. A tensor is read during the run: do not overwrite
        it before the run is done. Layers advance within the milliseconds by measured costs, and a layer that does not
        fit is divided.

        A worker has one run at a time. If another is asked for meanwhile, `policy` decides: "newest" lets it replace a
        waiting run, "queue" lets all wait, "skip" drops it. A run that is dropped, or that is not done `deadline_ms`
        after it was asked for, is canceled. If the app has a `budget_ms`, workers of a higher `priority` advance first,
        and others wait for a frame in which enough is left.

        The returned run knows the frame in which it was asked for and the `source` that you give it, so that a result
        is drawn over the picture to which it belongs. `on_done` is called with the run when it is done. `owner` is as
        for `start_coroutine`.
        """
        self._require_open()
        run = Run(worker, inputs, budget_ms, self._timeline.clock, priority, deadline_ms, source, on_done, owner)
        self._runs.request(run, policy)
        return run

    def _expected_ms(self) -> float:
        """The milliseconds that all schedules and runs together may take in this frame."""
        shared = sum(run.budget_ms for run in self._runs.current())
        if self.budget_ms is not None:
            shared = min(shared, self.budget_ms)
        return sum(task.budget_ms for task in self._schedules) + shared

    def _receive(self) -> None:
        """Let readbacks, what asyncio has, and coroutines continue: before the updates of a frame."""
        self._readbacks.step()
        if self._event_loop is not None:
            self._event_loop.advance()
        self._coroutines.step()

    def _spend(self) -> None:
        """Let schedules and runs continue within their milliseconds: after the updates of a frame."""
        self._schedules.step()
        self._runs.step_within(self.budget_ms)

    def _cancel_tasks(self, owner: Hooks | None) -> None:
        """Cancel the tasks of a script, or all tasks but those of asyncio, which end with their event loop."""
        self._schedules.cancel(owner)
        self._runs.cancel(owner)
        self._coroutines.cancel(owner)
        if self._event_loop is not None and owner is not None:
            self._event_loop.cancel(owner)
        self._readbacks.cancel(owner)

    def _asyncio(self) -> FrameLoop:
        """The app's event loop of asyncio, made when the first coroutine needs it."""
        if self._event_loop is None:
            self._event_loop = FrameLoop(self._timeline.clock, self._goes_on)
        return self._event_loop
