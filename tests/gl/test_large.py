"""Tensors past one row of texels, one dispatch, one run of a loop; and sizes that are no multiple of four."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from gl.graphs import graph
from perframe.backends.gl.compile.program import ProgramCache, shaders_on_sheets
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.pixel import areas, count_blocks
from perframe.backends.gl.texels import count_texels, from_sheets, texture_size, to_sheets
from perframe.tensor.snapshots import Snapshots

ROW = 64 * 8 * 4  # elements of a row: columns, sheets, elements of a texel


def sequence(*shape: int) -> Any:
    """Numbers that differ from their neighbours, exact in float32."""
    return (np.arange(np.prod(shape)) % 65521).astype(np.float32).reshape(shape)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 31, 33, 127, 129, ROW - 1, ROW, ROW + 1, 3 * ROW + 2])
def test_sizes_around_texels_and_rows(size: int, where: str, gl_context: Any) -> None:
    """Flat, reversed (each element comes from another texel and sheet), and shifted by one."""
    nodes = [
        ("Slice", ["x", "end", "begin", "axis", "back"], ["reversed"]),
        ("Concat", ["x", "reversed"], ["joined"], {"axis": 0}),
        ("Mul", ["joined", "two"], ["y"]),
    ]
    constants = {
        "end": np.array([-1]),
        "begin": np.array([-(2**31)]),
        "axis": np.array([0]),
        "back": np.array([-1]),
        "two": np.float32(2),
    }
    model = graph(nodes, {"x": ("n",)}, ["y", "reversed"], constants)
    x = sequence(size)
    outputs = pf.run(model, {"x": x}, where, strict=True, ctx=gl_context)
    np.testing.assert_array_equal(outputs["reversed"], x[::-1])
    np.testing.assert_array_equal(outputs["y"], 2 * np.concatenate([x, x[::-1]]))


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("size", [65535 * 64 - 1, 65535 * 64 + 1, 5_000_003])
def test_more_than_one_dimension_of_groups(size: int, where: str, gl_context: Any) -> None:
    model = graph([("Add", ["x", "one"], ["y"])], {"x": ("n",)}, constants={"one": np.float32(1)})
    with pf.Worker(model, where, gl_context, strict=True) as worker:
        y = worker.schedule(sequence(size)).peek_output().download_to_array()
    np.testing.assert_array_equal(y, sequence(size) + 1)


def test_a_row_of_texels_is_as_long_as_these_tests_assume(gl_context: Any) -> None:
    shift = device_for(gl_context).texture_shift
    assert texture_size(ROW, shift) == (64, 1) and texture_size(ROW + 1, shift) == (64, 2)


@pytest.mark.parametrize("size", [1, 30, 40, 300, ROW + 1])
def test_a_geometry_shader_chooses_sheets_where_vertex_shaders_cannot(
    size: int, gl_context: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path))  # no program comes from disk
    programs = ProgramCache(gl_context, device_for(gl_context).gl)
    programs.on_sheets = shaders_on_sheets(set())
    assert "geometry_shader" in programs.on_sheets
    monkeypatch.setattr(device_for(gl_context), "programs", programs)
    model = graph(
        [("ReduceSum", ["x", "axis"], ["y"], {"keepdims": 0})], {"x": ("n", "m")}, ["y"], {"axis": np.array([1])}
    )
    x = sequence(size, 7)
    y = pf.run(model, {"x": x}, "gpu_pixel", strict=True, ctx=gl_context)["y"]
    np.testing.assert_array_equal(y, x.sum(1))
    assert programs._programs


@pytest.mark.parametrize("size", [1, 5, 33, 129, ROW, 2 * ROW + 1])
def test_elements_lie_where_shaders_look_for_them(size: int) -> None:
    """Texel t lies on sheet t mod 8. Its place, t div 8, counts the columns of rows."""
    values = np.arange(size, dtype=np.int32)
    width, height = texture_size(size, 6)
    sheets = to_sheets(values, 6).reshape(8, height, width, 4)
    places, sheet = np.divmod(values // 4, 8)
    row, column = np.divmod(places, 64)
    np.testing.assert_array_equal(sheets[sheet, row, column, values % 4], values)
    used = sheets[: count_texels(size)].reshape(-1)
    np.testing.assert_array_equal(from_sheets(used, size, 6, Snapshots().room), values)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, bool])
def test_whole_numbers_come_back_as_declared(dtype: Any, where: str, gl_context: Any) -> None:
    """Through storage that is int32 on the GPU, over more than one row."""
    model = graph([("Transpose", ["x"], ["y"])], {"x": ("n", "m")}, dtype=dtype)
    x = (np.arange(130 * 131) - 5000).reshape(130, 131)
    x[0, :2] = -(2**31), 2**31 - 1
    x = (x % 3 == 0) if dtype is bool else x.astype(dtype)
    y = pf.run(model, {"x": x}, where, strict=True, ctx=gl_context)["y"]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("size", [1023, 1025, 5000, 1_100_000])
def test_long_rows(rows: int, size: int, where: str, gl_context: Any) -> None:
    """Softmax and a mean in parts, some of which hold nothing but minus infinity, as attention masks do."""
    nodes = [("Softmax", ["x"], ["s"]), ("ReduceMean", ["s", "axis"], ["m"], {"keepdims": 0})]
    model = graph(nodes, {"x": ("n", "m")}, ["s", "m"], {"axis": np.array([1])})
    x = np.random.default_rng(5).normal(0, 3, (rows, size)).astype(np.float32)
    x[:, size // 4 :] = -np.inf
    outputs = pf.run(model, {"x": x}, where, strict=True, ctx=gl_context)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    expected = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(outputs["s"], expected, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(outputs["m"], expected.mean(1), rtol=1e-4)


def test_a_mask_of_nothing_is_not_a_number_as_elsewhere(backend: str, backend_context: Any) -> None:
    model = graph([("Softmax", ["x"], ["y"])], {"x": ("n", "m")})
    x = np.full((2, 3000), -np.inf, np.float32)
    x[1, 7] = 0
    y = pf.run(model, {"x": x}, backend, ctx=backend_context)["y"]
    assert np.isnan(y[0]).all()
    assert y[1, 7] == 1 and y[1].sum() == 1


def test_too_large_for_the_driver_falls_back_or_says_so(
    where: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = graph([("Tanh", ["x"], ["y"])], {"x": ("n",)})
    with pf.Worker(model, where, gl_context, strict=True) as worker:
        monkeypatch.setattr(worker._own.backend, "max_elements", 100)
        with pytest.raises(pf.FallbackError, match="101 elements are more than"):
            worker.schedule(sequence(101))
        assert worker.schedule(sequence(100)).peek_output().shape == (100,)


@pytest.mark.parametrize(("width", "height"), [(1, 5), (16, 4), (17, 9), (44, 1), (64, 13), (64, 15), (20, 2)])
def test_pieces_cover_a_texture_once(width: int, height: int) -> None:
    """Pieces are blocks of 4 × 4 texels, since llvmpipe shades no less, and few rectangles. In the last rows blocks
    have nearly as many texels, and so cost what the others do.
    """
    blocks = count_blocks(width, height)
    for each in (1, 2, 3, 7, 16, blocks):
        drawn = np.zeros((height, width), int)
        for first in range(0, blocks, each):
            found = areas(width, height, first, min(each, blocks - first))
            assert 1 <= len(found) <= 3
            for x, y, columns, rows in found:
                assert x % 4 == y % 4 == 0 and columns > 0 < rows
                drawn[y : y + rows, x : x + columns] += 1
        assert (drawn == 1).all()
    if width % 16 == 0:
        sizes = [sum(w * h for _, _, w, h in areas(width, height, block, 1)) for block in range(blocks)]
        assert 12 <= min(sizes) <= max(sizes) <= 16
