"""Functions of boxes: (left, top, right, bottom), as in torchvision.ops."""

from __future__ import annotations

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import apply, cast, exact, function, in_floats, ints
from perframe.functional.moving import unsqueeze
from perframe.functional.pieces import select
from perframe.functional.sizes import size_of
from perframe.functional.tensor import FunctionalTensor, Given, of_array, to_tensor
from perframe.functional.windows import Extent, each
from perframe.tensor import DataType


@function
def nms(boxes: Given, scores: Given, iou_threshold: float, score_threshold: float | None = None) -> FunctionalTensor:
    """Return the indices of boxes that no better box overlaps by more than the threshold, the best first, as int64.

    `boxes` is (n, 4) and `scores` (n,). With `score_threshold`, which torchvision does not have, only boxes with higher
    scores count. The number of indices is known when the model runs.
    """
    corners, values = in_floats(boxes), in_floats(scores)
    if corners.ndim != 2 or values.ndim != 1:
        raise InputError(f"boxes are (n, 4) and scores (n,), not {corners.spec} and {values.spec}")
    limit = None if score_threshold is None else of_array(exact(score_threshold, DataType.FLOAT32))
    table = apply(
        "SuppressNonMaxima",
        unsqueeze(corners, 0),
        unsqueeze(unsqueeze(values, 0), 0),
        size_of(values, 0),
        of_array(exact(iou_threshold, DataType.FLOAT32)),
        limit,
    )
    return select(apply("FilledRows", table), 1, 2)


@function
def box_area(boxes: Given) -> FunctionalTensor:
    """Return the areas of boxes (n, 4)."""
    x = to_tensor(boxes)
    return apply("Mul", *(apply("Sub", select(x, -1, at + 2), select(x, -1, at)) for at in range(2)))


@function
def box_iou(boxes1: Given, boxes2: Given) -> FunctionalTensor:
    """Return the common area of each two boxes / the area of both: (n, m)."""
    a, b = in_floats(boxes1), in_floats(boxes2)
    zero = of_array(np.zeros((), a.dtype.numpy))
    sides = []
    for at in range(2):
        low = apply("Max", unsqueeze(select(a, 1, at), 1), select(b, 1, at))
        high = apply("Min", unsqueeze(select(a, 1, at + 2), 1), select(b, 1, at + 2))
        sides.append(apply("Max", apply("Sub", high, low), zero))
    common = apply("Mul", *sides)
    both = apply("Add", unsqueeze(box_area(a), 1), box_area(b))
    return apply("Div", common, apply("Sub", both, common))


@function
def roi_align(
    input: Given,
    boxes: Given,
    output_size: Extent,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> FunctionalTensor:
    """Resample regions of pictures to one size. `boxes` is (n, 5): the picture's index in the batch, and the box."""
    x, rows = in_floats(input), in_floats(boxes)
    if rows.ndim != 2 or not rows.shape.may_be((rows.shape[0], 5)):
        raise InputError(f"boxes are (n, 5), not {rows.spec}")
    height, width = each(output_size, 2, "output_size")
    return apply(
        "RoiAlign",
        x,
        apply("Slice", rows, ints(1), ints(5), ints(1)),
        cast(select(rows, 1, 0), DataType.INT64),
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        mode="avg",
        output_height=height,
        output_width=width,
        sampling_ratio=max(0, int(sampling_ratio)),
        spatial_scale=float(spatial_scale),
    )
