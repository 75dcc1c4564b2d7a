"""Passes between the caller's textures and tensors: one draw or dispatch each, bound once and replayed."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import moderngl

from perframe.backends.gl.backend import GLBackend
from perframe.backends.gl.compute import ComputeBackend, ReadBuffer
from perframe.backends.gl.context import Device, device_for
from perframe.backends.gl.pixel import PixelBackend, texture_accessors
from perframe.backends.gl.program import Kernel, Numbers, compose, load_kernel
from perframe.backends.gl.replay import CommandList, Name
from perframe.backends.gl.sequence import GLStep
from perframe.backends.gl.state import DRAW_BINDING, TEXTURE_2D_ARRAY, TEXTURE_2D_BINDING, VIEWPORT
from perframe.backends.gl.steps import Binding
from perframe.backends.operand import Operand
from perframe.errors import BackendError, ClosedError, InputError
from perframe.graphics.functions import get, get_four
from perframe.tensor import BackendType, Storage, Tensor

_TEXTURE_2D, _TEXTURE0, _WIDTH, _HEIGHT, _RED_TYPE = 0x0DE1, 0x84C0, 0x1000, 0x1001, 0x8C10
_DRAW_FRAMEBUFFER, _UNIFORM_BUFFER, _STORAGE_BUFFER, _TRIANGLES = 0x8CA9, 0x8A11, 0x90D2, 4
_COLOR_ATTACHMENT, _COMPLETE = 0x8CE0, 0x8CD5
_INTEGERS = (0x1404, 0x1405)
_BARRIERS = 0xFFFFFFFF
_MAX_BOUND = 64  # passes that stay bound; beyond that, the least recently used one is dropped


class _Pass:
    """A kernel's uniform buffer, which is written only when the numbers change, and the pass that reads it."""

    def __init__(self, device: Device, kernel: Kernel, step: Any, size: int) -> None:
        self.step = step
        self._device, self._kernel, self._size = device, kernel, size
        self._block = b""
        self._uniforms: Any = None

    def run(self, gl: Any, params: Mapping[str, Numbers]) -> None:
        """Submit the pass with these numbers."""
        block = self._kernel.pack({"O_size": self._size, "O_tiles": 0, **params}, "float")
        if self._uniforms is None:
            self._uniforms = self._device.buffer(len(block))
        if block != self._block:
            self._uniforms.write(block)
            self._block = block
        self.step.run(gl, self._uniforms.glo)

    def __del__(self) -> None:
        if self._uniforms is not None:
            self._device.drop(self._uniforms)


@dataclass(frozen=True, eq=False)
class _Texture:
    """The caller's texture, by its GL name."""

    glo: int


class _Sample:
    """A step that samples a texture into a tensor; both stand in for those with which it was recorded."""

    def __init__(self, step: GLStep, texture: _Texture, tensor: object) -> None:
        self._step, self._planned = step, (texture, tensor)
        self.texture, self.tensor = texture, tensor
        self._commands: CommandList | None = None

    def run(self, gl: Any, uniforms: int) -> None:
        """Replay the step."""
        bound = dict(zip(self._planned, (self.texture, self.tensor), strict=True))
        if self._commands is None:
            commands = CommandList(gl, bound)
            self._step.record(commands, uniforms)
            self._commands = commands.finish()
            bound.clear()  # the list must not keep a dropped tensor alive
        else:
            for planned, new in bound.items():
                self._commands.replace(planned, new)
        self._commands.run()


class _Draw:
    """A pass that draws a tensor into pixels."""

    def __init__(self, device: Device, compute: bool) -> None:
        self.kernel = load_kernel("convert/tensor_to_texture")
        accessors = [ReadBuffer("X", "float", 0).accessor] if compute else texture_accessors(device, {"X": "float"})
        text = compose(self.kernel, "draw", accessors, {"O_TYPE": "float"}, "", 430 if compute else 330)
        self._program = device.programs.get(text, [] if compute else ["X_texture"], self.kernel.name).glo
        self._vertex_array, self._sampler, self._compute = device.vertex_array, device.sampler, compute
        self.input: Any = None
        self.target, self.viewport = 0, (0, 0, 0, 0)

    def run(self, gl: Any, uniforms: int) -> None:
        """Bind and draw."""
        gl.glUseProgram(self._program)
        gl.glBindBufferBase(_UNIFORM_BUFFER, 0, uniforms)
        if self._compute:
            gl.glMemoryBarrier(_BARRIERS)
            gl.glBindBufferBase(_STORAGE_BUFFER, 0, self.input.glo)
        else:
            gl.glActiveTexture(_TEXTURE0)
            gl.glBindTexture(TEXTURE_2D_ARRAY, self.input.glo)
            gl.glBindSampler(0, self._sampler)
        gl.glBindFramebuffer(_DRAW_FRAMEBUFFER, self.target)
        gl.glViewport(*self.viewport)
        gl.glBindVertexArray(self._vertex_array)
        gl.glDrawArrays(_TRIANGLES, 0, 3)


