"""Values of a tensor in a texture, frame by frame, without waiting for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import perframe as pf

from .stage import Stage

if TYPE_CHECKING:
    import moderngl


class ShownTensor:
    """A texture that follows a tensor of 1 x C x H x W, C is 1, 3 or 4. Its values are 0..1, unless `dtype` is "f4".

    On a GPU a pass draws the tensor into the texture. From the CPU the values come when they have arrived: until then
    `pending` is True, and the worker should not run again. In a recording `take` waits for them instead.
    """

    def __init__(self, ctx: moderngl.Context, shape: tuple[int, ...], stage: Stage, dtype: str = "f1") -> None:
        _, channels, height, width = shape
        self.texture = ctx.texture((width, height), channels, dtype=dtype)
        self.texture.filter = ctx.NEAREST, ctx.NEAREST
        self.texture.repeat_x = self.texture.repeat_y = False
        self._converter = pf.TextureConverter(ctx)
        self._stage = stage
        self._request: pf.Readback | None = None

    def take(self, tensor: pf.Tensor) -> None:
        """Show these values as soon as they are there."""
        if tensor.backend_type is not pf.BackendType.CPU:
            self._converter.to_texture(tensor, self.texture)
            return
        self._request = self._stage.asked(tensor)
        self._bring()

    @property
    def pending(self) -> bool:
        """Whether values are on their way. Brings them into the texture if they have arrived."""
        self._bring()
        return self._request is not None

    def _bring(self) -> None:
        if self._request is None or not self._request.done:
            return
        pixels: Any = self._request.result()[0].transpose(1, 2, 0)
        if self.texture.dtype == "f1":
            pixels = np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
        self._converter.upload(np.ascontiguousarray(pixels), self.texture)
        self._request = None

    def release(self) -> None:
        """Free the texture."""
        self._converter.release()
        self.texture.release()
