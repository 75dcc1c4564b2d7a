"""Pictures in files: formats, channel orders, and bytes that are none."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import PIL.Image
import pytest
from onnx import TensorProto, helper

import perframe as pf
from perframe.testing import Draw
from perframe.testing.cases import Array

draw = Draw(47)
PIXELS = draw(5, 7, 3, low=0, high=255, dtype=np.uint8)


def encode(pixels: Array, kind: str) -> Array:
    target = io.BytesIO()
    PIL.Image.fromarray(pixels).save(target, kind)
    return np.frombuffer(target.getvalue(), np.uint8)


def decode(data: Array, backend: str, ctx: Any, **attributes: str) -> Array:
    node = helper.make_node("ImageDecoder", ["x"], ["y"], **attributes)
    given = [helper.make_tensor_value_info("x", TensorProto.UINT8, ["size"])]
    made = [helper.make_tensor_value_info("y", TensorProto.UINT8, None)]
    graph = helper.make_graph([node], "picture", given, made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    result: Array = pf.run(model, {"x": data}, backend=backend, ctx=ctx)["y"]
    return result


@pytest.mark.parametrize("kind", ["png", "bmp", "tiff", "ppm"])
def test_lossless_formats(kind: str, backend: str, backend_context: Any) -> None:
    made = decode(encode(PIXELS, kind), backend, backend_context)
    np.testing.assert_array_equal(made, PIXELS)


def test_channels(backend: str, backend_context: Any) -> None:
    data = encode(PIXELS, "png")
    np.testing.assert_array_equal(decode(data, backend, backend_context, pixel_format="BGR"), PIXELS[..., ::-1])
    assert decode(data, backend, backend_context, pixel_format="Grayscale").shape == (5, 7, 1)
    grey = decode(encode(PIXELS[..., 0], "png"), backend, backend_context)
    np.testing.assert_array_equal(grey, np.repeat(PIXELS[..., :1], 3, axis=2))


@pytest.mark.parametrize("data", [b"", b"no picture", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_picture_has_no_pixels(data: bytes, backend: str, backend_context: Any) -> None:
    made = decode(np.frombuffer(data, np.uint8), backend, backend_context)
    assert made.shape == (0, 0, 3) and made.dtype == np.uint8


def test_an_unknown_pixel_format_is_refused(backend: str, backend_context: Any) -> None:
    with pytest.raises(pf.InferenceError, match="pixel_format"):
        decode(encode(PIXELS, "png"), backend, backend_context, pixel_format="CMYK")