class TexturePasses:
    """All passes of one TextureConverter."""

    def __init__(self, ctx: Any) -> None:
        self._device = device_for(ctx)
        with self._device.current():
            backends: list[GLBackend] = [PixelBackend(self._device)]
            if self._device.has_compute:
                backends.insert(0, ComputeBackend(self._device))
        self._backends = {backend.backend_type: backend for backend in backends}
        self._bound: OrderedDict[Any, _Pass] = OrderedDict()
        self._own: dict[Any, Storage] = {}

    @property
    def default(self) -> BackendType:
        """The backend on which a tensor without storage is placed."""
        return next(iter(self._backends))

    def alloc(self, backend: BackendType, tensor: Tensor) -> Storage:
        """Allocate storage for a tensor. Raises BackendError if this context lacks the backend."""
        if backend not in self._backends:
            raise BackendError(f"this GL context has no {backend}: it is GL {self._device.ctx.version_code / 100:.1f}")
        return self._backends[backend].alloc(tensor.shape, tensor.dtype)

    def own_storage(self, tensor: Tensor) -> Storage:
        """GPU storage that stands in for a tensor on the CPU."""
        key = (tensor.shape, tensor.dtype)
        if key not in self._own:
            self._own[key] = self.alloc(self.default, tensor)
        return self._own[key]

    def texture_size(self, texture: Any) -> tuple[int, int]:
        """Width and height of the caller's texture, a moderngl object or a GL name. Raises InputError, ClosedError."""
        if isinstance(texture, moderngl.Texture):
            self._check_object(texture)
            if texture.dtype[0] in "iu" or texture.samples:
                kind = f"{texture.dtype} texture" + (f" of {texture.samples} samples" if texture.samples else "")
                raise InputError(f"a {kind} holds no picture: its values must be float, or 0..1 in bytes")
            return int(texture.width), int(texture.height)
        if not isinstance(texture, Integral) or isinstance(texture, bool):
            raise InputError(f"a texture is a moderngl.Texture or a GL name, not {type(texture).__name__}")
        value, found, texture = ctypes.c_int(), [], int(texture)
        with self._device.using() as gl:
            gl.glActiveTexture(_TEXTURE0)
            gl.glBindTexture(_TEXTURE_2D, 0)
            if gl.glIsTexture(texture):
                gl.glBindTexture(_TEXTURE_2D, texture)
                if get(gl, TEXTURE_2D_BINDING) != texture:
                    gl.glGetError()  # we caused this error: the texture is not a 2D one
            for name in (_WIDTH, _HEIGHT, _RED_TYPE):
                gl.glGetTexLevelParameteriv(_TEXTURE_2D, 0, name, ctypes.byref(value))
                found.append(value.value)
        if not found[0] or not found[1] or found[2] in _INTEGERS:
            raise InputError(f"GL name {texture} is no 2D texture whose pixels are floats, or bytes for 0..1")
        return found[0], found[1]

    def to_tensor(self, texture: Any, tensor: Tensor, storage: Any, params: Mapping[str, Numbers]) -> None:
        """Sample a texture into a tensor's storage."""
        self.check(tensor, storage)

        def make() -> _Pass:
            place: Any = object()  # of the tensor's storage
            output = Operand("tensor", tensor.shape, tensor.dtype, storage=place)
            kernel, texture = load_kernel("convert/texture_to_tensor"), _Texture(0)
            binding = Binding("to_tensor", kernel, {}, output, params, {}, "", {"T": Name(texture, "glo")})
            step = self._backends[storage.backend_type].bind(binding)
            return _Pass(self._device, kernel, _Sample(step, texture, place), tensor.shape.size)

        with self._device.using() as gl:
            found = self._pass(("to_tensor", storage.backend_type, tensor.shape), make)
            found.step.texture, found.step.tensor = _Texture(_name(texture)), storage
            found.run(gl, params)
            found.step.tensor = None  # the pass must not keep a dropped tensor alive

    def viewport(self, framebuffer: Any) -> tuple[int, int, int, int]:
        """The area of the caller's framebuffer; without one, the current viewport."""
        if framebuffer is not None:
            return (0, 0, *self._framebuffer(framebuffer).size)
        with self._device.current():
            return get_four(self._device.gl, VIEWPORT)

    def draw(
        self,
        tensor: Tensor,
        storage: Any,
        target: Any,
        params: Mapping[str, Numbers],
        viewport: tuple[int, int, int, int],
        offset: tuple[int, int],
    ) -> None:
        """Draw a tensor into a texture, a framebuffer, or (None) the bound framebuffer.

        `viewport` is the area that the tensor covers. `offset` is the pixel from which `params["origin"]` counts.
        """
        self.check(tensor, storage)
        origin: Any = params["origin"]
        params = {**params, "origin": (origin[0] + offset[0], origin[1] + offset[1])}

        def make() -> _Pass:
            step = _Draw(self._device, storage.backend_type == BackendType.GPU_COMPUTE)
            return _Pass(self._device, step.kernel, step, 0)

        with self._device.using() as gl:
            found = self._pass(("draw", storage.backend_type), make)
            step = found.step
            if target is None:
                step.target = get(gl, DRAW_BINDING)
            elif isinstance(target, (moderngl.Texture, Integral)):
                step.target = self._attach(gl, target)
            else:
                step.target = self._framebuffer(target).glo
            step.input, step.viewport = storage, viewport
            found.run(gl, params)
            step.input = None
            if step.target == self._device.framebuffer:
                gl.glFramebufferTexture2D(_DRAW_FRAMEBUFFER, _COLOR_ATTACHMENT, _TEXTURE_2D, 0, 0)

    def _attach(self, gl: Any, texture: Any) -> int:
        """Attach the caller's texture to our framebuffer, and return the framebuffer's name."""
        gl.glBindFramebuffer(_DRAW_FRAMEBUFFER, self._device.framebuffer)
        gl.glFramebufferTexture2D(_DRAW_FRAMEBUFFER, _COLOR_ATTACHMENT, _TEXTURE_2D, _name(texture), 0)
        if gl.glCheckFramebufferStatus(_DRAW_FRAMEBUFFER) != _COMPLETE:
            gl.glFramebufferTexture2D(_DRAW_FRAMEBUFFER, _COLOR_ATTACHMENT, _TEXTURE_2D, 0, 0)
            raise InputError(f"this driver cannot draw into {texture}: use a texture of one, two or four channels")
        return self._device.framebuffer

    def _framebuffer(self, target: Any) -> Any:
        if not isinstance(target, moderngl.Framebuffer):
            raise InputError(f"tensors are drawn into a moderngl.Framebuffer, not {type(target).__name__}")
        self._check_object(target)
        return target

    def _check_object(self, thing: Any) -> None:
        """Raise ClosedError for a released texture or framebuffer, and InputError for one of another context."""
        kind = type(thing).__name__
        if isinstance(thing.mglo, moderngl.InvalidObject):
            raise ClosedError(f"this moderngl.{kind} was released")
        if thing.ctx is not self._device.ctx:
            raise InputError(
                f"this moderngl.{kind} belongs to another moderngl.Context than the TextureConverter: give both the "
                "same ctx; if two contexts share their textures, pass the texture's GL name, texture.glo"
            )

    def check(self, tensor: Tensor, storage: Any) -> None:
        """Raise ClosedError for a released tensor, and InputError for one in another context."""
        storage.glo  # noqa: B018  # raises if it was released
        if storage.device is not self._device:
            raise InputError(
                f"tensor {tensor.name!r} {tensor.shape} lies in another GL context: give its worker and the "
                "TextureConverter the same ctx"
            )

    def _pass(self, key: Any, make: Callable[[], _Pass]) -> _Pass:
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = make()
            if len(self._bound) > _MAX_BOUND:
                self._bound.popitem(last=False)
        self._bound.move_to_end(key)
        return found

    def release(self) -> None:
        """Free the bound passes and their storage."""
        self._bound.clear()
        for storage in self._own.values():
            storage.release()
        self._own.clear()


def _name(texture: Any) -> int:
    return int(texture if isinstance(texture, Integral) else texture.glo)
