"""Resampling: modes, coordinates, rounding, antialiasing, policies, axes, and the resizing of older opsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Case, Draw, check, ints

draw = Draw(31)
PICTURE = (1, 2, 5, 7)


def resize(
    shape: tuple[int, ...] = PICTURE,
    scales: Any = None,
    sizes: Any = None,
    roi: Any = None,
    dtype: Any = np.float32,
    reference: Any = "onnx",
    **attributes: Any,
) -> Case:
    said = " ".join(f"{key}={value}" for key, value in attributes.items())
    given = [
        None if roi is None else np.array(roi, np.float32),
        None if scales is None else np.array(scales, np.float32),
        None if sizes is None else ints(*sizes),
    ]
    while given and given[-1] is None:
        given.pop()
    x = draw(*shape, low=-9, high=9, dtype=dtype)
    name = f"{shape} {np.dtype(dtype)} {'by' if sizes is None else 'to'} {scales or sizes} {said}"
    options: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-4, "gl": np.dtype(dtype).kind == "f"}
    return Case(name, "Resize", [x, *given], attributes, reference=reference, **options)


COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
BOTH_WAYS = ([1, 1, 2, 3], [1, 1, 0.6, 0.45], [1, 1, 1.7, 0.72])

CASES = [
    *(
        resize(scales=scales, mode=mode, coordinate_transformation_mode=coordinates)
        for mode in ("nearest", "linear", "cubic")
        for coordinates in COORDINATES
        for scales in BOTH_WAYS
    ),
    *(
        resize(scales=scales, mode="nearest", nearest_mode=rounding, coordinate_transformation_mode=coordinates)
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        for coordinates in ("half_pixel", "asymmetric", "align_corners")
        for scales in ([1, 1, 2, 2], [1, 1, 0.5, 1.5])
    ),
    *(
        resize(scales=scales, mode=mode, antialias=1)
        for mode in ("linear", "cubic")
        for scales in ([1, 1, 0.6, 0.4], [1, 1, 2, 0.3])
    ),
    *(
        resize(sizes=[1, 2, 3, 4], mode=mode, antialias=1, exclude_outside=exclude)
        for mode in ("linear", "cubic")
        for exclude in (0, 1)
    ),
    *(resize(scales=scales, mode="cubic", exclude_outside=1) for scales in BOTH_WAYS),
    resize(scales=[1, 1, 2, 2], mode="cubic", cubic_coeff_a=-0.5),
    resize(scales=[1, 1, 0.8, 2], mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1),
    *(resize(sizes=[1, 2, 9, 4], mode=mode) for mode in ("nearest", "linear", "cubic")),
    resize(sizes=[1, 2, 1, 1], mode="linear"),
    resize(sizes=[1, 2, 1, 1], mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
    resize(sizes=[1, 2, 1, 1], mode="linear", coordinate_transformation_mode="align_corners"),
    resize(sizes=[1, 2, 5, 7], mode="linear"),
    resize(scales=[2, 0.5], mode="linear", axes=[2, 3]),
    resize(scales=[2, 0.5], mode="nearest", axes=[-1, -2], reference="onnxruntime"),
    resize(sizes=[9, 3], mode="linear", axes=[3, 2]),
    *(
        resize(sizes=[8, 9], mode=mode, axes=[2, 3], keep_aspect_ratio_policy=policy)
        for policy in ("not_larger", "not_smaller", "stretch")
        for mode in ("nearest", "linear")
    ),
    resize((5,), scales=[1.5], mode="linear"),
    resize((3, 5), scales=[2, 2], mode="nearest"),
    resize((2, 3, 5), scales=[1, 2, 2], mode="linear"),
    resize((2, 3, 4, 5), scales=[2, 1, 1.5, 2], mode="linear"),
    resize((1, 2, 3, 4, 3), scales=[1, 1, 2, 0.5, 2], mode="linear"),
    resize((1, 2, 3, 4, 3), scales=[1, 1, 2, 2, 2], mode="nearest"),
    *(
        resize(
            sizes=[1, 2, 4, 6],
            roi=[0, 0, 0.2, 0.1, 1, 1, 0.7, 0.9],
            mode=mode,
            coordinate_transformation_mode="tf_crop_and_resize",
        )
        for mode in ("nearest", "linear", "cubic")
    ),
    *(
        resize(
            sizes=[1, 2, 4, 6],
            roi=[0, 0, -0.2, 0.4, 1, 1, 0.8, 1.3],
            mode=mode,
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=value,  # 1e9 must not affect points inside
        )
        for mode, value in (("linear", 7.0), ("linear", 1e9), ("nearest", -1e9))
    ),
    resize(
        sizes=[4, 6],
        roi=[0.1, 0.2, 0.9, 0.7],
        axes=[3, 2],
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
    ),
    *(  # wider than the lines that a CPU kernel keeps, and with more taps than it keeps lines
        resize((2, 1, 3, width), scales=[1, 1, 2, 2], mode=mode, reference="onnxruntime")
        for width in (15, 16, 17, 33, 1601)
        for mode in ("nearest", "linear")
    ),
    resize((1, 1, 3, 3100), sizes=[1, 1, 3, 3080], mode="linear"),
    resize((1, 2, 67, 50), sizes=[1, 2, 5, 4], mode="linear", antialias=1),
    resize((1, 2, 3, 5), scales=[1, 1, 1, 3], mode="linear"),
    resize((1, 2, 3, 5), scales=[1, 1, 3, 1], mode="linear"),
    resize((3, 2, 3, 5), scales=[1, 2, 3, 1], mode="nearest"),
    resize((2, 0, 3, 5), scales=[1, 1, 3, 2], mode="nearest"),
    resize((2, 0, 3, 5), scales=[1, 1, 3, 2], mode="linear"),
    resize(scales=[1, 1, 2, 2], mode="nearest", dtype=np.uint8),
    resize(scales=[1, 1, 2, 2], mode="nearest", dtype=np.int32),
    resize(scales=[1, 1, 2, 2], mode="nearest", dtype=np.int64),
    resize(scales=[1, 1, 2, 2], mode="linear", dtype=np.float64),
    resize(scales=[1, 1, 0.5, 2], mode="cubic", dtype=np.float64),
]
OLDER = [
    Case(
        f"{mode} by attribute",
        "Upsample",
        [draw(*PICTURE)],
        {"mode": mode, "scales": [1.0, 1.0, 2.0, 3.0]},
        opset=7,
        reference=reference,
    )
    for mode, reference in (("nearest", lambda x: x.repeat(2, 2).repeat(3, 3)), ("linear", "onnxruntime"))
]
OLDER += [
    Case(
        f"{mode} opset {opset}",
        op,
        [draw(*PICTURE), np.array(scales, np.float32)],
        {"mode": mode},
        constants=[1],
        opset=opset,
        reference="onnxruntime",
    )
    for op, opset in (("Upsample", 9), ("Resize", 10))
    for mode in ("nearest", "linear")
    for scales in ([1, 1, 2, 3], [1, 1, 1, 2])
]
OLDER += [
    Case(
        f"{mode} {coordinates} opset 11",
        "Resize",
        [draw(*PICTURE), np.zeros(0, np.float32), np.array([1, 1, 1.5, 0.7], np.float32)],
        {"mode": mode, "coordinate_transformation_mode": coordinates},
        opset=11,
        # onnxruntime rounds the length of the resized axis before it aligns corners; ONNX's own cases do not
        reference="onnx" if coordinates == "align_corners" else "onnxruntime",
        rtol=1e-4,
    )
    for mode in ("nearest", "linear")
    for coordinates in ("half_pixel", "asymmetric", "align_corners")
]
OLDER += [
    Case(
        "sizes opset 11",
        "Resize",
        [draw(*PICTURE), np.zeros(0, np.float32), np.zeros(0, np.float32), ints(1, 2, 9, 3)],
        {"mode": "linear"},
        opset=11,
        reference="onnxruntime",
        rtol=1e-4,
    )
]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("edge", [np.nan, np.inf, -np.inf, 1e30])
def test_a_region_that_begins_nowhere_reads_nothing(mode: str, edge: float, backend: str, backend_context: Any) -> None:
    x, roi = np.ones((1, 1, 8, 8), np.float32), np.array([0, 0, edge, 0, 1, 1, edge, 1], np.float32)
    given = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize"}
    case = Case("", "Resize", [x, roi, np.array([1, 1, 1.5, 1], np.float32)], given)
    made = pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context)["y0"]
    np.testing.assert_array_equal(made, np.zeros((1, 1, 12, 8), np.float32))


@pytest.mark.parametrize("case", CASES + OLDER, ids=str)
def test_resize(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_scales_are_above_0(scale: float, backend: str, backend_context: Any) -> None:
    given = [np.ones((1, 1, 4, 4), np.float32), None, np.array([1, 1, scale, 2], np.float32)]
    case = Case("", "Resize", given)
    with pytest.raises(pf.InferenceError, match=r"'node' .*a number above 0 is expected"):
        pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context)
