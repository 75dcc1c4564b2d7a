"""The pixels that "nearest" takes, in integers: where a sample lies exactly between two pixels, arrays and GPUs
take the same one, the right or the lower one as the picture is seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GRID = 1 << 16  # parts of a pixel: finer places of a region are rounded
_MOST = 1 << 31  # shaders compute with 32 bits
KEPT = 256  # rows: most frames ask for those of the frame before


@dataclass(frozen=True)
class Row:
    """Indices that continue in equal steps: number i is `first + i * whole + (rest + i * part) // parts`."""

    first: int
    whole: int
    rest: int
    part: int
    parts: int

    @classmethod
    def of(cls, begin: Fraction, step: Fraction, count: int) -> Row:
        """The greatest integers up to `begin + i * step`, for i below `count`."""
        parts = math.lcm(begin.denominator, step.denominator)
        first, rest = divmod(begin.numerator * (parts // begin.denominator), parts)
        whole, part = divmod(step.numerator * (parts // step.denominator), parts)
        while parts * (count + 1) >= _MOST:  # only for large and odd sizes
            rest, part, parts = rest >> 1, part >> 1, max(parts >> 1, 1)
        most = _MOST // 4  # beyond any picture
        return cls(_within(first, most), _within(whole, most // max(count, 1)), rest, part, parts)

    def indices(self, count: int) -> NDArray[Any]:
        """The first `count` indices."""
        numbers = np.arange(count, dtype=np.int64)
        result: NDArray[Any] = self.first + numbers * self.whole + (self.rest + numbers * self.part) // self.parts
        return result


def _within(number: int, most: int) -> int:
    return min(max(number, -most), most)


def _rounded(number: float) -> Fraction:
    return Fraction(round(Fraction(number) * _GRID), _GRID)


@lru_cache(KEPT)
def sampled(begin: float, length: float, count: int) -> Row:
    """The pixels under the centers of `count` elements that fill a region."""
    step = max(_rounded(length), Fraction(1, _GRID)) / count
    return Row.of(_rounded(begin) + step / 2, step, count)


@lru_cache(KEPT)
def drawn(begin: float, length: float, elements: int, pixel: int, count: int, down: bool = True) -> Row:
    """The elements under the centers of `count` pixels, where `elements` fill a region of the pixels. `pixel` is the
    first of them; if not `down`, the next ones lie before it.
    """
    step = elements / max(_rounded(length), Fraction(1, _GRID))
    return Row.of((pixel + Fraction(1, 2) - _rounded(begin)) * step, step if down else -step, count)


def uniforms(across: Row, down: Row) -> dict[str, tuple[int, ...]]:
    """Both axes as parameters of a shader."""
    numbers = {"near_across": astuple(across)[:4], "near_down": astuple(down)[:4]}
    return {**numbers, "near_parts": (across.parts, down.parts)}


NOT_NEAREST = uniforms(Row(0, 0, 0, 0, 1), Row(0, 0, 0, 0, 1))
"""The parameters for modes that do not read them."""


def rows_of(params: Mapping[str, Any]) -> tuple[Row, Row]:
    """The axes of such parameters: across, and down."""
    (a, b, c, d), (e, f, g, h), (across, down) = params["near_across"], params["near_down"], params["near_parts"]
    return Row(a, b, c, d, across), Row(e, f, g, h, down)
