"""What workers and surfaces need of GL alike, who must not know each other: a context without a screen, GL's functions
by their names, and a process in which GL works.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from perframe.errors import BackendError

Context = TypeVar("Context")

VERSIONS = (430, 330)  # compute shaders where they can be had; macOS has none
IS_EGL = sys.platform.startswith("linux")
# what wglGetProcAddress may answer for a function that it does not have
_NOWHERE = {0, 1, 2, 3, 2**32 - 1, 2**64 - 1, -1}

FORKED = (
    "this process was forked from one that had used OpenGL, and no driver works in such a child: begin it with "
    "multiprocessing.get_context('spawn')"
)
_process: int | None = None  # that uses GL


def claim_process() -> None:
    """Use GL in this process. Raises BackendError in one forked from its user, where a driver may wait for ever."""
    global _process
    if _process is None:
        _process = os.getpid()
    if _process != os.getpid():
        raise BackendError(FORKED)


def create_headless(create_context: Callable[..., Context]) -> Context:
    """A context by moderngl's `create_context`: GL 4.3 where it can be had, else 3.3. It is current afterwards.

    Raises BackendError that says what to install.
    """
    claim_process()
    settings: dict[str, Any] = {"backend": "egl"} if IS_EGL else {}
    reasons = []
    for version in VERSIONS:
        try:
            return create_context(require=version, standalone=True, **settings)
        except Exception as error:  # moderngl raises Exception itself
            reasons.append(f"GL {version / 100:.1f}: {error}")
    raise BackendError(
        f"no OpenGL context can be made here ({'; '.join(reasons)}): install a driver "
        "(apt install libegl1 libgl1 libgl1-mesa-dri gives one that needs no GPU), or use backend 'cpu'"
    )


def entry_point(ctx: Any, name: str) -> int:
    """The address of a GL function in a moderngl context, whoever loads its functions.

    moderngl's own loader, which windows get, glcontext's, and a caller's have `load_opengl_function` in common; that of
    glcontext before version 3 has `load`. Raises BackendError where the driver does not have the function.
    """
    loader = ctx.mglo._context
    load = getattr(loader, "load_opengl_function", None) or loader.load
    address = load(name)
    if address in _NOWHERE or not isinstance(address, int):
        raise BackendError(
            f"this GL context (version {ctx.version_code / 100:.1f}) has no {name}: its driver is broken or too old, "
            f"or {type(loader).__name__}, which loads its functions, does not find it"
        )
    return address
