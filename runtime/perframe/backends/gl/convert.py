"""Passes between the caller's textures and tensors: one draw or dispatch each, bound once and replayed."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import moderngl

from perframe.backends.base import Operand
from perframe.backends.gl.backend import GLBackend
from perframe.backends.gl.compute import ComputeBackend, buffer_accessor
from perframe.backends.gl.context import device_for
from perframe.backends.gl.entries import get, get_four
from perframe.backends.gl.pixel import PixelBackend, texture_accessor
from perframe.backends.gl.program import Numbers, compose, load_kernel
from perframe.backends.gl.state import DRAW_BINDING, VIEWPORT
from perframe.backends.gl.steps import Binding, GLProgram
from perframe.errors import BackendError, InputError
from perframe.tensor import BackendType, Storage, Tensor

_TEXTURE_2D, _TEXTURE0, _WIDTH, _HEIGHT = 0x0DE1, 0x84C0, 0x1000, 0x1001
_DRAW_FRAMEBUFFER, _UNIFORM_BUFFER, _STORAGE_BUFFER, _TRIANGLES = 0x8CA9, 0x8A11, 0x90D2, 4
_BARRIERS = 0xFFFFFFFF
_MAX_BOUND = 64  # passes that stay bound; the least lately used go


class _Draw:
    """A pass from a tensor to pixels, as a step of a program."""

    def __init__(self, layer: str, program: int, block: bytes, storage: Any, vertex_array: int) -> None:
        self.layer, self.block, self.offset = layer, block, 0
        self._program, self._storage, self._vertex_array = program, storage, vertex_array
        self.target, self.viewport = 0, (0, 0, 0, 0)

    def replace(self, old: Storage, new: Storage) -> None:
        """Read `new` wherever `old` was read."""
        if self._storage is old:
            self._storage = new

    def run(self, gl: Any, uniforms: int) -> None:
        """Bind and draw."""
        gl.glUseProgram(self._program)
        gl.glBindBufferRange(_UNIFORM_BUFFER, 0, uniforms, self.offset, len(self.block))
        if self._storage.backend_type == BackendType.GPU_COMPUTE:
            gl.glMemoryBarrier(_BARRIERS)
            gl.glBindBufferBase(_STORAGE_BUFFER, 0, self._storage.glo)
        else:
            gl.glActiveTexture(_TEXTURE0)
            gl.glBindTexture(_TEXTURE_2D, self._storage.glo)
            gl.glBindSampler(0, 0)
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
        self._bound: OrderedDict[Any, tuple[Any, GLProgram]] = OrderedDict()
        self._framebuffers: dict[int, Any] = {}
        self._own: dict[Any, Storage] = {}

    @property
    def default(self) -> BackendType:
        """Where a tensor without storage is put."""
        return next(iter(self._backends))

    def alloc(self, backend: BackendType, tensor: Tensor) -> Storage:
        """Storage for a tensor. Raises BackendError where this context has no such backend."""
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
        """Width and height of the caller's texture: an object, or a GL name. Raises InputError."""
        if hasattr(texture, "size"):
            width, height = texture.size
            return int(width), int(height)
        if not isinstance(texture, int):
            raise InputError(f"a texture is a moderngl.Texture or a GL name, not {type(texture).__name__}")
        value = ctypes.c_int()
        with self._device.using() as gl:
            gl.glActiveTexture(_TEXTURE0)
            gl.glBindTexture(_TEXTURE_2D, texture)
            sizes = []
            for name in (_WIDTH, _HEIGHT):
                gl.glGetTexLevelParameteriv(_TEXTURE_2D, 0, name, ctypes.byref(value))
                sizes.append(value.value)
        if not all(sizes):
            raise InputError(f"GL name {texture} is no 2D texture with pixels")
        return sizes[0], sizes[1]

    def to_tensor(self, texture: Any, tensor: Tensor, storage: Storage, params: Mapping[str, Numbers]) -> None:
        """Sample a texture into a tensor's storage."""
        name = texture if isinstance(texture, int) else int(texture.glo)
        key = ("to_tensor", id(storage), tensor.shape, _frozen(params))
        bound = self._bound.get(key)
        if bound is None:
            output = Operand("tensor", tensor.shape, tensor.dtype, None, lambda: storage)
            binding = Binding("to_tensor", "convert/texture_to_tensor", {}, output, params, {}, "", {"T": name})
            with self._device.using():
                step: Any = self._backends[storage.backend_type].bind(binding)
            bound = self._keep(key, step)
        step, program = bound
        step.textures[0] = name
        self._bound.move_to_end(key)
        program.run(0, 1)

    def viewport(self, framebuffer: Any) -> tuple[int, int, int, int]:
        """The bound viewport, or the whole of the caller's framebuffer."""
        if framebuffer is not None:
            return (0, 0, *framebuffer.size)
        with self._device.current():
            return get_four(self._device.gl, VIEWPORT)

    def draw(
        self,
        tensor: Tensor,
        storage: Storage,
        target: Any,
        params: Mapping[str, Numbers],
        viewport: tuple[int, int, int, int],
        offset: tuple[int, int],
    ) -> None:
        """Draw a tensor into a texture, a framebuffer, or (None) into what is bound.

        `viewport` is what it covers; `offset` is where the pixel that `params` count from lies.
        """
        origin: Any = params["origin"]
        params = {**params, "origin": (origin[0] + offset[0], origin[1] + offset[1])}
        key = ("draw", id(storage), tensor.shape, _frozen(params))
        bound = self._bound.get(key)
        if bound is None:
            bound = self._keep(key, self._draw_step(storage, params))
        step, program = bound
        with self._device.current():
            step.target = get(self._device.gl, DRAW_BINDING) if target is None else self._framebuffer(target)
        step.viewport = viewport
        self._bound.move_to_end(key)
        program.run(0, 1)

    def _draw_step(self, storage: Storage, params: Mapping[str, Numbers]) -> _Draw:
        kernel = load_kernel("convert/tensor_to_texture")
        compute = storage.backend_type == BackendType.GPU_COMPUTE
        accessor = (
            buffer_accessor("X", "float", 0) if compute else texture_accessor("X", "float", self._device.texture_shift)
        )
        text = compose(kernel, "draw", [accessor], {"O_TYPE": "float"}, "", 430 if compute else 330)
        with self._device.using():
            program = self._device.programs.get(text, [] if compute else ["X_texture"], kernel.name)
            block = kernel.pack({"O_size": 0, "O_tiles": 0, **params}, "float")
            return _Draw("to_texture", program.glo, block, storage, self._device.vertex_array)

    def _keep(self, key: Any, step: Any) -> tuple[Any, GLProgram]:
        self._bound[key] = (step, GLProgram(self._device, [step]))
        if len(self._bound) > _MAX_BOUND:
            self._bound.popitem(last=False)
        return self._bound[key]

    def _framebuffer(self, target: Any) -> int:
        """The framebuffer to draw into for a texture or a framebuffer of the caller's."""
        if isinstance(target, moderngl.Framebuffer):
            return int(target.glo)
        if not isinstance(target, moderngl.Texture):
            raise InputError(f"tensors are drawn into a moderngl.Texture or Framebuffer, not {type(target).__name__}")
        kept = self._framebuffers.get(target.glo)
        if kept is None or kept[1] is not target:
            with self._device.using():
                kept = (self._device.ctx.framebuffer([target]), target)
            self._framebuffers[target.glo] = kept
        return int(kept[0].glo)

    def release(self) -> None:
        """Free what the passes hold."""
        self._bound.clear()
        self._device.drop(*(framebuffer for framebuffer, _ in self._framebuffers.values()))
        self._framebuffers.clear()
        for storage in self._own.values():
            storage.release()
        self._own.clear()


def _frozen(params: Mapping[str, Numbers]) -> tuple[Any, ...]:
    return tuple((name, tuple(value) if isinstance(value, (list, tuple)) else value) for name, value in params.items())
