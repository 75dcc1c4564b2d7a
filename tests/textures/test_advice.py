"""Errors of a TextureConverter say how to make a picture of what was given, or what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf

PICTURE = np.zeros((4, 5, 3), np.uint8)


@pytest.mark.parametrize(
    ("shape", "dtype", "advice"),
    [
        ((3, 8, 9), "uint8", "array.transpose(1, 2, 0)"),
        ((1, 8, 9, 3), "uint8", "array[0]"),
        ((1, 3, 8, 9), "uint8", "array[0].transpose(1, 2, 0)"),
        ((4, 4, 3), "float64", 'array.astype("float32")'),
        ((4, 4), "bool", 'array.astype("float32")'),
        ((3, 8, 9), "float64", 'array.transpose(1, 2, 0).astype("float32")'),
        ((4, 4, 3), "int64", 'array.astype("uint8")'),
        ((8, 9, 5), "uint8", ""),
        ((4, 4, 7), "uint8", ""),
        ((3, 4, 9), "uint8", ""),
        ((2, 3, 8, 9), "uint8", ""),
        ((0, 4, 3), "float64", ""),
    ],
)
def test_an_array_that_is_nearly_a_picture_is_told_how(shape: tuple[int, ...], dtype: str, advice: str) -> None:
    array, converter = np.ones(shape, dtype), pf.TextureConverter()
    with pytest.raises(pf.InputError) as caught:
        converter.to_tensor(array)
    assert str(caught.value).endswith(f"this is {dtype} {shape}{': pass ' * bool(advice)}{advice}")
    if advice:
        converter.to_tensor(eval(advice, {"array": array}))


def test_numbers_that_are_no_bytes_become_none() -> None:
    with pytest.raises(pf.InputError) as caught:
        pf.TextureConverter().to_tensor(np.full((4, 4, 3), 256))
    assert str(caught.value).endswith("this is int64 (4, 4, 3)")


def test_a_target_is_not_copied() -> None:
    x = pf.Tensor(np.zeros((3, 4, 4), np.float32))
    with pytest.raises(pf.InputError) as caught:
        pf.TextureConverter().to_texture(x, np.zeros((4, 4, 3)))
    assert str(caught.value).endswith("this is float64 (4, 4, 3)")


@pytest.mark.parametrize("with_gl", [True, False], ids=["gl", "arrays"])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_no_picture(kind: Any, with_gl: bool, tmp_path: Path, gl_context: Any) -> None:
    path = kind(tmp_path / "a.png")
    converter = pf.TextureConverter(gl_context if with_gl else None)
    x, region = pf.Tensor(np.zeros((1, 3, 2, 2), np.float32)), np.array([[1, 1, 2, 2, 0]], np.float32)
    texture: Any = gl_context.texture((2, 2), 4)
    for use in (
        lambda: converter.to_tensor(path, size=(2, 2)),
        lambda: converter.to_tensor([PICTURE, path], size=(2, 2)),
        lambda: converter.crop(path, region, x),
        lambda: converter.upload(path, texture),
    ):
        with pytest.raises(pf.InputError, match=r"is a path, not a picture: read it with next\(iter\(") as caught:
            use()
    for target in (path, [path]):
        with pytest.raises(pf.InputError, match=r"is a path, not a texture or an array: .*pf\.media\.open_sink"):
            converter.to_texture(x, target)
    with pf.media.open_sink(path) as sink:
        sink.write(np.full((2, 2, 3), 255, np.uint8))
    read = eval(str(caught.value).partition("read it with ")[2], {"pf": pf})
    assert pf.TextureConverter().to_tensor(read).numpy().tolist() == np.ones((1, 3, 2, 2)).tolist()


def test_where_only_a_context_helps(gl_context: Any) -> None:
    converter, x = pf.TextureConverter(), pf.Tensor(np.zeros((3, 4, 5), np.float32))
    for use in (
        lambda: converter.render_to_screen(x),
        lambda: converter.upload(PICTURE, gl_context.texture((5, 4), 3)),
        lambda: converter.open_sink("spout:a"),
        lambda: converter.open_source("spout:a"),
    ):
        with pytest.raises(pf.InputError, match=r"no GL context: give it one, as pf\.TextureConverter\(ctx\)$"):
            use()
    with pytest.raises(pf.InputError, match="no GL context: give it one, or pass pictures as arrays"):
        converter.to_tensor(gl_context.texture((5, 4), 3), x)
