"""Which backend runs the networks of a demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perframe.backends.choosing import choose_backend
from perframe.errors import BackendError
from perframe.graphics.software import is_software
from perframe.tensor import BackendType

if TYPE_CHECKING:
    import moderngl


def is_emulated(ctx: moderngl.Context) -> bool:
    """Whether OpenGL runs on the CPU here, and takes its time from everything else."""
    return is_software(str(ctx.info["GL_RENDERER"]))


def choose(asked: str, ctx: moderngl.Context | None, deed: str = "computing") -> BackendType:
    """The backend that was asked for; for "auto" the fastest one here, and a line that says which and why:
    "painting on cpu: ...", where `deed` is "painting".

    Raises BackendError where it needs OpenGL and there is none.
    """
    if asked != "auto":
        if ctx is None and asked != BackendType.CPU:
            raise BackendError(f"--backend {asked} needs OpenGL, and there is none here: --backend cpu does without")
        return BackendType(asked)
    chosen, reason = (BackendType.CPU, "there is no OpenGL here") if ctx is None else choose_backend(ctx)
    print(f"{deed} on {chosen}: {reason}")
    return chosen
