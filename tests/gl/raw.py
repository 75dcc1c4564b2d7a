"""GL as an application calls it: raw entry points, an unusual state, and a record of what perframe may touch."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

U, N, P, L = ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "glActiveTexture": (U,),
    "glBeginTransformFeedback": (U,),
    "glBindBuffer": (U, U),
    "glBindBufferBase": (U, U, U),
    "glBindBufferRange": (U, U, U, L, L),
    "glBindFramebuffer": (U, U),
    "glBindImageTexture": (U, U, N, ctypes.c_ubyte, N, U, U),
    "glBindSampler": (U, U),
    "glBindTexture": (U, U),
    "glBindVertexArray": (U,),
    "glBlendEquation": (U,),
    "glBlendFunc": (U, U),
    "glBlendFunci": (U, U, U),
    "glClampColor": (U, U),
    "glColorMaski": (U, N, N, N, N),
    "glDeleteTextures": (N, P),
    "glDisable": (U,),
    "glDisablei": (U, U),
    "glEnable": (U,),
    "glEnablei": (U, U),
    "glEndTransformFeedback": (),
    "glDrawArrays": (U, N, N),
    "glGenSamplers": (N, P),
    "glGenTextures": (N, P),
    "glGenVertexArrays": (N, P),
    "glGetBooleani_v": (U, U, P),
    "glGetFloati_v": (U, U, P),
    "glGetInteger64i_v": (U, U, P),
    "glGetIntegeri_v": (U, U, P),
    "glGetIntegerv": (U, P),
    "glLogicOp": (U,),
    "glPixelStorei": (U, N),
    "glPolygonMode": (U, U),
    "glReadBuffer": (U,),
    "glScissor": (N, N, N, N),
    "glStencilFunc": (U, N, U),
    "glTexImage2D": (U, N, N, N, N, N, U, U, P),
    "glUseProgram": (U,),
    "glViewport": (N, N, N, N),
    "glViewportIndexedf": (U, *(ctypes.c_float,) * 4),
}
_RESULTS: dict[str, tuple[Any, ...]] = {
    "glGetError": (U,),
    "glIsBuffer": (ctypes.c_ubyte, U),
    "glIsFramebuffer": (ctypes.c_ubyte, U),
    "glIsTexture": (ctypes.c_ubyte, U),
    "glIsEnabled": (ctypes.c_ubyte, U),
    "glIsEnabledi": (ctypes.c_ubyte, U, U),
}

ACTIVE_TEXTURE, TEXTURE0, TEXTURE_2D, TEXTURE_2D_ARRAY = 0x84E0, 0x84C0, 0x0DE1, 0x8C1A
NUMBERS = {
    "program": 0x8B8D,
    "vertex array": 0x85B5,
    "draw framebuffer": 0x8CA6,
    "read framebuffer": 0x8CAA,
    "renderbuffer": 0x8CA7,
    "active texture": ACTIVE_TEXTURE,
    "array buffer": 0x8894,
    "pack buffer": 0x88ED,
    "unpack buffer": 0x88EF,
    "copy read buffer": 0x8F36,
    "copy write buffer": 0x8F37,
    "uniform buffer": 0x8A28,
    "polygon mode": 0x0B40,
    "depth function": 0x0B74,
    "stencil function": 0x0B92,
    "cull mode": 0x0B45,
    "logic operation": 0x0BF0,
}
BLENDING = {
    "blend source": 0x80C9,
    "blend destination": 0x80C8,
    "blend source of alpha": 0x80CB,
    "blend destination of alpha": 0x80CA,
    "blend equation": 0x8009,
    "blend equation of alpha": 0x883D,
}
FOURS = {"viewport": 0x0BA2, "scissor box": 0x0C10}
SWITCHES = {
    "depth": 0x0B71,
    "stencil": 0x0B90,
    "cull": 0x0B44,
    "scissor": 0x0C11,
    "logic operation": 0x0BF2,
    "polygon offset": 0x8037,
    "sRGB": 0x8DB9,
    "rasterizer discard": 0x8C89,
    "sample mask": 0x8E51,
    "alpha to coverage": 0x809E,
    "clip distance 0": 0x3000,
    "clip distance 5": 0x3005,
    "polygon smooth": 0x0B41,
    "dither": 0x0BD0,
    "sample coverage": 0x80A0,
    "alpha to one": 0x809F,
    "primitive restart": 0x8F9D,
}
LATER_SWITCHES = {"sample shading": (400, 0x8C36), "fixed restart index": (430, 0x8D69)}
VIEWPORT, SCISSOR_TEST, MAX_VIEWPORTS, CLAMP_READ_COLOR = 0x0BA2, 0x0C11, 0x825B, 0x891C
PIXEL_STORE = {
    "unpack swap bytes": 0x0CF0,
    "unpack row length": 0x0CF2,
    "unpack skip rows": 0x0CF3,
    "unpack skip pixels": 0x0CF4,
    "unpack image height": 0x806E,
    "unpack skip images": 0x806D,
    "unpack alignment": 0x0CF5,
    "pack swap bytes": 0x0D00,
    "pack row length": 0x0D02,
    "pack skip rows": 0x0D03,
    "pack skip pixels": 0x0D04,
    "pack image height": 0x806C,
    "pack skip images": 0x806B,
    "pack alignment": 0x0D05,
}
TEXTURES = {"2D": 0x8069, "2D array": 0x8C1D, "cube": 0x8514, "3D": 0x806A, "buffer": 0x8C2C, "sampler": 0x8919}


class Raw:
    """`gl.glUseProgram(3)`, loaded by name from a moderngl context."""

    def __init__(self, ctx: Any) -> None:
        self._load = ctx.mglo._context.load_opengl_function
        self.version = ctx.version_code
        self.has_compute = ctx.version_code >= 430
        self.switches = SWITCHES | {what: n for what, (since, n) in LATER_SWITCHES.items() if self.version >= since}

    def __getattr__(self, name: str) -> Any:
        result, *arguments = _RESULTS.get(name) or (None, *_SIGNATURES[name])
        function = ctypes.CFUNCTYPE(result, *arguments)(self._load(name))
        setattr(self, name, function)
        return function

    def number(self, name: int, index: int | None = None) -> int:
        """An integer of the state."""
        return self.numbers(name, index)[0]

    def numbers(self, name: int, index: int | None = None) -> tuple[int, ...]:
        """Four of them."""
        value = (ctypes.c_int * 4)()
        if index is None:
            self.glGetIntegerv(name, value)
        else:
            self.glGetIntegeri_v(name, index, value)
        return tuple(value)

    def extent(self, name: int, index: int) -> int:
        """The start or the size of a range."""
        value = ctypes.c_int64()
        self.glGetInteger64i_v(name, index, ctypes.byref(value))
        return value.value

    def mask(self, index: int) -> tuple[int, ...]:
        """The color mask of a draw buffer."""
        value = (ctypes.c_ubyte * 4)()
        self.glGetBooleani_v(0x0C23, index, value)
        return tuple(value)

    def viewport(self, index: int) -> tuple[float, ...]:
        """One of the viewports."""
        value = (ctypes.c_float * 4)()
        self.glGetFloati_v(VIEWPORT, index, value)
        return tuple(value)

    def generate(self, kind: str) -> int:
        """A new name: "Textures", "Samplers" or "VertexArrays"."""
        name = ctypes.c_uint()
        getattr(self, f"glGen{kind}")(1, ctypes.byref(name))
        return name.value

    def state(self) -> dict[str, Any]:
        """All that is compared."""
        found: dict[str, Any] = {what: self.number(name) for what, name in (NUMBERS | BLENDING | PIXEL_STORE).items()}
        found |= {what: self.numbers(name) for what, name in FOURS.items()}
        found |= {f"{what} is on": bool(self.glIsEnabled(name)) for what, name in self.switches.items()}
        found["clamp read color"] = self.number(CLAMP_READ_COLOR)
        for index in range(self.number(MAX_VIEWPORTS) if self.version >= 410 else 0):
            found[f"viewport {index}"] = self.viewport(index)
            found[f"scissor test {index}"] = bool(self.glIsEnabledi(SCISSOR_TEST, index))
        for index in range(8):
            found[f"blend of draw buffer {index}"] = bool(self.glIsEnabledi(0x0BE2, index))
            found[f"color mask of draw buffer {index}"] = self.mask(index)
            if self.version >= 400:
                found |= {f"{what} of draw buffer {index}": self.number(n, index) for what, n in BLENDING.items()}
        for index in range(4):
            found[f"uniform binding {index}"] = (
                self.number(0x8A28, index), self.extent(0x8A29, index), self.extent(0x8A2A, index)
            )  # fmt: skip
        if self.has_compute:
            found["storage buffer"] = self.number(0x90D3)
            for index in range(10):
                found[f"storage binding {index}"] = (
                    self.number(0x90D3, index), self.extent(0x90D4, index), self.extent(0x90D5, index)
                )  # fmt: skip
                found[f"image {index}"] = self.number(0x8F3A, index) if index < 8 else 0
        return found | self.units()

    def units(self) -> dict[str, int]:
        """The bindings of every texture unit."""
        found, active = {}, self.number(ACTIVE_TEXTURE)
        for unit in range(self.number(0x8B4D)):
            self.glActiveTexture(TEXTURE0 + unit)
            found |= {f"{what} of unit {unit}": self.number(name) for what, name in TEXTURES.items()}
        self.glActiveTexture(active)
        return found

    def errors(self) -> list[int]:
        """GL's errors since the last time."""
        return [error for error in iter(self.glGetError, 0)]


