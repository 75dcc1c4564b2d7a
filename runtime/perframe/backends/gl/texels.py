"""How a tensor lies in an array texture.

A texel holds four elements. Consecutive texels lie at one place of consecutive sheets (GL calls a sheet a layer), so
that one fragment writes them all, through as many render targets. Consecutive places fill a square of four by four, and
squares fill a band from left to right: GPUs and software drivers compute the fragments of a square together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Area = tuple[int, int, int, int]

SHEETS = 8  # GL 3.3 promises so many render targets
_SIDE = 4  # columns and rows of a square
_SHEET_BITS, _SIDE_BITS = SHEETS.bit_length() - 1, _SIDE.bit_length() - 1
_WHOLE_TEXEL = np.complex128  # a number of a texel's size: NumPy moves it at once


def count_texels(elements: int) -> int:
    """The number of texels of so many elements; at least one."""
    return max(1, -(-elements // 4))


def _columns(elements: int) -> int:
    """The columns of a single band that holds so many elements."""
    return -(-count_texels(elements) // (SHEETS * _SIDE * _SIDE)) * _SIDE


def texture_size(elements: int, shift: int) -> tuple[int, int]:
    """Width and height of a texture for so many elements: one band, or bands of 2 ** shift columns."""
    columns = _columns(elements)
    return min(columns, 1 << shift), -(-columns // (1 << shift)) * _SIDE


def most_elements(texture_size: int, shift: int) -> int:
    """The number of elements that fit the largest texture."""
    return 4 * SHEETS * (texture_size // _SIDE * _SIDE) << shift


def areas(elements: int, shift: int) -> list[Area]:
    """The rectangles (x, y, width, height) that hold so many elements: the whole bands, and the last one."""
    whole, rest = divmod(_columns(elements), 1 << shift)
    found = [(0, 0, 1 << shift, whole * _SIDE)] if whole else []
    return [*found, (0, whole * _SIDE, rest, _SIDE)] if rest else found


def to_sheets(values: Array, shift: int) -> Array:
    """Flat values of four bytes each, in the order (sheet, row, column, element) of their texture."""
    width, height = texture_size(values.size, shift)
    padded = np.empty(width * height * SHEETS * 4, values.dtype)
    padded[: values.size], padded[values.size :] = values, 0
    texels = padded.view(_WHOLE_TEXEL).reshape(height // _SIDE, width // _SIDE, _SIDE, _SIDE, SHEETS)
    return np.ascontiguousarray(texels.transpose(4, 0, 2, 1, 3)).view(values.dtype).reshape(-1)


def from_sheets(values: Array, elements: int, shift: int) -> Array:
    """The opposite of `to_sheets`, for the sheets that so many elements use."""
    width, height = texture_size(elements, shift)
    texels = values.view(_WHOLE_TEXEL).reshape(-1, height // _SIDE, _SIDE, width // _SIDE, _SIDE)
    return np.ascontiguousarray(texels.transpose(1, 3, 2, 4, 0)).reshape(-1).view(values.dtype)[:elements]


def shader_of_places(shift: int) -> str:
    """GLSL that finds a texel: its column, its row and its sheet, and the first texel at a place."""
    down, right = _SHEET_BITS + _SIDE_BITS, _SHEET_BITS + 2 * _SIDE_BITS
    within, squares = _SIDE - 1, (1 << shift) - _SIDE
    return (
        f"#define TEXELS {SHEETS}\n"
        f"#define COLUMN(t) ((t) >> {_SHEET_BITS} & {within} | (t) >> {down} & {squares})\n"
        f"#define ROW(t) ((t) >> {down} & {within} | (t) >> {right + shift - _SIDE_BITS} << {_SIDE_BITS})\n"
        f"#define SHEET(t) ((t) & {SHEETS - 1})\n"
        f"#define FIRST_TEXEL(at) (((at).y >> {_SIDE_BITS} << {right + shift - _SIDE_BITS})"
        f" | ((at).y & {within}) << {down} | ((at).x & {squares}) << {down} | ((at).x & {within}) << {_SHEET_BITS})"
    )
