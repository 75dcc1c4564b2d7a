"""The picture that an app has drawn, as a texture, without leaving the GPU."""

from __future__ import annotations

from typing import Any

from perframe.graphics import GLContext


class SurfaceTexture:
    """A texture with the picture of a framebuffer, so that a network sees the scene that the app draws.

    `ctx` is the moderngl context, and `size` the framebuffer's width and height. The first row is the bottom one, and a
    TextureConverter knows it: a region is `TextureTransform(region=(x, y, width, height))` from the picture's top left.
    """

    def __init__(self, ctx: GLContext, size: tuple[int, int]) -> None:
        self._ctx = ctx
        self.texture = ctx.texture(size, 4)
        """The moderngl texture, RGBA of bytes."""
        self._target = ctx.framebuffer([self.texture])

    def capture(self, framebuffer: Any) -> Any:
        """Copy a framebuffer, such as `app.framebuffer` in `render`, and return the texture. Nothing waits."""
        before = self._ctx.fbo
        self._ctx.copy_framebuffer(self._target, framebuffer)
        before.use()
        return self.texture

    def release(self) -> None:
        """Free the texture."""
        self._target.release()
        self.texture.release()
