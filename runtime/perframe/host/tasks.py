"""Tasks: work that the loop carries on from frame to frame, such as readbacks and schedules within a budget."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

from perframe.errors import ClosedError, InputError, PerframeError
from perframe.host.frame import Clock, is_number
from perframe.host.signatures import check_callback
from perframe.tensor.frames import current_frame, give_frames_back

T = TypeVar("T")
AnyTask = TypeVar("AnyTask", bound="Task[Any]")
T_co = TypeVar("T_co", covariant=True)


class Task(ABC, Generic[T]):
    """Work in progress: poll `done`, `await` it in a coroutine of the loop, or `cancel()` it.

    If it fails, the app reports the error with the task's name, so no failure goes unseen.
    """

    def __init__(self, name: str, owner: object | None = None) -> None:
        self.name = name
        self.owner = owner
        self._state: Literal["pending", "finished", "failed", "cancelled"] = "pending"
        self._outcome: T | BaseException | None = None
        self._stepping = False
        self._begun_in_frame = current_frame().index

    def __repr__(self) -> str:
        return f"<{self.name}: {self._state}>"

    @property
    def done(self) -> bool:
        """Whether the task has finished, failed or been canceled. Never blocks."""
        return self._state != "pending"

    @property
    def failed(self) -> bool:
        """Whether the task has ended with an error."""
        return self._state == "failed"

    def result(self) -> T:
        """Return the task's result. Raises the task's own error, ClosedError if it was canceled, and PerframeError if
        it is not done.
        """
        if self._state == "pending":
            raise PerframeError(f"{self.name} is not done: poll .done, or await it")
        if self._state == "cancelled":
            raise ClosedError(f"{self.name} was canceled")
        if self._state == "failed":
            raise cast(BaseException, self._outcome)
        return cast(T, self._outcome)

    def cancel(self) -> None:
        """End the task here; its `finally` blocks run. Does nothing if the task is done."""
        if self.done:
            return
        self._state = "cancelled"
        if not self._stepping:  # a task that cancels itself is closed at the end of its step
            self._close()

    def step(self) -> None:
        """Do one frame's worth of the work. Called by the loop."""
        if self.done:
            return
        self._stepping = True
        try:
            self._advance()
        except BaseException as error:
            self._state, self._outcome = "failed", error
            error.add_note(f"in {self.name}")
            raise
        finally:
            self._stepping = False
        if self._state == "cancelled":
            self._close()

    def __await__(self) -> Generator[None, None, T]:
        """Give the frame back until the task is done, and at least once if the task began in this frame."""
        yield from give_frames_back(lambda: self.done, self._begun_in_frame)
        return self.result()

    def _finish(self, value: T) -> None:
        if not self.done:
            self._state, self._outcome = "finished", value

    @abstractmethod
    def _advance(self) -> None:
        """Do one frame's worth of the work, and call `_finish` after the last."""

    def _close(self) -> None:
        """Release whatever a canceled task holds."""


class TaskList(Generic[AnyTask]):
    """Tasks that the loop steps once a frame, in the order in which they were added.

    `fails` is called with a task's name and its error, and returns whether the loop continues.
    """

    def __init__(self, fails: Callable[[str, Exception], bool]) -> None:
        self._fails = fails
        self._tasks: list[AnyTask] = []

    def __iter__(self) -> Iterator[AnyTask]:
        return iter(tuple(self._tasks))  # a task may add or cancel others

    def add(self, task: AnyTask) -> None:
        """Add a task. If the list is being stepped, the task's first step is in the next frame."""
        self._tasks.append(task)

    def step(self) -> None:
        """Step all tasks, and remove those that are done."""
        for task in self:
            self._step(task)
        self._remove_done()

    def _step(self, task: AnyTask) -> None:
        try:
            task.step()
        except Exception as error:
            if not self._fails(task.name, error):
                raise

    def _remove_done(self) -> None:
        self._tasks = [task for task in self._tasks if not task.done]

    def cancel(self, owner: object | None = None) -> None:
        """Cancel the tasks of `owner`, or all tasks."""
        for task in self:
            if owner is None or task.owner is owner:
                task.cancel()


class PendingResult(Protocol[T_co]):
    """A result that arrives later, such as a perframe Readback."""

    @property
    def done(self) -> bool:
        """Whether the result is there. Never blocks."""
        ...

    def result(self) -> T_co:
        """The result, once `done`."""
        ...


class ReadbackTask(Task[T]):
    """Polls a readback once a frame, and calls the callback with its result."""

    def __init__(
        self, readback: PendingResult[T], callback: Callable[[T], object], owner: object | None = None
    ) -> None:
        if not hasattr(readback, "done") or not callable(getattr(readback, "result", None)) or not callable(callback):
            raise InputError(
                "when_done takes an object with `done` and `result()`, such as tensor.readback_request(), and a "
                f"function of the result, not {readback!r} and {callback!r}"
            )
        check_callback(callback, "when_done", "result")
        super().__init__(f"when_done of {getattr(readback, 'name', '') or type(readback).__name__}", owner)
        self._readback = readback
        self._callback = callback

    def _advance(self) -> None:
        if self._readback.done:
            result = self._readback.result()
            self._callback(result)
            self._finish(result)


class ScheduleTask(Task[None]):
    """Takes steps of an iterator until the frame's budget is spent; at least one step a frame, so it always ends."""

    def __init__(
        self,
        steps: Iterable[object],
        clock: Clock,
        budget_ms: float,
        on_done: Callable[[], object] | None = None,
        owner: object | None = None,
    ) -> None:
        if not isinstance(steps, Iterable) or not is_number(budget_ms):
            raise InputError(
                "advance takes an iterator, such as worker.schedule_iterable(x), and milliseconds, not "
                f"{steps!r} and {budget_ms!r}"
            )
        if on_done is not None:
            check_callback(on_done, "advance(on_done=)")
        super().__init__(f"schedule {getattr(steps, '__qualname__', type(steps).__name__)}", owner)
        self.budget_ms = budget_ms
        self._steps = iter(steps)
        self._clock = clock
        self._on_done = on_done

    def _advance(self) -> None:
        began = self._clock.now()
        reported_ms = 0.0
        for cost in self._steps:
            if isinstance(cost, float):  # the clock does not see GPU time, but a step can know it from a timer query
                reported_ms += cost
            elapsed_ms = (self._clock.now() - began) * 1000
            if self.done or (not current_frame().waits and max(elapsed_ms, reported_ms) >= self.budget_ms):
                return
        if self._on_done is not None:
            self._on_done()
        self._finish(None)

    def _close(self) -> None:
        close = getattr(self._steps, "close", None)  # generators have it
        if close is not None:
            close()
