"""Fragment shaders that fill a rectangle, and lines of text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import moderngl

from .overlay import Label

if TYPE_CHECKING:
    from PIL import Image

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


def texture_of(framebuffer: moderngl.Framebuffer) -> moderngl.Texture:
    """The texture that a framebuffer draws into."""
    texture = framebuffer.color_attachments[0]
    assert not isinstance(texture, moderngl.Renderbuffer)
    return texture


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

    def draw(self, **textures: moderngl.Texture | moderngl.Texture3D) -> None:
        """Draw into the framebuffer that is bound."""
        for unit, (name, texture) in enumerate(textures.items()):
            texture.use(unit)
            self.set(**{name: unit})
        self._triangle.render(vertices=3)

    def release(self) -> None:
        """Free the program."""
        self._triangle.release()
        self._program.release()


class Captions:
    """Lines of text over the picture."""

    def __init__(self, ctx: moderngl.Context) -> None:
        self._ctx = ctx
        self._ink = FullScreen(ctx, _INK)
        self._label: Label | None = None
        self._known: dict[str, tuple[str, moderngl.Texture]] = {}

    def draw(
        self, text: str, size: tuple[int, int], at: tuple[float, float] | None = None, name: str | None = None
    ) -> None:
        """Draw into a surface of `size` pixels. `at` is the middle of the text's top edge; without it the text is in
        the surface's top left corner. A text that changes has a `name`, and replaces the last one of that name.
        """
        if self._label is None or self._label.surface != size:
            self._forget()
            self._label = Label(size)
        known, texture = self._known.get(name or text, ("", None))
        if texture is None or known != text:
            texture = self._made(self._label.draw(text, whole=True), texture)
            self._known[name or text] = text, texture
        width, height = texture.size
        left, top = (at[0] - width / 2, at[1]) if at else (self._label.margin, self._label.margin)
        corner = (round(left), size[1] - round(top) - height)
        around = self._ctx.viewport
        self._ctx.viewport = (*corner, width, height)
        self._ink.set(corner=corner)
        self._ctx.enable(self._ctx.BLEND)
        self._ctx.blend_func = self._ctx.ONE, self._ctx.ONE_MINUS_SRC_ALPHA
        self._ink.draw(label=texture)
        self._ctx.disable(self._ctx.BLEND)
        self._ctx.viewport = around

    def _made(self, ink: Image.Image, last: moderngl.Texture | None) -> moderngl.Texture:
        if last is not None and last.size != ink.size:
            last.release()
            last = None
        texture = last or self._ctx.texture(ink.size, 4)
        texture.write(ink.tobytes())
        return texture

    def _forget(self) -> None:
        for _, texture in self._known.values():
            texture.release()
        self._known.clear()

    def release(self) -> None:
        """Free the textures and the program."""
        self._forget()
        self._ink.release()
