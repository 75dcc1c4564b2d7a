"""Frames of video in all color formats, and their colors by swscale."""

from __future__ import annotations

from typing import Any

import av
import numpy as np
from av.video.reformatter import Interpolation

from perframe.media.planes import FORMATS

EXACT = Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
"""swscale with chroma interpolated both ways, and without its approximations."""
SCALER_MATRICES = {1: 1, 4: 4, 5: 5, 6: 5, 7: 7, 9: 9, 10: 9}  # H.273 to swscale


def random_frame(form: str, size: tuple[int, int], matrix: int, is_full: bool, generator: Any, kind: str) -> Any:
    """A frame of random samples in their nominal range, or of a smooth picture. Its padding is random."""
    frame: Any = av.VideoFrame(*size, form)
    frame.colorspace, frame.color_range = matrix, 0 if form.startswith("yuvj") else 2 if is_full else 1
    for index, plane in enumerate(frame.planes):
        memory = np.frombuffer(plane, np.uint8).reshape(plane.height, -1)
        memory[:] = generator.integers(0, 256, memory.shape)
        ten = "10" in form
        texels = 1 + (index > 0) if FORMATS[form].layout == "semiplanar" else 4 if form == "yuyv422" else 1
        samples = memory.view(np.uint16 if ten else np.uint8).reshape(plane.height, -1, texels)
        is_luma = np.array([True, False, True, False] if texels == 4 else [index == 0])
        low, high = (0, 255) if is_full else (16, np.where(is_luma, 235, 240))
        if kind == "random":
            values = generator.integers(low, np.broadcast_to(high, texels) + 1, samples.shape) * (4 if ten else 1)
            values += generator.integers(0, 4, samples.shape) * (ten and values < 4 * np.max(high))
        else:
            y, x, k = np.meshgrid(*map(np.arange, samples.shape), indexing="ij")
            part = 0.5 + 0.5 * np.sin(x / 7 + y / 9 + 2 * k + index)
            values = np.rint((low + (high - low) * part) * (4 if ten else 1)).astype(int)
        samples[:] = values << (6 if form == "p010le" else 0)
    return frame


def shown(frame: Any, matrix: int, interpolation: Any = EXACT) -> Any:
    """The frame's colors by swscale, H x W x 3 of int."""
    matrix = SCALER_MATRICES[matrix]
    return (
        frame.reformat(format="rgb24", interpolation=interpolation, src_colorspace=matrix, threads=1)
        .to_ndarray()
        .astype(int)
    )


def seen(texture: Any) -> Any:
    """The colors of a texture of four bytes a pixel, H x W x 3 of int."""
    pixels = np.frombuffer(texture.read(), np.uint8).reshape(texture.height, texture.width, 4)
    assert (pixels[..., 3] == 255).all()
    return pixels[..., :3].astype(int)
