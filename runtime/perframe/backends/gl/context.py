"""A GL context as both backends see it: its limits, its programs, fences, staging buffers, and what waits to be
freed.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import moderngl

from perframe.backends.gl import egl
from perframe.backends.gl.entries import Entries, get
from perframe.backends.gl.program import ProgramCache
from perframe.backends.gl.state import StateGuard
from perframe.errors import BackendError
from perframe.headless_context import IS_EGL, create_headless

MAX_INPUTS = 7
_ALREADY_SIGNALED, _CONDITION_SATISFIED, _WAIT_FAILED = 0x911A, 0x911C, 0x911D
_COMMANDS_COMPLETE, _FLUSH_BIT = 0x9117, 1
_WAIT_NANOSECONDS = 10**9
_BESIDE_A_WINDOW = (
    "a window's GL context is current in this thread, and a headless one cannot be beside it: give the worker the "
    "window's, ctx=moderngl.create_context()"
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
        self.thread = threading.get_ident()
        self._egl_context = egl.current().context
        self.has_compute = ctx.version_code >= 430
        self.gl: Any = Entries(ctx.mglo._context.load, self.has_compute)
        self.make_fence: Callable[[], Any] = lambda: Fence(self)  # a test may put a fence of its own here
        self._garbage: deque[Callable[[], Any]] = deque()
        self._staging: dict[int, list[moderngl.Buffer]] = {}
        self._inside, self._is_guarded = 0, False
        self.allocations = 0  # buffers and textures made so far; tests look
        self.programs = ProgramCache(ctx)

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
        return self._generate("VertexArrays")

    @cached_property
    def framebuffer(self) -> int:
        """To draw into a texture of the caller's, which is attached for one draw."""
        return self._generate("Framebuffers")

    @cached_property
    def sampler(self) -> int:
        """Reads single texels of any texture; one without mipmaps is complete for it, whatever its own filter says."""
        name = self._generate("Samplers")
        for parameter in (0x2800, 0x2801):  # magnification and minification
            self.gl.glSamplerParameteri(name, parameter, 0x2600)  # nearest
        return name

    def _generate(self, kind: str) -> int:
        name = ctypes.c_uint()
        getattr(self.gl, f"glGen{kind}")(1, ctypes.byref(name))
        return int(name.value)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Our own context is current inside, and the one before it afterwards. A caller's own is current already."""
        if threading.get_ident() != self.thread:
            raise BackendError(
                "a GL worker or tensor was used from another thread than the one that made it: a GL context belongs to "
                "one thread"
            )
        if self._inside or not self.owned:
            yield
            return
        previous = egl.current()
        self._inside += 1
        try:
            with self.ctx:
                if egl.current().context != self._egl_context:
                    raise BackendError(_BESIDE_A_WINDOW)
                yield
        finally:
            self._inside -= 1
            egl.restore(previous)

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


_devices: weakref.WeakKeyDictionary[moderngl.Context, Device] = weakref.WeakKeyDictionary()
_default: dict[int, Device] = {}


def device_for(ctx: Any) -> Device:
    """The device of the caller's context; without one, this thread's own headless context."""
    if ctx is None:
        key = threading.get_ident()
        if key not in _default:
            previous = egl.current()
            try:
                ctx = _headless()
                _default[key] = Device(ctx, owned=True)
                ctx.__exit__(None, None, None)
            finally:
                egl.restore(previous)
        return _default[key]
    if not isinstance(ctx, moderngl.Context):
        raise BackendError(f"ctx must be a moderngl.Context, not {type(ctx).__name__}")
    if ctx not in _devices:
        _devices[ctx] = Device(ctx, owned=False)
    return _devices[ctx]


def _headless() -> moderngl.Context:
    """A context of our own. Raises BackendError, also where what it speaks to would be a window's context."""
    ctx = create_headless(moderngl.create_context)
    if IS_EGL and egl.current().context is None:
        raise BackendError(_BESIDE_A_WINDOW)
    return ctx
