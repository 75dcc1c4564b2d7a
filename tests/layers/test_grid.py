"""Sampling at the points of grids: modes, paddings, corners, one to three dims; grids of affine maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Case, Draw, check, ints
from small import load, node

draw = Draw(19)
PADDINGS = ("zeros", "border", "reflection")


def sample(size: tuple[int, ...], points: tuple[int, ...], opset: int = 24, **attributes: Any) -> Case:
    dtype, reach = attributes.pop("dtype", np.float32), attributes.pop("reach", 1.6)
    reference, channels = attributes.pop("reference", "onnx"), attributes.pop("channels", 3)
    x = draw(2, channels, *size, low=-9, high=9, dtype=dtype)
    grid = draw(2, *points, len(size), low=-reach, high=reach)
    options = " ".join(f"{key}={value}" for key, value in attributes.items())
    name = f"{channels} of {size} at {points} {np.dtype(dtype)} opset {opset} {options}"
    loose: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-4, "opset": opset, "reference": reference}
    return Case(name, "GridSample", [x, grid], attributes, **loose)


CASES = [
    *(
        sample((4, 5), (3, 7), mode=mode, padding_mode=padding, align_corners=align)
        for mode in ("nearest", "linear", "cubic")
        for padding in PADDINGS
        for align in (0, 1)
    ),
    *(
        sample((2, 3, 4), (2, 3, 5), mode=mode, padding_mode=padding, align_corners=align)
        for mode in ("nearest", "linear")
        for padding in PADDINGS
        for align in (0, 1)
    ),
    *(  # more points than an item has, and channels by vectors
        sample((5, 6), (1, 131), channels=channels, mode=mode, padding_mode=padding)
        for channels, mode, padding in (
            *((3, "linear", "zeros"), (17, "linear", "zeros"), (33, "cubic", "reflection"), (16, "nearest", "border")),
            (40, "nearest", "zeros"),
        )
    ),
    sample((2, 3, 4), (1, 2, 2), mode="linear", channels=37),
    sample((2, 3, 4), (1, 2, 2), mode="cubic"),
    sample((7,), (5,), mode="linear"),
    sample((1, 5), (3, 3), mode="linear", padding_mode="border"),
    sample((4, 5), (3, 3), mode="linear", padding_mode="reflection", reach=9),
    sample((4, 5), (3, 3), mode="nearest", dtype=np.int32),
    sample((4, 5), (3, 3), mode="nearest", dtype=np.int64),
    sample((4, 5), (3, 3), mode="nearest", dtype=np.uint8),
    sample((4, 5), (3, 3), mode="linear", dtype=np.float64),
    *(sample((4, 5), (3, 3), 16, mode=mode, reference="onnxruntime") for mode in ("bilinear", "nearest", "bicubic")),
    sample((4, 5), (3, 3), 16, reference="onnxruntime"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_grid_sample(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 3, 2, 4)], ids=str)
def test_affine_grid(size: tuple[int, ...], align: int, backend: str, backend_context: Any) -> None:
    dims = len(size) - 2
    inputs = [draw(size[0], dims, dims + 1), ints(*size)]
    check(Case("", "AffineGrid", inputs, {"align_corners": align}, atol=1e-5), backend, backend_context)


def test_points_that_are_no_numbers_lie_outside(backend: str, backend_context: Any) -> None:
    grid = np.full((1, 1, 2, 2), np.nan, np.float32)
    grid[0, 0, 1] = np.inf
    case = Case("", "GridSample", [draw(1, 1, 3, 3), grid], reference=lambda x, g: np.zeros((1, 1, 1, 2), np.float32))
    check(case, backend, backend_context)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_elements_that_are_no_neighbours_of_a_point_do_not_count(mode: str) -> None:
    """Outside of the picture there are zeros, and neither NaN nor an infinity of the picture."""
    x = np.full((1, 5, 2, 2), np.inf, np.float32)
    x[:, :, 0, 0] = 1
    grid = np.array([[[[9, 9], [-9, 0], [np.nan, 0], [np.inf, -np.inf], [-0.5, -0.5], [0.5, 0.5]]]], np.float32)
    model = load([node("GridSample", "x g", "y", mode=mode)], {"x": [1, 5, 2, 2], "g": [1, 1, 6, 2]})
    (y,) = pf.run(model, {"x": x, "g": grid}).values()
    wanted = [0, 0, 0, 0, 1, np.inf]
    if mode == "linear":  # weights of 0 times infinities
        wanted[4] = np.nan
    np.testing.assert_array_equal(y, np.broadcast_to(np.array(wanted, np.float32), (1, 5, 1, 6)))
