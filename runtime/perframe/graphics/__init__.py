"""OpenGL for the host and the GL backends: headless contexts, the current context, and GL functions by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import moderngl

    GLContext: TypeAlias = moderngl.Context  # the type of the caller's context
    GLFramebuffer: TypeAlias = moderngl.Framebuffer
else:  # without importing moderngl
    GLContext = GLFramebuffer = Any
