"""A GL context as both backends see it: its limits, its programs, fences, staging buffers, and what waits to be
freed.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any

import moderngl

from perframe.backends.gl.program import ProgramCache
from perframe.backends.gl.state import ConditionalRendering, StateGuard
from perframe.errors import BackendError, ClosedError
from perframe.graphics import current_context
from perframe.graphics.functions import Entries, generate, get
from perframe.graphics.headless_context import FORKED, IS_EGL, claim_process, create_headless, entry_point
from perframe.tensor.locks import new_lock

MAX_INPUTS = 7
_ALREADY_SIGNALED, _CONDITION_SATISFIED, _WAIT_FAILED = 0x911A, 0x911C, 0x911D
_COMMANDS_COMPLETE, _FLUSH_BIT = 0x9117, 1
_WAIT_NANOSECONDS = 10**9
_VERSION = 0x1F02
_BESIDE_A_WINDOW = (
    "a window's GL context is current in this thread, and a headless one cannot be beside it: give the worker the "
    "window's, ctx=moderngl.create_context()"
)
_ANOTHER_THREAD = (
    "a GL worker or tensor was used from another thread than the one that made it: a GL context belongs to one thread"
)
_RELEASED = "the moderngl context was released, and with it all that lay there: make a context and workers anew"
_NOT_CURRENT = (
    "another GL context than that of ctx is current in this thread, or none: before you use its workers, tensors and "
    "converters, make it current as your window does it (glfw.make_context_current(window), window.switch_to()), or "
    "a standalone one by `with ctx:`. Two windows want two of moderngl's contexts: call moderngl.init_context() in the "
    "second, and take moderngl.get_context()"
)
_REPLACED = (
    "the window's GL context was replaced by another since ctx was first used, and all that lay there is gone: call "
    "moderngl.init_context(), take moderngl.get_context(), and make workers and converters anew"
)


class Fence:
    """Finished when the GPU has done all that was submitted before it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._sync = device.gl.glFenceSync(_COMMANDS_COMPLETE, 0)
        self._flush = _FLUSH_BIT

    @property
    def done(self) -> bool:
        """Whether the GPU got there. Never blocks."""
        return self._sync is None or self._poll(0)

    def wait(self) -> None:
        """Block until it did. Raises BackendError if the context was lost."""
        while self._sync is not None and not self._poll(_WAIT_NANOSECONDS):
            pass

    def _poll(self, nanoseconds: int) -> bool:
        with self._device.current():
            gl = self._device.gl
            status = gl.glClientWaitSync(self._sync, self._flush, nanoseconds)
            self._flush = 0
            if status == _WAIT_FAILED:
                raise BackendError("glClientWaitSync failed: the GL context was lost or released")
            if status not in (_ALREADY_SIGNALED, _CONDITION_SATISFIED):
                return False
            gl.glDeleteSync(self._sync)
            self._sync = None
            return True

    def __del__(self) -> None:
        if self._sync is not None:  # nobody polled until the end
            self._device.free_later(partial(self._device.gl.glDeleteSync, self._sync))


