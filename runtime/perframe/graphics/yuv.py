"""Frames in the color formats of decoders and cameras: planes of luma and chroma that the GPU converts to RGB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any, Literal, NamedTuple

import numpy as np

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

# The weights of red and blue in luma, by the number of the matrix in ITU-T H.273.
LUMA_WEIGHTS = {
    1: (0.2126, 0.0722),  # BT.709
    4: (0.30, 0.11),  # FCC
    5: (0.299, 0.114),  # BT.601, 625 lines
    6: (0.299, 0.114),  # BT.601, 525 lines
    7: (0.212, 0.087),  # SMPTE 240M
    9: (0.2627, 0.0593),  # BT.2020
}


class YuvFormat(NamedTuple):
    """A layout of samples in planes."""

    layout: Literal["planar", "semiplanar", "packed"]
    """Planes Y, U and V; or Y and interleaved UV; or one plane of Y U Y V."""
    across: int
    """Luma samples for each chroma sample in a row: 1 or 2."""
    down: int
    """Rows of luma for each row of chroma: 1 or 2."""
    byte_scale: float = 1.0
    """A sample as GL reads it, 0 to 1, times this is the value in bytes / 255."""


class Orientation(NamedTuple):
    """How a stored frame becomes upright: mirrored first, and then its axes are exchanged."""

    mirrored_across: bool = False
    mirrored_down: bool = False
    transposed: bool = False


class YuvFrame:
    """A frame as its decoder or camera made it: its planes, and how they become RGB.

    - `planes` are arrays of uint8 or uint16, rows x columns x samples of a texel. They are views of the frame's memory,
      whose rows may end with padding.
    - `size` is the upright width and height.
    - `matrix` is a key of `LUMA_WEIGHTS`; `is_full` says that samples use their whole range (of video otherwise).
    - `siting` is the place of the first chroma sample: (0, 0) in the middle of the luma samples that share it, and 0.25
      chroma samples to the left or to the top for those that lie on the first of them.
    - `convert` returns the pixels, height x width x 3 of uint8.
    """

    def __init__(
        self,
        planes: Sequence[np.ndarray[Any, Any]],
        form: YuvFormat,
        stored_size: tuple[int, int],
        matrix: int,
        is_full: bool,
        siting: tuple[float, float],
        orientation: Orientation,
        convert: Callable[[], Pixels],
    ) -> None:
        self.planes, self.form, self.orientation = tuple(planes), form, orientation
        self.stored_size, self.size = stored_size, stored_size[::-1] if orientation.transposed else stored_size
        self.matrix, self.is_full, self.siting = matrix, is_full, siting
        self._convert, self._lock = convert, Lock()
        self._pixels: Pixels | None = None

    @property
    def pixels(self) -> Pixels:
        """The frame as height x width x 3 of uint8, upright. The CPU converts it when it is first asked for."""
        with self._lock:
            if self._pixels is None:
                self._pixels = self._convert()
            return self._pixels

    def numbers(self) -> dict[str, Any]:
        """The parameters of the shader `convert/yuv_to_texture`."""
        (width, height), form = self.stored_size, self.form
        chroma = -(-width // form.across), -(-height // form.down)
        return {
            "size": self.stored_size,
            "chroma_size": chroma,
            "ratio": (_ratio(chroma[0], width), _ratio(chroma[1], height)),
            "siting": self.siting,
            "orientation": tuple(map(int, self.orientation)),
            **_rows(self.matrix, self.is_full, form.byte_scale),
        }


def _ratio(few: int, many: int) -> float:
    """The chroma samples for a luma sample: 0.5, or a little more for an odd size, in swscale's fixed point."""
    return ((few << 16) + many // 2) // many / (1 << 16)


@lru_cache
def _rows(matrix: int, is_full: bool, byte_scale: float) -> Mapping[str, tuple[float, float, float, float]]:
    """Rows that bring (Y, U, V, 1), as GL reads samples, to R, G and B of 0 to 1."""
    red, blue = LUMA_WEIGHTS[matrix]
    green = 1 - red - blue
    luma, low = (1.0, 0.0) if is_full else (255 / 219, -16 / 219)
    chroma, middle = (1.0, -128 / 255) if is_full else (255 / 224, -128 / 224)
    by_u = {"red": 0.0, "green": -2 * blue * (1 - blue) / green, "blue": 2 * (1 - blue)}
    by_v = {"red": 2 * (1 - red), "green": -2 * red * (1 - red) / green, "blue": 0.0}
    return {
        name: (
            luma * byte_scale,
            by_u[name] * chroma * byte_scale,
            by_v[name] * chroma * byte_scale,
            low + (by_u[name] + by_v[name]) * middle,
        )
        for name in by_u
    }
