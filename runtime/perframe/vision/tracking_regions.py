"""Regions that follow their landmarks on the device, without a readback."""

from __future__ import annotations

import math

from perframe import functional as F
from perframe.errors import InputError
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor

_BOX, _ROTATED = 4, 5  # the numbers of a region: its sides, or its center, size and angle


def follow_regions(
    regions: Given,
    scores: Given,
    found: Given,
    found_scores: Given,
    *,
    threshold: float = 0.5,
    overlap: float = 0.3,
) -> tuple[FunctionalTensor, FunctionalTensor]:
    """Choose the next regions: those that were followed, and in free rows those that a detector found.

    `regions` (n, 4 or 5) are the next regions by the landmarks, and `scores` (n,) those of the landmark network: rows
    above the threshold stay. The others get the detector's rows, `found` (m, 4 or 5), whose `found_scores` (m,) are
    above the threshold, in their order; those that overlap a region that stays by more than `overlap` (intersection
    over union of the regions as upright boxes) are the same thing, and left out. A row that gets nothing is 0.

    A region is left, top, right and bottom, or the center's x and y, width, height and an angle. Returns the regions
    (n, 4 or 5), and (n,) float32: 1 for rows that stay, and 0 for others, which is `valid` of `one_euro`. Raises
    InputError.
    """
    for name, value in (("threshold", threshold), ("overlap", overlap)):
        if not math.isfinite(value):
            raise InputError(f"{name} is a finite number, not {value!r}")
    before, others = to_tensor(regions), to_tensor(found)
    numbers = before.shape[-1] if before.ndim == 2 else None
    if numbers not in (_BOX, _ROTATED) or others.ndim != 2 or others.shape[1] != numbers:
        raise InputError(
            "regions and found are n x 4 (left, top, right, bottom) or both n x 5 (center, width, height, angle), not "
            f"{before.shape} and {others.shape}"
        )
    stays = to_tensor(scores) > threshold
    same = F.box_iou(_boxes(others, numbers), _boxes(before, numbers)) > overlap
    known = F.any(F.logical_and(same, F.unsqueeze(stays, 0)), 1)
    fresh = F.logical_and(to_tensor(found_scores) > threshold, F.logical_not(known))
    free = F.logical_not(stays)
    # the first free row gets the first fresh region, the second one the second, and so on
    turns = F.eq(F.unsqueeze(_turns(free), 1), F.unsqueeze(_turns(fresh), 0))
    pairs = F.logical_and(turns, F.logical_and(F.unsqueeze(free, 1), F.unsqueeze(fresh, 0)))
    chosen = F.index_select(others, 0, F.argmax(F.to(pairs, "float32"), 1))
    gets = F.unsqueeze(F.any(pairs, 1), 1)
    filled = F.where(gets, chosen, F.zeros_like(chosen))
    return F.where(F.unsqueeze(stays, 1), before, filled), F.to(stays, "float32")


def _boxes(regions: FunctionalTensor, numbers: int) -> FunctionalTensor:
    """Regions as upright boxes: (n, 4)."""
    if numbers == _BOX:
        return regions
    center, half = regions[:, :2], regions[:, 2:4] * 0.5
    return F.cat([center - half, center + half], 1)


def _turns(flags: FunctionalTensor) -> FunctionalTensor:
    """The number of flags that are set, up to each one."""
    return F.cumsum(F.to(flags, "float32"), 0)
