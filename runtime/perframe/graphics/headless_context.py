"""The parts of GL that workers and surfaces share without knowing each other: a context without a screen, GL functions
by name, and a check that GL works in this process.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from perframe.errors import BackendError
from perframe.graphics import GLContext

Context = TypeVar("Context")

_VERSION = 0x1F02
IS_EGL = sys.platform.startswith("linux")
INSTALL_GL = {
    "linux": "apt-get install libegl1 libgl1 libgl1-mesa-dri (Debian, Ubuntu), or your graphics card's driver",
    "darwin": "OpenGL 4.1 is part of macOS: run inside a desktop session",
    "win32": "install your graphics card's driver; a remote desktop or a virtual machine may have none",
}
# wglGetProcAddress may return any of these for a function that it does not have
_NOWHERE = {0, 1, 2, 3, 2**32 - 1, 2**64 - 1, -1}

FORKED = (
    "this process was forked from one that had used OpenGL, and no driver works in such a child: start the process by "
    "multiprocessing.get_context('spawn')"
)
_process: int | None = None  # the id of the process that uses GL

making_contexts = threading.RLock()
"""Held while a moderngl context is made: moderngl keeps the latest of all threads, and we ask for it. A forked child
never gets here (see `claim_process`)."""


def claim_process() -> None:
    """Note that this process uses GL. Raises BackendError if it was forked from one that does: a driver may wait for
    ever in such a child.
    """
    global _process
    if _process is None:
        _process = os.getpid()
    if _process != os.getpid():
        raise BackendError(FORKED)


def install_advice() -> str:
    """Advice on installing an OpenGL driver on this system."""
    return INSTALL_GL.get(sys.platform, "install an OpenGL driver")


def versions() -> tuple[int, ...]:
    """The GL versions to ask for, in order, as 430 and 330: 4.3 has compute shaders.

    On macOS, any request gives the newest version, 4.1. A second request would leave the context of the first behind,
    because glcontext does not free what moderngl refuses.
    """
    return (330,) if sys.platform == "darwin" else (430, 330)


def create_headless(create_context: Callable[..., Context]) -> Context:
    """Make a context by moderngl's `create_context`: GL 4.3 if possible, else 3.3. It is current afterwards; the caller
    restores what was current before.

    Raises BackendError with the reasons and what to install.
    """
    claim_process()
    settings: dict[str, Any] = {"backend": "egl"} if IS_EGL else {}
    reasons = []
    for version in versions():
        try:
            with making_contexts:
                return create_context(require=version, standalone=True, **settings)
        except Exception as error:  # moderngl raises Exception itself
            reasons.append(f"GL {version / 100:.1f}: {error}")
    if found := old_version():
        raise BackendError(
            f"the driver here has OpenGL {found}, and perframe needs 3.3: {install_advice()}; or use backend 'cpu'"
        )
    raise BackendError(
        f"no OpenGL context can be made here ({'; '.join(reasons)}): {install_advice()}; or use backend 'cpu'"
    )


def old_version() -> str:
    """The version of a driver that is too old for us, such as "2.1 Mesa 22.3.6"; "" if it cannot be asked."""
    if not IS_EGL:  # elsewhere a window would be needed to ask
        return ""
    try:
        import glcontext  # type: ignore[import-untyped]

        context = glcontext.get_backend_by_name("egl")(mode="standalone", glversion=210)
        try:
            with context:
                load = getattr(context, "load_opengl_function", None) or context.load
                get_string = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_uint)(load("glGetString"))
                version: str = (get_string(_VERSION) or b"").decode(errors="replace")
        finally:
            context.release()
    except Exception:  # glcontext raises Exception itself; there is no driver at all
        return ""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return version if numbers and (int(numbers[1]), int(numbers[2])) < (3, 3) else ""


def headless_information() -> dict[str, Any]:
    """The strings of the headless driver, by GL's names. Raises BackendError."""
    import moderngl

    return dict(create_headless(moderngl.create_context).info)


def entry_point(ctx: GLContext, name: str) -> int:
    """The address of a GL function in a moderngl context.

    Contexts have different loaders: moderngl's own (in windows), glcontext's, or the caller's. All have the method
    `load_opengl_function`; glcontext before version 3 has `load` instead. Raises BackendError if the driver does not
    have the function.
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
