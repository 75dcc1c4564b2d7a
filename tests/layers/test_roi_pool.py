"""MaxRoiPool, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check

draw = Draw(83)
ROIS = np.array([[0, 0, 0, 6, 4], [1, 2.4, 1.2, 5.6, 3.1], [0, -3, 2, 1, 9], [1, 3, 3, 3, 3]], np.float32)


def pool(name: str, shape: tuple[int, ...], pooled: list[int], scale: float = 1.0) -> Case:
    attributes = {"pooled_shape": pooled, "spatial_scale": scale}
    return Case(name, "MaxRoiPool", [draw(*shape), ROIS], attributes, reference="onnxruntime", opset=21)


def many(seed: int) -> Case:
    """Regions anywhere, beyond the picture too."""
    random = np.random.default_rng(seed)
    rois = np.column_stack([random.integers(0, 3, 37), random.integers(-8, 40, (37, 4)) / 2]).astype(np.float32)
    attributes = {"pooled_shape": [3, 5], "spatial_scale": 0.5}
    x = random.standard_normal((3, 2, 13, 17)).astype(np.float32)
    return Case(f"many {seed}", "MaxRoiPool", [x, rois], attributes, reference="onnxruntime", opset=21)


CASES = [
    *(many(seed) for seed in range(3)),
    pool("cells of one", (2, 3, 5, 7), [1, 1]),
    pool("more cells than rows", (2, 3, 5, 7), [7, 3]),
    pool("scaled", (2, 1, 11, 13), [2, 5], 1.5),
    pool("one element", (2, 5, 1, 1), [3, 2]),
    pool("more rows than a pass", (2, 2, 211, 157), [1, 2], 40.0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_roi_pool(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
