"""A GL context as both backends see it: its limits, programs, fences, staging buffers, and objects to be freed."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property, partial
from typing import Any

import moderngl

from perframe.backends.gl.compile.program import ProgramCache
from perframe.backends.gl.compile.variants import Choices
from perframe.backends.gl.context.extents import buffer_of_one_kind, texture_of_one_kind
from perframe.backends.gl.context.state import ConditionalRendering, StateGuard, refuse_old_modes
from perframe.backends.gl.texels import SHEETS
from perframe.errors import BackendError, ClosedError
from perframe.graphics import current_context
from perframe.graphics.functions import Entries, generate, get
from perframe.graphics.headless_context import FORKED, entry_point
from perframe.graphics.software import is_software
from perframe.tensor.locks import new_lock
from perframe.tensor.memory import Held

MAX_INPUTS = 7
# The most rounds of all loops of a shader. llvmpipe silently ends a shader after 65,535. A GPU takes about 0.1 s for as
# many as the second number: it computes the other elements meanwhile.
FEWEST_ROUNDS, MOST_ROUNDS = 60_000, 1 << 20
_ALREADY_SIGNALED, _CONDITION_SATISFIED, _WAIT_FAILED = 0x911A, 0x911C, 0x911D
_COMMANDS_COMPLETE, _FLUSH_BIT = 0x9117, 1
_WAIT_NANOSECONDS = 10**9
_RENDERER, _VERSION = 0x1F01, 0x1F02
_TEXTURE_DTYPES = {"float": "f4", "half": "f2", "int": "i4"}  # moderngl's names for them
BESIDE_A_WINDOW = (
    "a window's GL context is current in this thread, and a headless one cannot be made beside it: give the worker the "
    "window's context, ctx=app.ctx in a script, or else ctx=moderngl.create_context()"
)
_ANOTHER_THREAD = (
    "a GL worker or tensor was used from another thread than the one that made it, to which its GL context belongs: "
    "make a worker in each thread"
)
RELEASED = "the moderngl context was released, and its tensors and programs with it: make a new context and new workers"
NOT_CURRENT = (
    "another GL context than that of ctx is current in this thread, or none: before you use its workers, tensors and "
    "converters, make it current as your window does it (glfw.make_context_current(window), window.switch_to()), or "
    "a standalone one by `with ctx:`. That of an App is current within its frames: of two Apps, use each one's workers "
    "in its own scripts. Two windows need two moderngl contexts: call moderngl.init_context() in the second, and take "
    "moderngl.get_context()"
)
_REPLACED = (
    "the window's GL context was replaced by another since ctx was first used, and its tensors are gone: call "
    "moderngl.init_context(), take moderngl.get_context(), and make new workers and converters"
)
# llvmpipe, where it looks whether a texture is used, reads what the contexts of other threads have drawn, without a
# lock, and crashes (Mesa 22.3). Thus one thread at a time makes calls.
one_thread = new_lock()


class GLFence:
    """A fence is done when the GPU has finished all work that was submitted before it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._sync = device.gl.glFenceSync(_COMMANDS_COMPLETE, 0)
        self._flush = _FLUSH_BIT

    @property
    def done(self) -> bool:
        """Whether the GPU has reached the fence. Never blocks."""
        return self._sync is None or self._poll(0)

    def wait(self) -> None:
        """Block until the fence is done. Raises BackendError if the context was lost."""
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
        if self._sync is not None:  # it was dropped before a poll found it done
            self._device.free_later(partial(self._device.gl.glDeleteSync, self._sync))


