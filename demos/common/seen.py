"""Pictures of a source, in textures, with the options of demos that look at something."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import perframe as pf
from perframe.media import Picture, Source, YuvFrame, draw_source, open_source
from perframe.media.picture import Pixels
from perframe.textures.transform import PictureMap

from .drawing import FullScreen

if TYPE_CHECKING:
    import moderngl

ENOUGH = (1280, 720)
RATE = 20  # pictures a second of a drawn scene
_SHOWN = """#version 330
uniform sampler2D picture;
uniform vec4 box;  // left, top, width and height in pixels from the top left corner
uniform vec2 size;
out vec4 color;
void main() {
    vec2 at = (vec2(gl_FragCoord.x, size.y - gl_FragCoord.y) - box.xy) / box.zw;
    bool is_within = all(greaterThanEqual(at, vec2(0.0))) && all(lessThan(at, vec2(1.0)));
    color = vec4(is_within ? texture(picture, at).rgb : vec3(0.055, 0.06, 0.08), 1.0);
}
"""


def add_options(parser: argparse.ArgumentParser, model: str, drawn: str = "people that the demo draws") -> None:
    """Add --model, of which `model` is the kind, and --source, whose default is what is `drawn`."""
    parser.add_argument("--model", type=Path, metavar="FILE", help=f"your own {model} (default: the project's own)")
    parser.add_argument(
        "--source",
        metavar="PATH|camera|camera:N",
        help=f"a picture, a folder, a video or a camera (default: {drawn})",
    )


def source_of(options: argparse.Namespace, scene: Callable[[], Callable[[float], Any]]) -> Source:
    """The source that was asked for; without one, what a `scene` draws. Raises InputError."""
    return draw_source(scene(), RATE) if options.source is None else open_source(options.source, ENOUGH, loop=True)


def fitted(picture: tuple[int, int], surface: tuple[int, int]) -> PictureMap:
    """Where a picture lies on a surface, as large as it fits; both are width and height."""
    return pf.TextureTransform(letterbox=0.0).mapping(picture, (1, 3, surface[1], surface[0]))


class SeenPicture:
    """A picture with its texture, the top in its first row. Another picture may follow in it."""

    def __init__(self, ctx: moderngl.Context) -> None:
        self._ctx = ctx
        self._converter = pf.TextureConverter(ctx)
        self._shown = FullScreen(ctx, _SHOWN)
        self._texture: moderngl.Texture | None = None
        self._picture = Picture(np.zeros((1, 1, 3), np.uint8), 0, 0.0)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self._picture.size

    @property
    def pixels(self) -> Pixels:
        """The picture as height x width x 3 of uint8."""
        return self._picture.pixels

    @property
    def texture(self) -> moderngl.Texture:
        """The picture on the GPU."""
        assert self._texture is not None, "bring a picture first"
        return self._texture

    def bring(self, picture: Picture) -> None:
        """Bring another picture into the texture."""
        self._picture = picture
        components = 4 if isinstance(picture.content, YuvFrame) else 3
        if self._texture is not None and (self._texture.size, self._texture.components) != (self.size, components):
            self._texture.release()
            self._texture = None
        if self._texture is None:
            self._texture = self._ctx.texture(self.size, components, alignment=1)
            self._texture.repeat_x = self._texture.repeat_y = False
        self._converter.upload(picture, self._texture)

    def draw(self, surface: tuple[int, int]) -> None:
        """Draw it over the whole surface, as large as it fits."""
        self._shown.set(size=surface, box=fitted(self.size, surface).box)
        self._shown.draw(picture=self.texture)

    def release(self) -> None:
        """Free the texture and the programs."""
        if self._texture is not None:
            self._texture.release()
        self._shown.release()
        self._converter.release()
