"""Marks over the caller's pixels: boxes, points, lines, masks and texts, whose numbers stay on the GPU."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import moderngl
import numpy as np

from perframe.backends.gl.compile.program import Numbers, compose, load_kernel
from perframe.backends.gl.context.device import Device
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.lowering.steps import kind_of, on_gl
from perframe.backends.gl.textures.draw_step import accessors_of, bind_inputs, program_of
from perframe.backends.gl.textures.passes import TexturePasses
from perframe.backends.gl.textures.steps import Pass
from perframe.backends.gl.textures.targets import DrawTarget
from perframe.errors import BackendError, ClosedError, InputError
from perframe.graphics.functions import get, get_indexed
from perframe.graphics.state_tables import BLEND
from perframe.tensor import Array, BackendType, DataType, Storage, Tensor

if TYPE_CHECKING:
    from perframe.graphics import GLContext

_TEXTURE0, _TEXTURE_2D, _UNIFORM_BUFFER, _TRIANGLE_STRIP = 0x84C0, 0x0DE1, 0x8A11, 5
_FUNCTIONS, _EQUATIONS = (0x80C9, 0x80C8, 0x80CB, 0x80CA), (0x8009, 0x883D)  # of colors and alpha
_ONE, _ONE_MINUS_ALPHA, _ADD = 1, 0x0303, 0x8006
_VERTEX_BLOCKS = 0x90D6  # the storage blocks that a vertex shader may have
_FEWEST = 256  # numbers of a storage for arrays
_OPTIONAL = {"S": "SCORES", "C": "COLORS"}  # inputs that a draw may lack, and the defines of programs with them


class Blending:
    """Lays premultiplied colors over the first draw buffer, and restores the caller's factors and equations."""

    def __init__(self, gl: Any) -> None:
        self._gl, self._indexed = gl, gl.version >= 400

    def __enter__(self) -> None:
        self._functions, self._equations = [*map(self._ask, _FUNCTIONS)], [*map(self._ask, _EQUATIONS)]
        self._set((_ONE, _ONE_MINUS_ALPHA, _ONE, _ONE_MINUS_ALPHA), (_ADD, _ADD))
        self._gl.glEnable(BLEND)

    def __exit__(self, *_: object) -> None:
        self._gl.glDisable(BLEND)
        self._set(self._functions, self._equations)

    def _ask(self, name: int) -> int:
        return get_indexed(self._gl, name, 0) if self._indexed else get(self._gl, name)

    def _set(self, functions: Sequence[int], equations: Sequence[int]) -> None:
        if self._indexed:
            self._gl.glBlendFuncSeparatei(0, *functions)
            self._gl.glBlendEquationSeparatei(0, *equations)
        else:
            self._gl.glBlendFuncSeparate(*functions)
            self._gl.glBlendEquationSeparate(*equations)


class MarkStep:
    """A pass that draws a quad around each mark."""

    def __init__(self, device: Device, target: DrawTarget, compute: bool, name: str, kinds: Mapping[str, str]) -> None:
        self.kernel = load_kernel(f"draw/{name}")
        if compute and get(device.gl, _VERTEX_BLOCKS) < len(kinds):
            raise BackendError(
                "the vertex shaders of this driver read no storage buffers: draw tensors of a worker on gpu_pixel"
            )
        accessors, version = accessors_of(device, compute, kinds), 430 if compute else 330
        defines = {"O_TYPE": "float", **{_OPTIONAL[name]: "1" for name in kinds if name in _OPTIONAL}}
        vertex = compose(self.kernel, "quads", accessors, {**defines, "VERTEX": "1"}, "", version)
        shader = compose(self.kernel, "draw", accessors, defines, "", version)._replace(vertex=vertex.text)
        self._program = program_of(device, shader, compute, self.kernel, kinds)
        self._device, self._target, self._compute = device, target, compute
        self._blending = Blending(device.gl)
        self.inputs: Sequence[Any] = ()
        self.viewport: Sequence[int] = (0, 0, 0, 0)
        self.count, self.atlas = 0, 0

    def run(self, gl: Any, uniforms: int) -> None:
        """Bind and draw."""
        gl.glUseProgram(self._program)
        gl.glBindBufferBase(_UNIFORM_BUFFER, 0, uniforms)
        if self.kernel.textures:
            gl.glActiveTexture(_TEXTURE0)
            gl.glBindTexture(_TEXTURE_2D, self.atlas)
            gl.glBindSampler(0, 0)
        bind_inputs(gl, self._device, self._compute, self.inputs, len(self.kernel.textures))
        masked = self._target.begin(gl, self.viewport)
        with self._blending:
            gl.glDrawArraysInstanced(_TRIANGLE_STRIP, 0, 4, self.count)
        self._target.end(gl, masked)