class Device:
    """One moderngl context and all that workers and converters in it share."""

    def __init__(self, ctx: moderngl.Context, owned: bool) -> None:
        self.ctx, self.owned = ctx, owned
        self.thread: int | None = threading.get_ident()
        self._current_handle, self._handle = current_context.find_current()
        self.has_compute = ctx.version_code >= 430
        self.gl: Any = Entries(partial(entry_point, ctx), ctx.version_code)
        if self._handle is None and not self.gl.glGetString(_VERSION):  # an interface that we do not know is not asked
            raise BackendError(_NOT_CURRENT)
        # A context of its own is the only one where this exists; another one may get a dead one's handle.
        self._mark = self.gl.glFenceSync(_COMMANDS_COMPLETE, 0)
        self._conditional = ConditionalRendering(self.gl)
        self.make_fence: Callable[[], Any] = lambda: Fence(self)  # a test may put a fence of its own here
        self._garbage: deque[Callable[[], Any]] = deque()
        self._staging: dict[int, list[moderngl.Buffer]] = {}
        self._inside, self._is_guarded = 0, False
        self.allocations = 0  # buffers and textures made so far; tests look
        self.programs = ProgramCache(ctx)
        _devices.add(self)

    @cached_property
    def limits(self) -> dict[str, int]:
        """What this driver allows."""
        names = {"texture_size": 0x0D33, "uniform_alignment": 0x8A34, "uniform_block": 0x8A30}
        if self.has_compute:
            names |= {"storage_block": 0x90DE, "storage_alignment": 0x90DF}
        return {name: get(self.gl, number) for name, number in names.items()}

    @cached_property
    def texture_shift(self) -> int:
        """Tensors lie in textures of 2 ** shift texels a row."""
        return min(12, self.limits["texture_size"].bit_length() - 1)

    @cached_property
    def vertex_array(self) -> int:
        """An empty one, which core profiles want bound for a draw."""
        return generate(self.gl, "VertexArrays")

    @cached_property
    def framebuffer(self) -> int:
        """To draw into a texture of the caller's, which is attached for one draw."""
        return generate(self.gl, "Framebuffers")

    @cached_property
    def sampler(self) -> int:
        """Reads single texels of any texture; one without mipmaps is complete for it, whatever its own filter says."""
        name = generate(self.gl, "Samplers")
        for parameter in (0x2800, 0x2801):  # magnification and minification
            self.gl.glSamplerParameteri(name, parameter, 0x2600)  # nearest
        return name

    @contextmanager
    def current(self) -> Iterator[None]:
        """Our own context is current inside, and the one before it afterwards. A caller's must be current already.

        Raises BackendError where it is not, and ClosedError where it was released.
        """
        if threading.get_ident() != self.thread:
            raise BackendError(FORKED if self.thread is None else _ANOTHER_THREAD)
        if not self.owned:
            if isinstance(self.ctx.mglo, moderngl.InvalidObject):
                raise ClosedError(_RELEASED)
            if self._current_handle() != self._handle:
                raise BackendError(_NOT_CURRENT)
            yield
            return
        if self._inside:
            yield
            return
        previous = current_context.current()
        self._inside += 1
        try:
            with self.ctx:
                if self._current_handle() != self._handle:
                    raise BackendError(_BESIDE_A_WINDOW)
                yield
        finally:
            self._inside -= 1
            current_context.restore(previous)

    @contextmanager
    def using(self) -> Iterator[Any]:
        """The context is current, dropped objects are freed, and the caller's state is put back at the end."""
        with self.current(), self._guarded():
            self.collect()
            yield self.gl

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """A guard around the caller's state; in a context of our own, and inside of a guard, there is none to keep."""
        if self.owned or self._is_guarded:
            yield
            return
        if not self.gl.glIsSync(self._mark):
            raise BackendError(_REPLACED)
        self._conditional.refuse()
        units = (*range(MAX_INPUTS), self.ctx.default_texture_unit)  # moderngl binds to the latter
        self._is_guarded = True
        try:
            with StateGuard(self.gl, units, MAX_INPUTS + 1 if self.has_compute else 0):
                yield
        finally:
            self._is_guarded = False

    def buffer(self, size: int) -> moderngl.Buffer:
        """A new buffer of `size` bytes."""
        self.allocations += 1
        return self.ctx.buffer(reserve=size)

    def texture(self, size: tuple[int, int], kind: str) -> moderngl.Texture:
        """A new texture of four "float" or "int" numbers a texel."""
        self.allocations += 1
        texture = self.ctx.texture(size, 4, dtype="f4" if kind == "float" else "i4")
        texture.filter = (moderngl.NEAREST, moderngl.NEAREST)
        return texture

    def take_staging(self, size: int) -> moderngl.Buffer:
        """A buffer to read back through; give it back when it has been read."""
        rounded = max(256, 1 << (size - 1).bit_length())
        free = self._staging.setdefault(rounded, [])
        return free.pop() if free else self.buffer(rounded)

    def give_staging(self, buffer: moderngl.Buffer) -> None:
        """A staging buffer may be used again."""
        self._staging.setdefault(buffer.size, []).append(buffer)

    def drop(self, *objects: Any) -> None:
        """Free GL objects the next time that this device is used, on its thread."""
        self._garbage.extend(thing.release for thing in objects)

    def free_later(self, free: Callable[[], Any]) -> None:
        """The same, for what moderngl does not have."""
        self._garbage.append(free)

    def collect(self) -> None:
        """Free what was dropped."""
        while self._garbage:
            self._garbage.popleft()()

    def close(self) -> None:
        """Free what was dropped, if that can be done here and now."""
        with suppress(BackendError, ClosedError), self.using():
            pass  # where its context is not current, it is freed with the next use, or goes with the context


