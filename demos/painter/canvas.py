"""The split view: before | after. One canvas for OpenGL, one for plain memory; both draw the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from PIL import Image

import perframe as pf

from ..common.drawing import FullScreen
from ..common.overlay import Label
from .motion import Size, Window, whole

if TYPE_CHECKING:
    import moderngl

    from perframe.host import Surface

Array = np.ndarray[Any, np.dtype[np.uint8]]

_EDGE = 1 / 160  # the network pads with black, which shows at the edge of its painting


class Canvas(Protocol):
    """Holds the picture and its painting, and draws both."""

    converter: pf.TextureConverter
    painting: Any
    """The target of `converter.to_texture`: a texture, or an array."""

    @property
    def source(self) -> Any:
        """The picture as `converter.to_tensor` takes it."""
        ...

    def set_source(self, pixels: Array) -> None:
        """Another picture, H×W×3."""
        ...

    def draw(self, surface: Surface, window: Window, split: float, text: str | None) -> None:
        """Draw: `window` is the part of the picture that was painted; no new `text` leaves the label as it is."""
        ...

    def release(self) -> None:
        """Free its textures."""
        ...


def middle(surface: Size, picture: Size) -> tuple[int, int, int, int]:
    """Where a picture lies on a surface of another shape: x, y, width, height."""
    x, y, width, height = whole(surface, picture[0] / picture[1])
    return round(x), round(y), round(width), round(height)


class GLCanvas:
    """Textures, and one draw call that shows them."""

    def __init__(self, ctx: moderngl.Context, size: Size) -> None:
        self.converter = pf.TextureConverter(ctx)
        self.painting = ctx.texture(size, 4)
        self._ctx = ctx
        self._source: moderngl.Texture | None = None
        self._label: Label | None = None
        self._label_texture: moderngl.Texture | None = None
        self._split = FullScreen(ctx, Path(__file__).with_name("split.glsl"))
        self._split.set(edge=_EDGE)

    @property
    def source(self) -> moderngl.Texture:
        """The picture's texture."""
        assert self._source is not None, "set_source() comes first"
        return self._source

    def set_source(self, pixels: Array) -> None:
        """Upload a picture; a texture is made only where the size is another."""
        size = (pixels.shape[1], pixels.shape[0])
        if self._source is not None and self._source.size != size:
            self._source.release()
            self._source = None
        if self._source is None:
            self._source = self._ctx.texture(size, 3)
            self._source.repeat_x = self._source.repeat_y = False
        self._source.write(pixels)

    def draw(self, surface: Surface, window: Window, split: float, text: str | None) -> None:
        """Draw into the framebuffer that is bound."""
        label = self._labelled(surface.size, text)
        area = middle(surface.size, self.painting.size)
        width, height = area[2:]
        columns, rows = self.source.size
        self._split.set(
            window=(window[0] / columns, window[1] / rows, window[2] / columns, window[3] / rows),
            area=area,
            rule=(round(split * width), max(1.0, height / 720), height / 180),
            corner=(label.margin, label.margin),
            height=surface.size[1],
        )
        assert self._label_texture is not None
        self._split.draw(before=self.source, after=self.painting, label=self._label_texture)

    def release(self) -> None:
        """Free all textures and the program."""
        for owned in (self._source, self.painting, self._label_texture, self._split, self.converter):
            if owned is not None:
                owned.release()

    def _labelled(self, size: Size, text: str | None) -> Label:
        """The label, with its texture up to date. Another size of the surface makes another one."""
        if self._label is None or self._label.surface != size:
            if self._label_texture is not None:
                self._label_texture.release()
            self._label = Label(size)
            self._label_texture = self._ctx.texture(self._label.size, 4)
            text = text or ""
        if text is not None and self._label_texture is not None:
            self._label_texture.write(self._label.draw(text).tobytes())
        return self._label


class ArrayCanvas:
    """A canvas without OpenGL: pictures are arrays, and Pillow scales them."""

    def __init__(self, size: Size) -> None:
        self.converter = pf.TextureConverter(None)
        self.painting = np.zeros((size[1], size[0], 4), np.uint8)
        self.source = np.zeros((1, 1, 3), np.uint8)
        self._before = Image.new("RGB", (1, 1))
        self._label: tuple[Label, Image.Image] | None = None

    def set_source(self, pixels: Array) -> None:
        """Take a picture."""
        self.source = pixels
        self._before = Image.fromarray(pixels)

    def draw(self, surface: Surface, window: Window, split: float, text: str | None) -> None:
        """Present the view to the surface."""
        label, ink = self._labelled(surface.size, text)
        after = Image.fromarray(self.painting).convert("RGB")
        x, y, width, height = middle(surface.size, after.size)
        column = round(split * width)
        view = after.resize((width, height), Image.Resampling.BICUBIC, _seen((0, 0, *after.size)))
        view.paste(self._before.resize((column, height), Image.Resampling.BICUBIC, _seen(window, column / width)))
        pixels = np.array(view)
        _rule(pixels, column)
        view = Image.fromarray(pixels)
        view.paste(ink, (label.margin, label.margin), ink)
        everything = Image.new("RGB", surface.size)
        everything.paste(view, (x, y))
        surface.present(np.asarray(everything))

    def release(self) -> None:
        """All lies in Python's memory."""

    def _labelled(self, size: Size, text: str | None) -> tuple[Label, Image.Image]:
        if self._label is None or text is not None:
            label = self._label[0] if self._label else Label(size)
            self._label = label, label.draw(text or "")
        return self._label


def _seen(window: Window, part: float = 1.0) -> tuple[float, float, float, float]:
    """The visible rectangle of a window, or its left part: left, top, right, bottom."""
    x, y, width, height = window
    left, shown = x + width * _EDGE, width * (1 - 2 * _EDGE)
    return left, y + height * _EDGE, left + shown * part, y + height * (1 - _EDGE)


def _rule(pixels: Array, column: int) -> None:
    """The line and its shadow, as split.glsl has them."""
    height, width, _ = pixels.shape
    near = slice(max(0, column - height // 30), min(width, column + height // 30))
    beside = np.abs(np.arange(near.start, near.stop) + 0.5 - column) - max(1.0, height / 720)
    shade = 1 - 0.45 * np.exp(-np.maximum(beside, 0) / (height / 180))
    white = np.clip(0.5 - beside, 0, 1)
    pixels[:, near] = pixels[:, near] * (shade * (1 - white))[:, None] + 255 * white[:, None]
