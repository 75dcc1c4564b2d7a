"""Frames of films and their pixels: color matrices, pixel aspects, orientations and transparency."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from perframe.graphics.yuv import Orientation
from perframe.media.picture import Pixels, Size, covering, on_white

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

# Numbers of ITU-T H.273, which all containers and codecs share.
BT709 = 1
UNSPECIFIED = 2
BT601 = 6
_LIMITED = 1
_SCALER_MATRICES = {1: 1, 4: 4, 5: 5, 6: 5, 7: 7, 9: 9, 10: 9}  # H.273 to swscale's own numbers


@dataclass(frozen=True, slots=True)
class Colors:
    """A film's color tags, as H.273 numbers them."""

    matrix: int = UNSPECIFIED
    primaries: int = UNSPECIFIED
    transfer: int = UNSPECIFIED

    @staticmethod
    def of(frame: Any) -> Colors:
        """A frame's tags."""
        return Colors(int(frame.colorspace), int(frame.color_primaries), int(frame.color_trc))

    def completed(self, size: Size) -> Colors:
        """These tags for a film that is written: with a matrix that YUV needs, and that players understand."""
        if self.matrix in _SCALER_MATRICES:
            return self
        return Colors(usual_matrix(size), BT709, BT709)  # sRGB has the primaries of BT.709, and players its curve


def usual_matrix(size: Size) -> int:
    """The matrix of a film that names none. Players take BT.709 for high definition, and BT.601 below."""
    return BT709 if size[0] >= 1280 or size[1] > 576 else BT601


def rgb_of(frame: VideoFrame, enough: Size | None = None, exact: Size | None = None) -> Pixels:
    """A frame's pixels: upright, on white where it is transparent, scaled down to cover `enough`, or to `exact`."""
    across, down, turned = orientation_of(frame)
    own = (frame.width, frame.height)
    if exact is None:
        exact = covering(own[::-1] if turned else own, enough)
    size = exact[::-1] if turned else exact
    given: dict[str, Any] = {"width": size[0], "height": size[1], "interpolation": "AREA"}
    if frame.colorspace == UNSPECIFIED:
        given["src_colorspace"] = _SCALER_MATRICES[usual_matrix(own)]
    elif frame.colorspace in _SCALER_MATRICES:
        given["src_colorspace"] = _SCALER_MATRICES[frame.colorspace]
    if any(component.is_alpha for component in frame.format.components):
        pixels = on_white(np.asarray(frame.reformat(format="rgba", **given).to_ndarray()))
    else:
        pixels = np.asarray(frame.reformat(format="rgb24", **given).to_ndarray())
    pixels = pixels[:: -1 if down else 1, :: -1 if across else 1]
    return np.ascontiguousarray(pixels.transpose(1, 0, 2) if turned else pixels)


def is_turned(frame: VideoFrame) -> bool:
    """Whether the frame is stored on its side."""
    return orientation_of(frame).transposed


def orientation_of(frame: VideoFrame) -> Orientation:
    """How a stored frame becomes upright.

    The display matrix maps a stored (x, y) to the shown (a x + c y, b x + d y). Telephones turn films by it, and their
    front cameras mirror.
    """
    data: Any = frame.side_data.get("DISPLAYMATRIX")
    if data is None:
        return Orientation()
    a, b, _, c, d = np.frombuffer(data, np.int32)[:5].astype(float)
    turned = abs(b) + abs(c) > abs(a) + abs(d)
    across, down = (b, c) if turned else (a, d)
    return Orientation(across < 0, down < 0, turned)


def yuv_frame(av: Any, pixels: Pixels, size: Size, colors: Colors) -> Any:
    """A yuv420p frame of RGB pixels, scaled to an even `size`, in limited range, with its tags."""
    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(
        width=size[0],
        height=size[1],
        format="yuv420p",
        dst_colorspace=_SCALER_MATRICES[colors.matrix],
        dst_color_range=_LIMITED,
    )
    tag(frame, colors)
    return frame


def tag(target: Any, colors: Colors) -> None:
    """Give a frame, or an encoder, its color tags."""
    target.colorspace, target.color_range = colors.matrix, _LIMITED
    target.color_primaries, target.color_trc = colors.primaries, colors.transfer


def pixel_aspect(stream: Any, turned: bool) -> Fraction:
    """The width of a film's displayed pixels by their height."""
    aspect = Fraction(stream.sample_aspect_ratio or 1)
    if aspect <= 0:
        return Fraction(1)
    return 1 / aspect if turned else aspect
