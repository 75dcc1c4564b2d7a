"""Pooling of regions on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.protocol import LayerLike
from perframe.layers.roi_pool import Cells

Array = NDArray[Any]


def compute(layer: LayerLike, form: Cells, inputs: Sequence[Any], outputs: Any) -> list[Any]:
    """Pool region by region, as in Girshick's Fast R-CNN (2015). A region is (batch, x1, y1, x2, y2), ends included."""
    x, rois = inputs
    rows, columns = form.output
    result = np.zeros((len(rois), x.shape[1], rows, columns), x.dtype)
    for index, roi in enumerate(rois):
        picture = x[int(roi[0])]
        left, top, right, bottom = (_nearest(float(v) * form.scale) for v in roi[1:5])
        for row, (y0, y1) in enumerate(_cells(top, bottom, rows, x.shape[2])):
            for column, (x0, x1) in enumerate(_cells(left, right, columns, x.shape[3])):
                if y0 < y1 and x0 < x1:
                    result[index, :, row, column] = picture[:, y0:y1, x0:x1].max((1, 2))
    return [result]


def _nearest(value: float) -> int:
    """Round to the nearest integer, and halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _cells(first: int, last: int, count: int, size: int) -> list[tuple[int, int]]:
    """(first, end) of a region's cells along one axis, cut to the picture."""
    extent = max(last - first + 1, 1)
    ends = [(first + k * extent // count, first - (-(k + 1) * extent // count)) for k in range(count)]
    return [(min(max(a, 0), size), min(max(b, 0), size)) for a, b in ends]
