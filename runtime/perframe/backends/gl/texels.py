"""How a tensor lies in an array texture.

A texel holds four elements. Consecutive texels lie at one place of consecutive sheets (GL calls a sheet a layer), so
that one fragment writes them all, through as many render targets. Consecutive places fill rows: a shader finds a texel
by three operations, which it pays for each that it reads. Rows are short, because GPUs and software drivers compute
the fragments of a square together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SHEETS = 8  # the render targets that GL 3.3 guarantees
_SHEET_BITS = SHEETS.bit_length() - 1
_WHOLE_TEXEL = {4: np.complex128, 2: np.complex64}  # numbers of a texel's size: NumPy moves them at once


def count_texels(elements: int) -> int:
    """The number of texels for `elements` elements; at least one."""
    return max(1, -(-elements // 4))


def texture_size(elements: int, shift: int) -> tuple[int, int]:
    """Width and height of a texture for `elements` elements: one row, or rows of 2 ** shift places."""
    places = -(-count_texels(elements) // SHEETS)
    return min(places, 1 << shift), -(-places // (1 << shift))


def most_elements(texture_size: int, shift: int) -> int:
    """The number of elements that fit the largest texture."""
    return 4 * SHEETS * texture_size << shift


def to_sheets(values: Array, shift: int) -> Array:
    """Flat values of four bytes each, or two, in the order (sheet, row, column, element) of their texture."""
    width, height = texture_size(values.size, shift)
    padded = np.empty(width * height * SHEETS * 4, values.dtype)
    padded[: values.size], padded[values.size :] = values, 0
    texels: Array = padded.view(_WHOLE_TEXEL[values.itemsize]).reshape(height * width, SHEETS)
    return np.ascontiguousarray(texels.T).view(values.dtype).reshape(-1)


def from_sheets(values: Array, elements: int, shift: int, room: Callable[[int], Array]) -> Array:
    """The opposite of `to_sheets`, for the sheets that `elements` elements use. `room` returns bytes for the result."""
    width, height = texture_size(elements, shift)
    texels: Array = values.view(_WHOLE_TEXEL[values.itemsize]).reshape(-1, height * width)
    made: Array = room(values.nbytes).view(texels.dtype)
    np.copyto(made.reshape(height * width, -1), texels.T)
    return made.view(values.dtype)[:elements]


def shader_of_places(shift: int) -> str:
    """GLSL that finds a texel: its column, its row and its sheet; those of a place, and the first texel there."""
    down = _SHEET_BITS + shift
    return (
        f"#define TEXELS {SHEETS}\n"
        f"#define COLUMN(t) int(uint(t) >> {_SHEET_BITS} & {(1 << shift) - 1}u)\n"
        f"#define ROW(t) ((t) >> {down})\n"
        f"#define COLUMN_OF(place) ((place) & {(1 << shift) - 1})\n"
        f"#define ROW_OF(place) ((place) >> {shift})\n"
        f"#define SHEET(t) ((t) & {SHEETS - 1})\n"
        f"#define FIRST_TEXEL(at) ((at).y << {down} | (at).x << {_SHEET_BITS})"
    )
