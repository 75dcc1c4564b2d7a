"""Fragment shaders that fill a rectangle, and lines of text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .overlay import Label

if TYPE_CHECKING:
    import moderngl

_TRIANGLE = """#version 330
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0); }
"""
_INK = """#version 330
uniform sampler2D label;
uniform vec2 corner;
out vec4 color;
void main() {
    vec2 place = gl_FragCoord.xy - corner;
    vec4 ink = texelFetch(label, ivec2(place.x, textureSize(label, 0).y - place.y), 0);
    color = vec4(ink.rgb * ink.a, ink.a);
}
"""


class FullScreen:
    """A fragment shader over the whole viewport. Textures and uniforms are given by name."""

    def __init__(self, ctx: moderngl.Context, shader: Path | str) -> None:
        text = shader.read_text(encoding="utf-8") if isinstance(shader, Path) else shader
        self._program = ctx.program(vertex_shader=_TRIANGLE, fragment_shader=text)
        self._triangle = ctx.vertex_array(self._program, [])

    def set(self, **uniforms: Any) -> None:
        """Set uniforms, which stay set."""
        for name, value in uniforms.items():
            uniform: Any = self._program[name]
            uniform.value = value

    def draw(self, **textures: moderngl.Texture) -> None:
        """Draw into the framebuffer that is bound."""
        for unit, (name, texture) in enumerate(textures.items()):
            texture.use(unit)
            self.set(**{name: unit})
        self._triangle.render(vertices=3)

    def release(self) -> None:
        """Free the program."""
        self._triangle.release()
        self._program.release()


class Caption:
    """A line of text over the picture."""

    def __init__(self, ctx: moderngl.Context) -> None:
        self._ctx = ctx
        self._ink = FullScreen(ctx, _INK)
        self._label: Label | None = None
        self._texture: moderngl.Texture | None = None
        self._text = ""

    def draw(self, text: str, size: tuple[int, int], at: tuple[float, float] | None = None) -> None:
        """Draw into a surface of `size` pixels. `at` is the text's top left corner; without it, the surface's."""
        if self._label is None or self._texture is None or self._label.surface != size or self._text != text:
            self._make(text, size)
        assert self._label is not None and self._texture is not None
        width, height = self._texture.size
        left, top = at or (self._label.margin, self._label.margin)
        corner = (round(left), size[1] - round(top) - height)
        around = self._ctx.viewport
        self._ctx.viewport = (*corner, width, height)
        self._ink.set(corner=corner)
        self._ctx.enable(self._ctx.BLEND)
        self._ctx.blend_func = self._ctx.ONE, self._ctx.ONE_MINUS_SRC_ALPHA
        self._ink.draw(label=self._texture)
        self._ctx.disable(self._ctx.BLEND)
        self._ctx.viewport = around

    def _make(self, text: str, size: tuple[int, int]) -> None:
        label = self._label if self._label is not None and self._label.surface == size else Label(size)
        ink = label.draw(text, whole=True)
        if self._texture is None or self._texture.size != ink.size:
            if self._texture is not None:
                self._texture.release()
            self._texture = self._ctx.texture(ink.size, 4)
        self._texture.write(ink.tobytes())
        self._label, self._text = label, text

    def release(self) -> None:
        """Free its texture and its program."""
        self._ink.release()
        if self._texture is not None:
            self._texture.release()
