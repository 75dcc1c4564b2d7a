"""Work that is recorded now and executed by hand, as often as wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from perframe.errors import ClosedError, InputError
from perframe.execution.warming import check_budget
from perframe.execution.worker import Worker
from perframe.graphics import GLContext
from perframe.plan.budget import Spent
from perframe.safety.wording import counted
from perframe.tensor import Tensor
from perframe.textures.arguments import Transforms
from perframe.textures.converter import TextureConverter
from perframe.textures.transform import TextureTransform


class CommandBuffer:
    """Records conversions and schedules in the caller's GL context; nothing runs before `execute()`.

    `schedule_worker_iterable` runs a network in several calls of `execute()`. The CommandBuffer holds the textures,
    tensors and workers of its commands: they live at least as long.
    """

    def __init__(self, ctx: GLContext | None = None) -> None:
        self._converter = TextureConverter(ctx)
        self._commands: list[Callable[[], Any]] = []
        self._released = False
        self._at = 0  # the command that is next, or under way
        self._steps: Iterator[Any] | None = None  # those of the command that is under way

    def to_tensor(self, texture: Any, tensor: Tensor, transform: Transforms = None) -> CommandBuffer:
        """Record `TextureConverter.to_tensor`."""
        return self._record(partial(self._converter.to_tensor, texture, tensor, transform))

    def schedule_worker(self, worker: Worker, *inputs: Any) -> CommandBuffer:
        """Record `worker.schedule(*inputs)`. Each `execute()` reads the inputs again."""
        return self._record(partial(_worker(worker, "schedule_worker").schedule, *inputs))

    def schedule_worker_iterable(self, worker: Worker, *inputs: Any, budget_ms: float | None = None) -> CommandBuffer:
        """Record `worker.schedule_iterable(*inputs, budget_ms=budget_ms)`, of which each `execute()` takes one step.

        The later commands run in the call that ends the run. Raises InputError.
        """
        begin = partial(_worker(worker, "schedule_worker_iterable").schedule_iterable, *inputs)
        if budget_ms is None:
            return self._record(begin)
        check_budget(budget_ms)
        return self._record(partial(begin, budget_ms=budget_ms))

    def copy_output(self, worker: Worker, name: str | int, tensor: Tensor) -> CommandBuffer:
        """Record `worker.copy_output(name, tensor)`."""
        return self._record(partial(_worker(worker, "copy_output").copy_output, name, tensor))

    def to_texture(self, tensor: Tensor, texture: Any, transform: Transforms = None) -> CommandBuffer:
        """Record `TextureConverter.to_texture`."""
        return self._record(partial(self._converter.to_texture, tensor, texture, transform))

    def render_to_screen(self, tensor: Tensor, transform: TextureTransform | None = None) -> CommandBuffer:
        """Record `TextureConverter.render_to_screen`, which draws into the framebuffer that `execute()` finds bound."""
        return self._record(partial(self._converter.render_to_screen, tensor, transform))

    def _record(self, command: Callable[[], Any]) -> CommandBuffer:
        if self._released:
            raise ClosedError("a CommandBuffer was used after its release")
        self._commands.append(command)
        return self

    def execute(self) -> bool:
        """Run the commands in the order in which they were recorded, and return whether all are done.

        It is False after a step of `schedule_worker_iterable` that does not end the run: the next call continues there.
        After an error the next call begins again.
        """
        if self._released:
            raise ClosedError("a CommandBuffer was used after its release")
        try:
            while self._at < len(self._commands):
                if self._steps is None:
                    made = self._commands[self._at]()
                    self._steps = made if isinstance(made, Iterator) else None
                if self._steps is not None and _goes_on(self._steps):
                    return False
                self._steps, self._at = None, self._at + 1
        except BaseException:
            self._restart()
            raise
        self._restart()
        return True

    def _restart(self) -> None:
        self._at, self._steps = 0, None

    def clear(self) -> None:
        """Forget all commands, and end a run that is under way."""
        self._commands.clear()
        self._restart()

    def __len__(self) -> int:
        return len(self._commands)

    def __repr__(self) -> str:
        return f"CommandBuffer({'released' if self._released else counted(len(self), 'command')})"

    def release(self) -> None:
        """Forget all commands and free the resources of the conversions."""
        self.clear()
        self._released = True
        self._converter.release()

    def __enter__(self) -> CommandBuffer:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _worker(given: Any, call: str) -> Worker:
    if not isinstance(given, Worker):
        raise InputError(f"{call} takes a perframe.Worker, not {type(given).__name__}")
    return given


def _goes_on(steps: Iterator[Any]) -> bool:
    """Take a step of a run, and return whether others follow. Without a budget, only the step after the last knows."""
    step = next(steps, None)
    return step is not None and not (isinstance(step, Spent) and step.is_last)
