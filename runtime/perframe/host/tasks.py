"""Tasks: work that the loop carries on from frame to frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, Literal, TypeVar, cast

from perframe.errors import ClosedError, PerframeError
from perframe.tensor.frames import current_frame
from perframe.tensor.readback import give_frame_back

T = TypeVar("T")
AnyTask = TypeVar("AnyTask", bound="Task[Any]")


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
        yield from give_frame_back(self._begun_in_frame)
        while not self.done:
            yield
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
            try:
                task.step()
            except Exception as error:
                if not self._fails(task.name, error):
                    raise
        self._tasks = [task for task in self._tasks if not task.done]

    def cancel(self, owner: object | None = None) -> None:
        """Cancel the tasks of `owner`, or all tasks."""
        for task in self:
            if owner is None or task.owner is owner:
                task.cancel()
