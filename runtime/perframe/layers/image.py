"""Pictures in files."""

from __future__ import annotations

from typing import Literal

from perframe.errors import InferenceError
from perframe.ir.declaration import layer
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType

CHANNELS = {"RGB": 3, "BGR": 3, "Grayscale": 1}


@layer(on_host=True)
def ImageDecoder(encoded: PartialTensor, *, pixel_format: Literal["RGB", "BGR", "Grayscale"] = "RGB") -> PartialTensor:
    if encoded.dtype is not DataType.UINT8 or (encoded.shape is not None and len(encoded.shape) != 1):
        raise InferenceError(f"ImageDecoder takes the bytes of a file, not {encoded}")
    return encoded.with_shape((None, None, None))
