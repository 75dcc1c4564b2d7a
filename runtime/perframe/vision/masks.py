"""Masks of a network, in the size of the picture and with soft edges."""

from __future__ import annotations

import perframe.functional as F
from perframe.errors import InputError
from perframe.functional.calls import function
from perframe.functional.sizes import Sizes
from perframe.functional.tensor import FunctionalTensor, Given
from perframe.vision.detections import floats


@function
def upsample_mask(
    mask: Given,
    size: Sizes,
    *,
    edge: tuple[float, float] | None = (0.25, 0.75),
    guide: Given | None = None,
    radius: int = 4,
    epsilon: float = 1e-3,
) -> FunctionalTensor:
    """Resample a mask (batch, channels, rows, columns) of 0 to 1 to a size (height, width), with soft edges.

    Between the two values of `edge` the result rises from 0 to 1 by smoothstep (3 t² - 2 t³); None leaves it linear.
    With a `guide`, a picture (batch, 1 or 3, height, width) of 0 to 1, edges follow those of the picture: a guided
    filter fits the mask in windows of 2 `radius` + 1 of the mask's cells; the smaller `epsilon`, the fainter are the
    edges it follows. Source: He and Sun, "Fast Guided Filter" (2015). Raises InputError.
    """
    x = floats(mask)
    if x.ndim != 4:
        raise InputError(f"a mask is (batch, channels, rows, columns), not {x.shape}")
    if guide is None:
        grown = F.interpolate(x, size, mode="bilinear")
    else:
        gray = F.mean(floats(guide), 1, keepdim=True)
        if radius < 1 or not epsilon > 0:
            raise InputError(f"radius is 1 or more and epsilon positive, not {radius!r} and {epsilon!r}")
        small = F.interpolate(gray, (x.size(2), x.size(3)), mode="bilinear", antialias=True)
        slope, rest = _fitted(x, small, radius, epsilon)
        slope, rest = (F.interpolate(value, size, mode="bilinear") for value in (slope, rest))
        grown = slope * gray + rest
    if edge is None:
        return grown
    low, high = edge
    if not low < high:
        raise InputError(f"edge is two rising values, not {edge!r}")
    t = F.clip((grown - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def _fitted(
    x: FunctionalTensor, guide: FunctionalTensor, radius: int, epsilon: float
) -> tuple[FunctionalTensor, FunctionalTensor]:
    """Return the slope and the offset by which the guide gives the mask around each cell."""

    def around(value: FunctionalTensor) -> FunctionalTensor:
        return F.avg_pool2d(value, 2 * radius + 1, 1, radius, count_include_pad=False)

    of_guide, of_mask = around(guide), around(x)
    slope = (around(guide * x) - of_guide * of_mask) / (around(guide * guide) - of_guide * of_guide + epsilon)
    return around(slope), around(of_mask - slope * of_guide)