_devices: weakref.WeakSet[Device] = weakref.WeakSet()
_default: dict[int, tuple[threading.Thread, Device]] = {}  # by the thread's number
_sharing = new_lock()  # held by who looks at these
_ON_CONTEXT = "_perframe_device"
_ENTERABLE = ("egl", "x11", "wgl", "darwin")  # glcontext's; `with ctx:` makes none of the others current


def _after_fork() -> None:
    """A driver's threads are not in the child: no thread there may use a device."""
    for device in _devices:
        device.thread = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def device_for(ctx: Any) -> Device:
    """The device of the caller's context; without one, this thread's own headless context."""
    claim_process()
    if ctx is None:
        return _own_device()
    if not isinstance(ctx, moderngl.Context):
        raise BackendError(f"ctx must be a moderngl.Context, not {type(ctx).__name__}")
    if isinstance(ctx.mglo, moderngl.InvalidObject):
        raise ClosedError(_RELEASED)
    # It lives on the context itself: a table of ours would keep both for ever, since they know each other.
    found: Device | None = vars(ctx).get(_ON_CONTEXT)
    if found is None:
        _check(ctx)
        found = vars(ctx)[_ON_CONTEXT] = Device(ctx, owned=False)
    return found


def _own_device() -> Device:
    """This thread's own: that of a thread which has ended, where there is one, since contexts are dear to make, and
    moderngl does not give back all that they take.
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
    """A device that no thread has any more, which is the caller's then, who holds the lock."""
    for key, (thread, device) in _default.items():
        # Python does not know when threads end that others made, nor may Windows' contexts outlive their threads
        if IS_EGL and not isinstance(thread, threading._DummyThread) and not thread.is_alive():
            del _default[key]
            return device
    return None


def _check(ctx: moderngl.Context) -> None:
    """Raise BackendError for a context that cannot be used, or is not current."""
    if ctx.version_code < 330:
        raise BackendError(
            f"this GL context has OpenGL {ctx.version_code / 100:.1f}, and perframe needs 3.3: ask the window for it"
        )
    maker = type(ctx.mglo._context).__module__
    if maker not in _ENTERABLE:
        return
    handle, previous = current_context.find_current()[1], current_context.current()
    if maker == "x11" and previous.context is not None:  # X ends a process that enters one beside EGL's
        raise BackendError(_NOT_CURRENT)
    try:
        with ctx:
            its_own = current_context.find_current()[1]
    finally:
        current_context.restore(previous)
    if its_own != handle:
        raise BackendError(_NOT_CURRENT)


def _headless() -> Device:
    """A context of our own. Raises BackendError, also where what it speaks to would be a window's context."""
    previous = current_context.current()
    # moderngl.create_context() in a window gives what was made last in this process: that must not be ours
    default = moderngl._store.default_context  # type: ignore[attr-defined]
    try:
        ctx = create_headless(moderngl.create_context)
        if IS_EGL and current_context.current().context is None:
            raise BackendError(_BESIDE_A_WINDOW)
        device = Device(ctx, owned=True)
        ctx.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        return device
    finally:
        moderngl._store.default_context = default  # type: ignore[attr-defined]
        current_context.restore(previous)
