"""Inputs and open dims as the command line writes them."""

from __future__ import annotations

import pytest

from perframe.conversion.options import InputShape, OpenDim, check_opset, dims_of, inputs_of, parse_dynamic, parse_input
from perframe.errors import InputError


def test_inputs() -> None:
    assert parse_input("image:1x3x224x224") == InputShape("image", (1, 3, 224, 224))
    assert parse_input("ids:1x16:int64") == InputShape("ids", (1, 16), "int64")
    assert parse_input("serving/x:0:?x4") == InputShape("serving/x:0", (-1, 4))
    assert parse_input("scale:scalar:float16") == InputShape("scale", (), "float16")
    assert parse_input("x:7") == InputShape("x", (7,))
    assert inputs_of({"x": (1, -1), "y": InputShape("y", (2,), "int64")}) == inputs_of(["x:1x?", "y:2:int64"])


def test_open_dims() -> None:
    assert parse_dynamic("image:0=batch") == OpenDim("image", 0, "batch")
    assert parse_dynamic("x:0:-1=width") == OpenDim("x:0", -1, "width")
    assert dims_of({"x": {0: "batch", 2: "height"}}) == dims_of(["x:0=batch", "x:2=height"])


@pytest.mark.parametrize(
    "text", ["", "image", "image:", "image:axb", ":1x2", "image:1x2:", "image:1x-2", "image:1x2:float9"]
)
def test_wrong_inputs(text: str) -> None:
    with pytest.raises(InputError, match=r"NAME:SHAPE|is not one of"):
        parse_input(text)


@pytest.mark.parametrize("text", ["", "image", "image:0", "x=batch", "image:0=", "x:x=batch", "image:0=1x", ":0=n"])
def test_wrong_open_dims(text: str) -> None:
    with pytest.raises(InputError, match="NAME:AXIS=DIM"):
        parse_dynamic(text)


def test_huge_inputs() -> None:
    for text in ("x:99999x99999x99999", "x:" + "x".join(["1"] * 33)):
        with pytest.raises(InputError, match="or more than 32 dims"):
            parse_input(text)


def test_an_input_twice() -> None:
    with pytest.raises(InputError, match="'x' is given twice"):
        inputs_of(["x:1", "x:2"])


def test_opsets() -> None:
    check_opset(15)
    for opset in (14, 99, True):
        with pytest.raises(InputError, match="opset must be 15 to 26"):
            check_opset(opset)
