"""Work that is recorded now and executed by hand, as often as wanted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from perframe.errors import ClosedError, InputError
from perframe.execution.worker import Worker
from perframe.graphics import GLContext
from perframe.tensor import Tensor
from perframe.textures.converter import TextureConverter, Transforms
from perframe.textures.transform import TextureTransform


class CommandBuffer:
    """Records conversions and schedules in the caller's GL context; nothing runs before `execute()`.

    It holds the textures, tensors and workers of its commands: they live at least as long as the CommandBuffer.
    """

    def __init__(self, ctx: GLContext | None = None) -> None:
        self._converter = TextureConverter(ctx)
        self._commands: list[Callable[[], Any]] = []
        self._released = False

    def to_tensor(self, texture: Any, tensor: Tensor, transform: Transforms = None) -> CommandBuffer:
        """Record `TextureConverter.to_tensor`."""
        return self._record(partial(self._converter.to_tensor, texture, tensor, transform))

    def schedule_worker(self, worker: Worker, *inputs: Any) -> CommandBuffer:
        """Record `worker.schedule(*inputs)`. Each `execute()` reads the inputs again."""
        if not isinstance(worker, Worker):
            raise InputError(f"schedule_worker takes a perframe.Worker, not {type(worker).__name__}")
        return self._record(partial(worker.schedule, *inputs))

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

    def execute(self) -> None:
        """Run all commands, in the order in which they were recorded."""
        if self._released:
            raise ClosedError("a CommandBuffer was used after its release")
        for command in self._commands:
            command()

    def clear(self) -> None:
        """Forget all commands."""
        self._commands.clear()

    def __len__(self) -> int:
        return len(self._commands)

    def release(self) -> None:
        """Forget all commands and free the resources of the conversions."""
        self.clear()
        self._released = True
        self._converter.release()

    def __enter__(self) -> CommandBuffer:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