class MarkPasses:
    """All passes of one Overlay. Arrays go to storage that grows by doubling, and only when they change."""

    def __init__(self, ctx: GLContext) -> None:
        self._device = device_for(ctx)
        self._textures = TexturePasses(ctx)
        self._target = DrawTarget(self._device)
        self._passes: dict[Hashable, Pass[MarkStep]] = {}
        self._own: dict[Hashable, tuple[Storage, Array]] = {}
        self._atlas: moderngl.Texture | None = None
        self._closed = False

    def viewport(self, target: Any) -> tuple[int, int, int, int]:
        """The area of a texture, of a framebuffer or, for None, of what is bound, that marks are drawn into: x, y,
        width and height. Raises InputError, and ClosedError after `release`.
        """
        self._check_open()
        if target is None or isinstance(target, moderngl.Framebuffer):
            return self._target.viewport(target)
        return 0, 0, *self._textures.texture_size(target)

    def is_flipped(self, target: Any) -> bool:
        """Whether the target's first row is the top one: a texture that GL does not draw into otherwise."""
        return not (target is None or isinstance(target, moderngl.Framebuffer) or self._textures.is_drawn(target))

    def set_atlas(self, letters: Array) -> None:
        """Keep the picture of letters, height x width of uint8, that texts are drawn with."""
        height, width = letters.shape
        with self._device.using():
            self._atlas = self._device.ctx.texture((width, height), 1, letters.tobytes(), alignment=1)
            self._atlas.build_mipmaps()
            self._atlas.filter = moderngl.LINEAR_MIPMAP_LINEAR, moderngl.LINEAR
            self._atlas.repeat_x = self._atlas.repeat_y = False

    def draw(
        self,
        name: str,
        inputs: Mapping[str, Tensor | Array],
        params: Mapping[str, Numbers],
        count: int,
        target: Any,
        viewport: Sequence[int],
    ) -> None:
        """Draw `count` marks by a kernel of `shaders/draw`. Inputs are tensors on a GPU, or arrays of float32.

        Raises InputError for tensors of two backends or of another context, and ClosedError for a released one.
        """
        self._check_open()
        backend = self._backend(inputs)
        with self._device.using() as gl:
            storages = [
                given.data_on_backend if isinstance(given, Tensor) else self._uploaded((name, letter), given, backend)
                for letter, given in inputs.items()
            ]
            for given, storage in zip(inputs.values(), storages, strict=True):
                if isinstance(given, Tensor):
                    self._textures.check(given, storage)
            kinds = {
                letter: "half" if on_gl(storage).is_half else kind_of(DataType.of(given.dtype))
                for (letter, given), storage in zip(inputs.items(), storages, strict=True)
            }
            found = self._pass(name, backend, kinds)
            self._target.choose(gl, target)
            found.step.inputs, found.step.viewport, found.step.count = storages, viewport, count
            found.step.atlas = self._atlas.glo if self._atlas is not None else 0
            found.run(gl, params)
            found.step.inputs = ()

    def _pass(self, name: str, backend: BackendType, kinds: Mapping[str, str]) -> Pass[MarkStep]:
        key = (name, backend, *kinds.items())
        if key not in self._passes:
            step = MarkStep(self._device, self._target, backend is BackendType.GPU_COMPUTE, name, kinds)
            self._passes[key] = Pass(self._device, step.kernel, step, 0)
        return self._passes[key]

    def _backend(self, inputs: Mapping[str, Tensor | Array]) -> BackendType:
        """The backend of all tensors among the inputs."""
        found = {given.backend_type for given in inputs.values() if isinstance(given, Tensor)}
        if len(found) > 1:
            raise InputError(
                f"the tensors of one draw lie on {' and '.join(sorted(found))}: take them from workers on one backend"
            )
        return found.pop() if found else self._textures.default

    def _uploaded(self, key: Hashable, values: Array, backend: BackendType) -> Storage:
        """Storage with the values of an array at its begin."""
        storage, last = self._own.get((key, backend), (None, values))
        if storage is not None and np.array_equal(last, values, equal_nan=True):
            return storage
        if storage is None or on_gl(storage).size < values.size:
            room = max(_FEWEST, 1 << (values.size - 1).bit_length())
            storage = self._textures.alloc(backend, Tensor.empty((room,)))
        storage.upload(values)
        self._own[key, backend] = storage, values.copy()
        return storage

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this Overlay was released")

    def release(self) -> None:
        """Free the storage, the letters and the passes."""
        self._closed = True
        self._textures.release()
        self._passes.clear()
        for storage, _ in self._own.values():
            storage.release()
        self._own.clear()
        if self._atlas is not None:
            self._device.drop(self._atlas)
            self._atlas = None