class Application:
    """An application with objects of its own, in a context of its own: with a state that spoils careless draws."""

    SIZE = (37, 23)

    def __init__(self, ctx: Any) -> None:
        self.ctx, self.gl = ctx, Raw(ctx)
        vertex = "#version 330\nin vec2 at; void main() { gl_Position = vec4(at, 0.0, 1.0); }"
        fragment = "#version 330\nout vec4 color; void main() { color = vec4(1.0); }"
        self.program = ctx.program(vertex_shader=vertex, fragment_shader=fragment)
        self.buffers = [ctx.buffer(bytes(4096)) for _ in range(6)]
        self.textures = [ctx.texture((4, 4), 4, bytes(64)) for _ in range(3)]
        empty = bytes(4 * self.SIZE[0] * self.SIZE[1])  # GL leaves new memory as it is, and a test looks at every pixel
        self.stack, self.canvas = ctx.texture_array((4, 4, 2), 4), ctx.texture(self.SIZE, 4, empty)
        self.draw = ctx.framebuffer([self.canvas, ctx.texture(self.SIZE, 4, empty)])
        self.read = ctx.framebuffer([ctx.texture((8, 8), 4)])
        self.vertex_array, self.sampler = self.gl.generate("VertexArrays"), self.gl.generate("Samplers")

    def set_default(self) -> None:
        """Set GL's initial state again where moderngl has changed it."""
        self.gl.glPixelStorei(0x0CF5, 4)
        self.gl.glPixelStorei(0x0D05, 4)

    def set_hostile(self) -> None:
        """Scissored, blended, masked, culled, wireframe, with bindings everywhere and a strange pixel layout."""
        gl, names = self.gl, [buffer.glo for buffer in self.buffers]
        gl.glUseProgram(self.program.glo)
        gl.glBindVertexArray(self.vertex_array)
        gl.glBindFramebuffer(0x8CA9, self.draw.glo)
        gl.glBindFramebuffer(0x8CA8, self.read.glo)
        gl.glViewport(3, 2, 17, 11)
        gl.glScissor(5, 4, 3, 2)
        gl.glBlendFunc(0, 0)
        gl.glBlendEquation(0x800B)
        if gl.version >= 400:
            gl.glBlendFunci(1, 1, 1)
        gl.glStencilFunc(0x0200, 1, 0xFF)
        gl.glLogicOp(0x150A)
        gl.glPolygonMode(0x0408, 0x1B01)
        for switch in gl.switches.values():
            gl.glEnable(switch)
        gl.glClampColor(CLAMP_READ_COLOR, 1)
        if gl.version >= 410:
            for index in range(1, 4):
                gl.glViewportIndexedf(index, index + 0.5, index, 9, 8.25)
            gl.glDisablei(SCISSOR_TEST, 2)
        for index in range(8):
            (gl.glDisablei if index == 1 else gl.glEnablei)(0x0BE2, index)
            gl.glColorMaski(index, 0, 1, index % 2, index % 3)
        for unit in (*range(9), gl.number(0x8B4D) - 1, self.ctx.max_texture_units - 1):
            gl.glActiveTexture(TEXTURE0 + unit)
            gl.glBindTexture(TEXTURE_2D, self.textures[unit % 3].glo)
            gl.glBindTexture(TEXTURE_2D_ARRAY, self.stack.glo)
            gl.glBindSampler(unit, self.sampler)
        gl.glActiveTexture(TEXTURE0 + 5)
        for index in range(3):
            gl.glBindBufferRange(0x8A11, index, names[0], 256 * index, 64)
        if gl.has_compute:
            for index in range(8):
                gl.glBindBufferRange(0x90D2, index, names[1], 256 * index, 48)
            gl.glBindBuffer(0x90D2, names[2])
            gl.glBindImageTexture(1, self.textures[0].glo, 0, 0, 0, 0x88B8, 0x8058)
        gl.glBindBuffer(0x8A11, names[3])
        for target, name in zip((0x8892, 0x88EB, 0x88EC, 0x8F36, 0x8F37), names, strict=False):
            gl.glBindBuffer(target, name)
        for index, name in enumerate(PIXEL_STORE.values()):
            gl.glPixelStorei(name, 8 if name in (0x0CF5, 0x0D05) else 1 if name in (0x0CF0, 0x0D00) else index + 3)

    @contextmanager
    def calm(self) -> Iterator[None]:
        """A look at the pictures: the switches that hinder it are off inside."""
        state = self.gl.state()
        for name in PIXEL_STORE.values():
            self.gl.glPixelStorei(name, 4 if name in (0x0CF5, 0x0D05) else 0)
        for target in (0x88EB, 0x88EC):
            self.gl.glBindBuffer(target, 0)
        yield
        for what, name in PIXEL_STORE.items():
            self.gl.glPixelStorei(name, state[what])
        for what, target in {"pack buffer": 0x88EB, "unpack buffer": 0x88EC}.items():
            self.gl.glBindBuffer(target, state[what])
