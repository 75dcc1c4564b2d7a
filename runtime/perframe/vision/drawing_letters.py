"""Letters for texts over pictures: a picture of all letters, and where the letters of texts go."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from unicodedata import combining, normalize

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CELL = 32  # pixels: the height of the picture of letters
_FONT, _GAP, _MARGIN = 25, 2, 6  # pixels: the font's size, between letters of the picture, and before and after a text
_OTHER = "?"  # for letters that are not there
_LETTERS = "".join(map(chr, range(0x20, 0x7F)))  # those of Pillow's own font


class Letters:
    """The letters of Pillow's own font, those of ASCII, drawn once."""

    def __init__(self) -> None:
        from PIL import Image, ImageDraw, ImageFont  # late: programs without texts need no font

        font = ImageFont.load_default(size=_FONT)
        widths = [round(font.getlength(letter)) for letter in _LETTERS]
        lefts = np.cumsum([_GAP + _MARGIN, *(width + _GAP for width in widths)])
        picture = Image.new("L", (int(lefts[-1]), CELL))
        pen = ImageDraw.Draw(picture)
        _, top, _, bottom = pen.textbbox((0, 0), _LETTERS, font=font, anchor="ls")
        baseline = round((CELL - top - bottom) / 2)
        for letter, left in zip(_LETTERS, lefts[:-1], strict=True):
            pen.text((int(left), baseline), letter, fill=255, font=font, anchor="ls")
        self.picture: Array = np.asarray(picture)
        self._places = {letter: (int(lefts[at]), widths[at]) for at, letter in enumerate(_LETTERS)}
        self.rows = lru_cache(64)(self._rows)

    def _rows(self, texts: tuple[str, ...]) -> Array:
        """A row for each letter: the text's index, the letter's left and width in the picture, and its place in the
        text, in pixels of the picture. Shape (letters, 4), float32. Blank letters are the margins of a text.
        """
        rows = list[tuple[int, int, int, int]]()
        for index, text in enumerate(texts):
            at = 0
            plain = [letter for letter in normalize("NFKD", text) if not combining(letter)]  # without accents
            letters = [self._places.get(letter, self._places[_OTHER]) for letter in plain]
            for left, width in [(0, _MARGIN), *letters, (0, _MARGIN)] if text else ():
                rows.append((index, left, width, at))
                at += width
        return np.array(rows, np.float32).reshape(-1, 4)
