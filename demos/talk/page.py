"""Letters in the sky: lines that grow letter by letter, and move up when there is a new one."""

from __future__ import annotations

from math import exp
from pathlib import Path
from typing import NamedTuple

import moderngl
import numpy as np
from PIL import Image, ImageDraw, ImageFont

MOST = 2000  # letters that the page keeps
ACROSS = 20.0  # ems: the length of a line
EM, ROW = 64, 88  # pixels of the font, and of a glyph's cell, in the atlas
PAD = 6  # pixels around a glyph, into which its glow fades
CARET = "_"


class Mark(NamedTuple):
    """A place of the page, to which it can be cut."""

    letters: int
    x: float
    line: int
    word: int
    text: str


class Page:
    """Letters of an alphabet, drawn as instances of one quad."""

    def __init__(self, ctx: moderngl.Context, alphabet: str) -> None:
        self._ctx = ctx
        self._glyphs = {letter: index for index, letter in enumerate(alphabet + CARET)}
        self._atlas, self._widths, table = _atlas(ctx, alphabet + CARET)
        folder = Path(__file__).parent
        self._program = ctx.program(
            vertex_shader=shader(folder / "letters.vert"), fragment_shader=shader(folder / "letters.frag")
        )
        self._table = ctx.texture((len(table), 1), 4, table.tobytes(), dtype="f4")
        self._table.filter = ctx.NEAREST, ctx.NEAREST
        self._records = np.zeros((MOST + 1, 5), np.float32)  # x in ems, line, glyph, when it came, whose it is
        self._buffer = ctx.buffer(reserve=self._records.nbytes, dynamic=True)
        self._quads = ctx.vertex_array(self._program, [(self._buffer, "2f 3f/i", "place", "letter")])
        self._count, self._x, self._line, self._word = 0, 0.0, -1, 0
        self._scroll = 0.0
        self.text = ""  # what it says, without what is long gone

    def begin(self, gap: int = 0) -> None:
        """Begin a line after `gap` empty ones."""
        if self._count > MOST // 2:
            self._forget(self._count - MOST // 4)
        self._line += 1 + gap
        self._x, self._word = 0.0, self._count
        self.text = self.text[-MOST:] + "\n"

    def write(self, letters: str, time: float, voice: float) -> None:
        """Write letters of the alphabet at the end, and leave others out. A word that does not fit moves down."""
        letters = "".join(letter for letter in letters if letter in self._glyphs)
        for letter in letters:
            width = self._widths[self._glyphs[letter]]
            if letter == " ":
                self._word = self._count + 1
            elif self._x + width > ACROSS:
                self._wrap()
            self._records[self._count] = self._x, self._line, self._glyphs[letter], time, voice
            self._count += 1
            self._x += width
        self.text += letters

    @property
    def mark(self) -> Mark:
        """Where the page ends now."""
        return Mark(self._count, self._x, self._line, self._word, self.text)

    def cut(self, mark: Mark) -> None:
        """Remove all that came after a mark."""
        self._count, self._x, self._line, self._word, self.text = mark

    def draw(self, size: tuple[int, int], time: float, step: float, beam: tuple[float, float]) -> None:
        """Draw the letters over the sky. `step` is the seconds of this frame, and `beam` that of the lighthouse."""
        self._scroll += (self._line - self._scroll) * (1 - exp(-7 * step))
        self._records[self._count] = self._x, self._line, self._glyphs[CARET], time - 1, 1.0
        used = self._count + (time % 1.0 < 0.6)
        self._buffer.write(self._records[: self._count + 1].tobytes())
        for unit, (name, texture) in enumerate((("atlas", self._atlas), ("table", self._table))):
            texture.use(unit)
            self._set(name, unit)
        self._set("size", size)
        self._set("scroll", self._scroll)
        self._set("time", time)
        self._set("beam", beam)
        self._ctx.enable(self._ctx.BLEND)
        self._ctx.blend_func = self._ctx.ONE, self._ctx.ONE_MINUS_SRC_ALPHA
        self._quads.render(self._ctx.TRIANGLE_STRIP, vertices=4, instances=used)
        self._ctx.disable(self._ctx.BLEND)

    def release(self) -> None:
        """Free the textures, the buffer and the program."""
        for thing in (self._quads, self._buffer, self._table, self._atlas, self._program):
            thing.release()

    def _wrap(self) -> None:
        """Begin a line with the word that is being written."""
        word = self._records[self._word : self._count]
        begin = float(word[0, 0]) if len(word) else self._x
        if begin == 0.0:
            self._word, begin = self._count, self._x  # a word as long as the line is broken
            word = word[:0]
        word[:, 0] -= begin
        word[:, 1] += 1
        self._x -= begin
        self._line += 1

    def _forget(self, count: int) -> None:
        """Remove the oldest letters, which have left the picture."""
        self._records[: self._count - count] = self._records[count : self._count]
        self._count -= count

    def _set(self, name: str, value: object) -> None:
        uniform = self._program[name]
        assert isinstance(uniform, moderngl.Uniform)
        uniform.value = value


def shader(file: Path) -> str:
    """The text of a shader, which may use the light of the lighthouse."""
    light = file.with_name("beam.glsl").read_text(encoding="utf-8")
    return "#version 330\n" + light + file.read_text(encoding="utf-8")


def _atlas(
    ctx: moderngl.Context, letters: str
) -> tuple[moderngl.Texture, list[float], np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    """A texture with all glyphs in a row, their widths in ems, and a row (left, top, right, bottom) for each glyph."""
    font = ImageFont.load_default(size=EM)
    widths = [font.getlength(letter) for letter in letters]
    lefts = np.cumsum([0, *(int(width) + 1 + 2 * PAD for width in widths)])
    picture = Image.new("L", (int(lefts[-1]), ROW))
    pen = ImageDraw.Draw(picture)
    for letter, left in zip(letters, lefts[:-1], strict=True):
        pen.text((int(left) + PAD, EM), letter, fill=255, font=font, anchor="ls")
    texture = ctx.texture(picture.size, 1, picture.tobytes(), alignment=1)
    texture.build_mipmaps()
    texture.filter = ctx.LINEAR_MIPMAP_LINEAR, ctx.LINEAR
    texture.repeat_x = texture.repeat_y = False
    table = np.zeros((len(letters), 4), np.float32)
    table[:, 0], table[:, 2] = lefts[:-1], np.array(widths) + 2 * PAD
    return texture, [width / EM for width in widths], table