class Device:
    """One moderngl context, and everything that the workers and converters in it share."""

    def __init__(self, ctx: moderngl.Context, owned: bool) -> None:
        self.ctx, self.owned = ctx, owned
        self.thread: int | None = threading.get_ident()
        self._current_handle, self._handle = current_context.find_current()
        self.has_compute = ctx.version_code >= 430
        self.gl: Any = Entries(partial(entry_point, ctx), ctx.version_code)
        # Without a handle, an interface that we do not ask may have made a context current: then GL has a version.
        if self._handle is None and not self.gl.glGetString(_VERSION):
            raise BackendError(NOT_CURRENT)
        # The context is current here. Elsewhere GL returns no name, and a software device would pass for a GPU.
        renderer = self.gl.glGetString(_RENDERER)
        name = ctypes.string_at(renderer).decode(errors="replace") if renderer else ""
        self.name, self._is_llvmpipe, self.is_software = name, "llvmpipe" in name, is_software(name)
        self.lends = self._is_llvmpipe and "GL_AMD_pinned_memory" in ctx.extensions  # buffers may lie in arrays
        # This fence exists in this context alone. A handle proves less: a new context may get a dead one's handle.
        self._mark = self.gl.glFenceSync(_COMMANDS_COMPLETE, 0)
        self._conditional = ConditionalRendering(self.gl)
        self.make_fence: Callable[[], Any] = lambda: GLFence(self)  # a test may put a fence of its own here
        self._garbage: deque[Callable[[], Any]] = deque()
        self._staging: dict[int, list[moderngl.Buffer]] = {}
        self._inside, self._is_guarded = 0, False
        self.moves = 0  # storages that got another GL name so far: command lists write names again
        self.mapped: set[Any] = set()  # the storages that CUDA has mapped
        self.allocations = 0  # buffers and textures made so far, for tests
        self.programs = ProgramCache(ctx, self.gl)
        self.templates: dict[Any, weakref.WeakValueDictionary[Any, Any]] = {}  # of plans for any sizes, by the backend
        _devices.add(self)

    @cached_property
    def _guard(self) -> StateGuard:
        units = (*range(MAX_INPUTS), self.ctx.default_texture_unit)  # moderngl binds to the latter
        return StateGuard(self.gl, units, MAX_INPUTS + 1 if self.has_compute else 0, self.ctx.extensions)

    @cached_property
    def limits(self) -> dict[str, int]:
        """The limits of this driver, by name."""
        names = {"texture_size": 0x0D33, "uniform_alignment": 0x8A34, "uniform_block": 0x8A30}
        if self.has_compute:
            names |= {"storage_block": 0x90DE, "storage_alignment": 0x90DF, "viewed_texels": 0x8C2B}
        return {name: get(self.gl, number) for name, number in names.items()}

    @cached_property
    def most_rounds(self) -> int:
        """The most rounds that all loops of a shader may take together."""
        return FEWEST_ROUNDS if self._is_llvmpipe else MOST_ROUNDS

    @cached_property
    def choices(self) -> Choices:
        """The variants of kernels on this driver."""
        with self.current():
            return Choices([self.ctx.info[name] for name in ("GL_VENDOR", "GL_RENDERER", "GL_VERSION")])

    @property
    def viewed_texels(self) -> int:
        """The most texels that kernels read through a view of the buffer; 0 if they read the buffer itself."""
        return self.limits["viewed_texels"] if self.choices["reads"] == "views" else 0

    @property
    def computes_in_calls(self) -> bool:
        """Whether the call that dispatches a compute shader returns when its work is done: so it is on llvmpipe, unless
        another driver runs on it (zink, over Vulkan).
        """
        return self.name.startswith("llvmpipe")

    @cached_property
    def texture_shift(self) -> int:
        """The binary logarithm of a texture's width: tensors lie in textures of up to 2 ** shift columns."""
        return min(6, self.limits["texture_size"].bit_length() - 1)

    @cached_property
    def vertex_array(self) -> int:
        """An empty vertex array. Core profiles require a bound one for a draw."""
        return generate(self.gl, "VertexArrays")

    @cached_property
    def framebuffer(self) -> int:
        """A framebuffer to draw into the caller's textures: each is attached for one draw."""
        return generate(self.gl, "Framebuffers")

    @cached_property
    def sampler(self) -> int:
        """A sampler that reads single texels. It makes a texture without mipmaps complete, whatever its own filter."""
        name = generate(self.gl, "Samplers")
        for parameter in (0x2800, 0x2801):  # magnification and minification
            self.gl.glSamplerParameteri(name, parameter, 0x2600)  # nearest
        for parameter in (0x2802, 0x2803):  # across and down
            self.gl.glSamplerParameteri(name, parameter, 0x812F)  # clamp to edge
        return name

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make our own context current inside the block, and restore the previous one afterwards.

        A caller's context must be current already: raises BackendError if it is not, and ClosedError if it was
        released.
        """
        with one_thread if self._is_llvmpipe else nullcontext():
            self._check_thread()
            if not self.owned or self._inside:
                yield
                return
            previous = current_context.current()
            self._inside += 1
            try:
                with self.ctx:
                    if self._current_handle() != self._handle:
                        raise BackendError(BESIDE_A_WINDOW)
                    yield
            finally:
                self._inside -= 1
                current_context.restore(previous)

    @property
    def is_usable(self) -> bool:
        """Whether this thread may use the context now. True for a released one: to use it says what is wrong."""
        if threading.get_ident() != self.thread:
            return False
        is_released = isinstance(self.ctx.mglo, moderngl.InvalidObject)
        return self.owned or is_released or bool(self._current_handle() == self._handle)

    def _check_thread(self) -> None:
        if threading.get_ident() != self.thread:
            raise BackendError(FORKED if self.thread is None else _ANOTHER_THREAD)
        if not self.owned:
            if isinstance(self.ctx.mglo, moderngl.InvalidObject):
                raise ClosedError(RELEASED)
            if self._current_handle() != self._handle:
                raise BackendError(NOT_CURRENT)

    @contextmanager
    def using(self) -> Iterator[Any]:
        """Make the context current and free dropped objects; restore the caller's GL state at the end."""
        with self.current(), self._guarded():
            self.collect()
            yield self.gl

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Restore the caller's GL state at the end of a block in which other code may run, a user's layer for one.

        It is not `using`, since that code may wait for another thread.
        """
        self._check_thread()
        with self._guarded():
            yield

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Guard the caller's GL state. A context of our own needs no guard, nor does code that runs inside of one."""
        if self.owned or self._is_guarded:
            yield
            return
        if not self.gl.glIsSync(self._mark):
            raise BackendError(_REPLACED)
        refuse_old_modes(self.gl)
        self._conditional.refuse()
        self._is_guarded = True
        try:
            with self._guard:
                yield
        finally:
            self._is_guarded = False

    def buffer(self, size: int) -> moderngl.Buffer:
        """A new buffer of at least `size` bytes. Raises MemoryLimitError."""
        return self._buffer(self.buffer_bytes(size))

    def buffer_bytes(self, size: int) -> int:
        """The bytes of the buffer that is made for `size` bytes."""
        return buffer_of_one_kind(size) if self._is_llvmpipe else size

    def _buffer(self, size: int) -> moderngl.Buffer:
        held = self._held(size, "a GL buffer")
        buffer = self.ctx.buffer(reserve=size)
        buffer.extra = held
        return buffer

    def _held(self, size: int, purpose: str) -> Held:
        """Count the bytes of a GL object, after those that were dropped are free."""
        self.allocations += 1
        self.collect()
        return Held(size, purpose)

    def texture(self, size: tuple[int, int], kind: str) -> moderngl.TextureArray:
        """A new array texture of at least this size, with four numbers a texel; `kind` is "float", "half" or "int".
        Raises MemoryLimitError.
        """
        held = self._held(self.texture_bytes(size, 2 if kind == "half" else 4), "a GL texture")
        size = self._texture_size(size)
        texture = self.ctx.texture_array((*size, SHEETS), 4, dtype=_TEXTURE_DTYPES[kind])
        texture.extra = held
        texture.filter = (moderngl.NEAREST, moderngl.NEAREST)
        return texture

    def texture_bytes(self, size: tuple[int, int], element_bytes: int) -> int:
        """The bytes of the texture that is made for this size."""
        width, height = self._texture_size(size)
        return width * height * SHEETS * 4 * element_bytes

    def _texture_size(self, size: tuple[int, int]) -> tuple[int, int]:
        return texture_of_one_kind(size, self.limits["texture_size"]) if self._is_llvmpipe else size

    def take_staging(self, size: int) -> moderngl.Buffer:
        """Take a buffer of at least `size` bytes for a readback; return it by `give_staging` once it is read."""
        rounded = max(256, 1 << (size - 1).bit_length())
        free = self._staging.setdefault(rounded, [])
        return free.pop() if free else self._buffer(rounded)  # of exactly this size, since the pool goes by sizes

    def give_staging(self, buffer: moderngl.Buffer) -> None:
        """Return a staging buffer to the pool."""
        self._staging.setdefault(buffer.size, []).append(buffer)

    def free_spare(self) -> None:
        """Free dropped objects and unused staging buffers, if the context is current in this thread."""
        with suppress(BackendError, ClosedError), self.using():
            for buffers in self._staging.values():
                while buffers:
                    buffers.pop().release()
            self.collect()

    def drop(self, *objects: Any) -> None:
        """Free GL objects when this device is next used, on its thread."""
        self._garbage.extend(thing.release for thing in objects)

    def free_later(self, free: Callable[[], Any]) -> None:
        """Call `free` when this device is next used, on its thread: for GL objects that moderngl does not wrap."""
        self._garbage.append(free)

    def collect(self) -> None:
        """Free the dropped objects."""
        while self._garbage:
            self._garbage.popleft()()

    def free_dropped(self) -> None:
        """Free the dropped objects and keep compiled programs now, if the context is current in this thread."""
        with suppress(BackendError, ClosedError), self.using():
            self.programs.keep()
        # otherwise the next use frees them, or the end of the context


_devices: weakref.WeakSet[Device] = weakref.WeakSet()


def _after_fork() -> None:
    """Let no thread use a device in a forked child, which lacks the driver's threads."""
    for device in _devices:
        device.thread = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
