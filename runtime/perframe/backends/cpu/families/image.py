"""Pictures in files, decoded on the CPU with Pillow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.image import CHANNELS

_FORMATS = ("BMP", "JPEG", "JPEG2000", "TIFF", "PNG", "WEBP", "PPM")  # those of ONNX's ImageDecoder


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Return (height, width, channels). A file that cannot be decoded gives a picture without pixels."""
    pixel_format = layer.declaration.with_defaults(layer.attributes)["pixel_format"]
    try:
        with PIL.Image.open(io.BytesIO(inputs[0].tobytes()), formats=_FORMATS) as image:
            pixels = np.asarray(image.convert("L" if pixel_format == "Grayscale" else "RGB"))
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError):
        return [np.zeros((0, 0, CHANNELS[pixel_format]), np.uint8)]
    channels = pixels.reshape(*pixels.shape[:2], CHANNELS[pixel_format])
    return [channels[..., ::-1] if pixel_format == "BGR" else channels]
