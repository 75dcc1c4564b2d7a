"""Frames of films and cameras as planes of luma and chroma, in the memory of the decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perframe.graphics.yuv import LUMA_WEIGHTS, Pixels, YuvFormat, YuvFrame
from perframe.media.frames import BT601, UNSPECIFIED, orientation_of, rgb_of, usual_matrix
from perframe.media.picture import Size, covering

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

# swscale reads 10 bits as bytes with two more binary places: 4 x 255 is full. P010 has them in the upper bits.
_TEN, _UPPER_TEN = 65535 / (4 * 255), 65535 / (256 * 255)
FORMATS = {
    "yuv420p": YuvFormat("planar", 2, 2),
    "yuvj420p": YuvFormat("planar", 2, 2),
    "yuv422p": YuvFormat("planar", 2, 1),
    "yuvj422p": YuvFormat("planar", 2, 1),
    "yuv444p": YuvFormat("planar", 1, 1),
    "yuvj444p": YuvFormat("planar", 1, 1),
    "nv12": YuvFormat("semiplanar", 2, 2),
    "yuyv422": YuvFormat("packed", 2, 1),
    "yuv420p10le": YuvFormat("planar", 2, 2, _TEN),
    "yuv422p10le": YuvFormat("planar", 2, 1, _TEN),
    "yuv444p10le": YuvFormat("planar", 1, 1, _TEN),
    "p010le": YuvFormat("semiplanar", 2, 2, _UPPER_TEN),
}
"""The formats that the GPU converts, by FFmpeg's names."""
_SAMPLES = {"planar": (1, 1, 1), "semiplanar": (1, 2), "packed": (4,)}  # of a texel, by the plane
_FULL_RANGE = 2  # in H.273
_PATTERN, _PIXEL = 16, 6  # the width and height of the picture that shows the siting, and a pixel of it
_GREY, _FIRST = 128, 64  # its luma, and its first chroma
_RED_OF_V, _BLUE_OF_U = (2 * (1 - weight) * 255 / 224 for weight in LUMA_WEIGHTS[BT601])


class FrameReader:
    """Makes the contents of pictures: planes where the GPU can convert a frame, and pixels otherwise.

    Frames to be scaled, to cover `enough` or to `exact`, are pixels; so are interlaced, transparent and rare ones. As
    soon as a frame's pixels were asked for, those of the following frames are converted when they are read.
    """

    def __init__(self, enough: Size | None = None, exact: Size | None = None) -> None:
        self._enough, self._exact = enough, exact
        self._sitings: dict[tuple[str, int, int], tuple[float, float]] = {}
        self._wants_pixels = False

    def read(self, frame: VideoFrame) -> Pixels | YuvFrame:
        """The content of a frame's picture."""
        yuv = self._planes(frame)
        if yuv is None:
            return rgb_of(frame, self._enough, self._exact)
        if self._wants_pixels:
            _ = yuv.pixels
        return yuv

    def _planes(self, frame: VideoFrame) -> YuvFrame | None:
        form, size = FORMATS.get(frame.format.name), (frame.width, frame.height)
        matrix = usual_matrix(size) if frame.colorspace == UNSPECIFIED else int(frame.colorspace)
        orientation = orientation_of(frame)
        upright = size[::-1] if orientation.transposed else size
        is_scaled = self._exact is not None or covering(upright, self._enough) != upright
        if form is None or is_scaled or frame.interlaced_frame or matrix not in LUMA_WEIGHTS:
            return None
        planes = _views(frame, form)
        if planes is None:
            return None
        is_full = frame.color_range == _FULL_RANGE or frame.format.name.startswith("yuvj")

        def convert() -> Pixels:
            self._wants_pixels = True
            return rgb_of(frame)

        return YuvFrame(planes, form, size, matrix, is_full, self._siting(frame, form), orientation, convert)

    def _siting(self, frame: VideoFrame, form: YuvFormat) -> tuple[float, float]:
        """The place of the first chroma sample. It is found once for a stream."""
        key = (frame.format.name, frame.width, frame.height)
        if key not in self._sitings:
            across, down = siting_of(frame)
            self._sitings[key] = (across if form.across == 2 else 0.0, down if form.down == 2 else 0.0)
        return self._sitings[key]


def _views(frame: VideoFrame, form: YuvFormat) -> list[np.ndarray[Any, Any]] | None:
    """The planes as arrays without a copy, rows x columns x samples; None if rows do not end with a whole texel."""
    dtype, made = np.dtype(np.uint8 if form.byte_scale == 1 else np.uint16), []
    memory: Any
    for memory, samples in zip(frame.planes, _SAMPLES[form.layout], strict=True):
        length = abs(memory.line_size)
        if length % (samples * dtype.itemsize):
            return None
        rows = np.frombuffer(memory, dtype).reshape(memory.height, -1, samples)
        rows.flags.writeable = False  # the decoder builds other frames on it
        made.append(rows if memory.line_size > 0 else rows[::-1])
    return made


def siting_of(frame: VideoFrame) -> tuple[float, float]:
    """Where swscale sees the chroma of a frame that has fewer chroma samples: 0.25 for the left or the top, 0 for the
    middle.

    PyAV does not give a frame's chroma location, but its copies keep it. This converts a copy with a ramp.
    """
    from av.video.reformatter import Interpolation

    side = _PATTERN + 2 * (frame.width == _PATTERN)  # another size makes another frame
    pattern = frame.reformat(width=side, height=side, format="yuv420p", interpolation="POINT", threads=1)
    ramp = 16 * np.arange(side // 2, dtype=np.uint8)
    planes: Any = pattern.planes
    luma, u, v = (np.frombuffer(plane, np.uint8).reshape(plane.height, -1) for plane in planes)
    luma[:] = _GREY
    u[:, : side // 2], v[:, : side // 2] = ramp[:, None] + _FIRST, ramp + _FIRST
    exact = Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
    given = {"src_colorspace": 5, "src_color_range": 1, "interpolation": exact, "threads": 1}
    shown = pattern.reformat(format="rgb24", **given).to_ndarray()
    grey = (_GREY - 16) * 255 / 219
    middle = (_PIXEL + 0.5) / 2 - 0.5
    red, _, blue = shown[_PIXEL, _PIXEL].astype(float)
    across = ((red - grey) / _RED_OF_V + 128 - _FIRST) / 16 - middle
    down = ((blue - grey) / _BLUE_OF_U + 128 - _FIRST) / 16 - middle
    return round(4 * across) / 4, round(4 * down) / 4
