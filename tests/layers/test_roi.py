"""Regions of pictures: modes, coordinates, sampling, scales, regions beyond the edge and upside down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layers.runner import Case, Draw, check

draw = Draw(23)
ROIS = np.array([[0, 0, 9, 7], [1.5, 2.5, 4, 3], [-3, -2, 12, 11], [5, 5, 5, 5], [6, 4, 2, 1]], np.float32)


def align(opset: int = 24, reference: str = "onnx", dtype: Any = np.float32, **attributes: Any) -> Case:
    x, pictures = draw(2, 3, 7, 9, dtype=dtype), np.array([0, 1, 0, 1, 1])
    attributes = {"output_height": 3, "output_width": 2, **attributes}
    name = f"opset {opset} {np.dtype(dtype)} {' '.join(f'{k}={v}' for k, v in attributes.items())}"
    options: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5, "opset": opset, "reference": reference}
    return Case(name, "RoiAlign", [x, ROIS.astype(dtype), pictures], attributes, **options)


CASES = [
    *(
        align(mode=mode, coordinate_transformation_mode=coordinates, sampling_ratio=samples)
        for mode in ("avg", "max")
        for coordinates in ("half_pixel", "output_half_pixel")
        for samples in (0, 1, 3)
    ),
    align(spatial_scale=0.5),
    align(output_height=1, output_width=5, spatial_scale=1.7),
    align(dtype=np.float64),
    align(10, "onnxruntime"),
    align(10, "onnxruntime", sampling_ratio=2, spatial_scale=0.5),
    align(16, "onnxruntime", sampling_ratio=2),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_roi_align(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
