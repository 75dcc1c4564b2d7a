"""Regions of pictures: modes, coordinates, sampling, scales, regions beyond the edge and upside down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Case, Draw, check

draw = Draw(23)
ROIS = np.array([[0, 0, 9, 7], [1.5, 2.5, 4, 3], [-3, -2, 12, 11], [5, 5, 5, 5], [6, 4, 2, 1]], np.float32)


def align(opset: int = 24, reference: str = "onnx", dtype: Any = np.float32, **attributes: Any) -> Case:
    channels = attributes.pop("channels", 3)
    x, pictures = draw(2, channels, 7, 9, dtype=dtype), np.array([0, 1, 0, 1, 1])
    attributes = {"output_height": 3, "output_width": 2, **attributes}
    name = f"opset {opset} {np.dtype(dtype)} {channels} channels {' '.join(f'{k}={v}' for k, v in attributes.items())}"
    options: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5, "opset": opset, "reference": reference}
    return Case(name, "RoiAlign", [x, ROIS.astype(dtype), pictures], attributes, **options)


CASES = [
    *(
        align(mode=mode, coordinate_transformation_mode=coordinates, sampling_ratio=samples)
        for mode in ("avg", "max")
        for coordinates in ("half_pixel", "output_half_pixel")
        for samples in (0, 1, 3)
    ),
    *(align(mode=mode, channels=channels) for mode in ("avg", "max") for channels in (1, 69)),
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


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("output", [1, 3])
def test_regions_far_larger_than_their_picture(mode: str, output: int, backend: str, backend_context: Any) -> None:
    """Samples beside the picture count, and need not be looked at."""
    rois = np.array([[-60, -70, 65, 80], [2, 3, 300, 200], [-300, -200, 4, 5], [20, 20, 400, 300]], np.float32)
    attributes = {"mode": mode, "output_height": output, "output_width": output}
    given = [draw(1, 1, 5, 6), rois, np.zeros(4, np.int64)]
    check(Case("far", "RoiAlign", given, attributes, rtol=1e-3, atol=1e-5, opset=24), backend, backend_context)


def test_a_region_without_end_takes_no_time(backend: str, backend_context: Any) -> None:
    rois = np.array([[0, 0, 1e9, 1e9], [-3e37, -3e37, 3e37, 3e37]], np.float32)
    case = Case("endless", "RoiAlign", [draw(1, 1, 5, 6), rois, np.zeros(2, np.int64)], {"output_height": 2})
    (made,) = pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context).values()
    np.testing.assert_allclose(made, 0, atol=1e-6)


def test_more_samples_than_fit_in_memory_are_refused() -> None:
    case = Case("", "RoiAlign", [draw(1, 1, 5, 6), ROIS[:1], np.zeros(1, np.int64)], {"sampling_ratio": 2**31 - 1})
    with pytest.raises(pf.BackendError, match=r"'node' .*samples of a region"):
        pf.run(case.proto(), case.fed)


@pytest.mark.parametrize(("region", "picture", "said"), [(np.nan, 0, "region 1 must be finite"), (1, 2, "index 2 ")])
def test_wrong_regions(region: float, picture: int, said: str) -> None:
    rois = np.array([[0, 0, 2, 2], [0, region, 2, 2]], np.float32)
    case = Case("", "RoiAlign", [draw(2, 1, 5, 6), rois, np.array([0, picture])], {})
    with pf.Worker(pf.load(case.proto())) as worker:
        worker.schedule(case.fed)
        with pytest.raises(pf.PerframeError, match=rf"'node' .*{said}"):
            worker.peek_output().download_to_array()
        worker.schedule(case.inputs[0], rois[[0, 0]], np.zeros(2, np.int64))
        assert np.isfinite(worker.peek_output().download_to_array()).all()
