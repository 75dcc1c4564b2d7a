"""Finds the device of a caller's GL context, and of a thread that has none."""

from __future__ import annotations

import threading

import moderngl

from perframe.backends.gl.context.device import BESIDE_A_WINDOW, NOT_CURRENT, RELEASED, Device, one_thread
from perframe.errors import BackendError, ClosedError
from perframe.graphics import current_context
from perframe.graphics.headless_context import IS_EGL, claim_process, create_headless, making_contexts
from perframe.tensor.locks import new_lock

_ON_CONTEXT = "_perframe_device"
_ENTERABLE = ("egl", "x11", "wgl", "darwin")  # glcontext's modules: only their contexts become current by `with ctx:`

_default: dict[int, tuple[threading.Thread, Device]] = {}  # by the thread's number
_sharing = new_lock()  # guards `_default`


def device_for(ctx: moderngl.Context | None) -> Device:
    """The device of the caller's context; without `ctx`, the device of this thread's own headless context."""
    claim_process()
    with one_thread:
        return _own_device() if ctx is None else _device_of(ctx)


def _device_of(ctx: moderngl.Context) -> Device:
    if not isinstance(ctx, moderngl.Context):
        advice = ": pass its ctx" if isinstance(getattr(ctx, "ctx", None), moderngl.Context) else ""
        raise BackendError(f"ctx must be a moderngl.Context, not {type(ctx).__name__}{advice}")
    if isinstance(ctx.mglo, moderngl.InvalidObject):
        raise ClosedError(RELEASED)
    # The context itself holds its device. A table of ours would keep both for ever, since they refer to each other.
    found: Device | None = vars(ctx).get(_ON_CONTEXT)
    if found is None:
        _check(ctx)
        found = vars(ctx)[_ON_CONTEXT] = Device(ctx, owned=False)
    return found


def _own_device() -> Device:
    """This thread's own device. It takes over the device of an ended thread if there is one: contexts are expensive to
    make, and moderngl does not free all their memory.
    """
    key, here = threading.get_ident(), threading.current_thread()
    with _sharing:
        _, device = _default.get(key) or (None, _of_ended_thread())
        if device is not None:
            _default[key] = here, device
    if device is None:
        device = _headless()
        with _sharing:
            _default[key] = here, device
    device.thread = key
    return device


def _of_ended_thread() -> Device | None:
    """Remove and return the device of a thread that has ended. The caller holds the lock."""
    for key, (thread, device) in _default.items():
        # Python does not know when a foreign thread ends, and on Windows a context may not outlive its thread.
        if IS_EGL and not isinstance(thread, threading._DummyThread) and not thread.is_alive():
            del _default[key]
            return device
    return None


def _check(ctx: moderngl.Context) -> None:
    """Raise BackendError if a context cannot be used, or is not current."""
    if ctx.version_code < 330:
        raise BackendError(
            f"this GL context has OpenGL {ctx.version_code / 100:.1f}, and perframe needs 3.3: ask the window for 3.3"
        )
    maker = type(ctx.mglo._context).__module__
    if maker not in _ENTERABLE:
        return
    handle, previous = current_context.find_current()[1], current_context.current()
    if maker == "x11" and previous.context is not None:  # X ends a process that enters a GLX context beside EGL's
        raise BackendError(NOT_CURRENT)
    try:
        with ctx:
            its_own = current_context.find_current()[1]
    finally:
        current_context.restore(previous)
    if its_own != handle:
        raise BackendError(NOT_CURRENT)


def _headless() -> Device:
    """A device with our own headless context. Raises BackendError if none can be made beside a window's context."""
    previous = current_context.current()
    try:
        with making_contexts:
            # moderngl.create_context() in a window returns the context that was made last: that must not be ours.
            default = moderngl._store.default_context  # type: ignore[attr-defined]
            try:
                ctx = create_headless(moderngl.create_context)
            finally:
                moderngl._store.default_context = default  # type: ignore[attr-defined]
        if current_context.current().context is None:
            raise BackendError(BESIDE_A_WINDOW)
        return Device(ctx, owned=True)
    finally:
        current_context.restore(previous)
