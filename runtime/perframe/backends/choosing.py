"""The backend for "auto": a real GPU if there is one, else the CPU."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from perframe.errors import BackendError
from perframe.tensor import BackendType

if TYPE_CHECKING:
    from perframe.graphics import GLContext


class Chosen(NamedTuple):
    """A backend, and the reason for it."""

    backend: BackendType
    reason: str


def choose_backend(ctx: GLContext | None = None) -> Chosen:
    """The fastest backend in a context; without `ctx`, in a headless one. It goes by the driver, and measures nothing.

    A GPU with OpenGL 4.3 gets gpu_compute, one with OpenGL 3.3 gpu_pixel. A software driver, or none, gets the CPU.
    Raises BackendError for a context that cannot be used.
    """
    return _headless() if ctx is None else _choice(ctx)


@cache
def _headless() -> Chosen:
    try:
        return _choice(None)
    except (BackendError, ImportError) as error:
        return Chosen(BackendType.CPU, f"there is no OpenGL here: {error}")


def _choice(ctx: GLContext | None) -> Chosen:
    from perframe.backends.gl.context.devices import device_for

    device = device_for(ctx)
    if device.is_software:
        return Chosen(BackendType.CPU, f"OpenGL is only emulated here, by {device.name}")
    if device.has_compute:
        return Chosen(BackendType.GPU_COMPUTE, f"{device.name} has compute shaders")
    return Chosen(BackendType.GPU_PIXEL, f"{device.name} has OpenGL {device.ctx.version_code / 100:.1f}")
