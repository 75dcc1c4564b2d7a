"""Non-maximum suppression: a heap gives the candidates in order, and each is compared with the boxes chosen so far.

Where many boxes may be chosen, they are divided by their low y into cells of equal height. A candidate is compared with
the boxes of a cell only if they can reach it: the cell begins below the high y of the candidate, and its highest y lies
above the low y. Detectors move the boxes of each class apart, and suppress all of them at once: a box then meets
few of the others.
"""

from __future__ import annotations

import math
from typing import Any

from numba import float32, int64

from perframe.backends.cpu.kernels.fields import NMS, PICK
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import float_to_bits, floats, int64s, product
from perframe.backends.cpu.kernels.sizes import BOX_BLOCK, LANES
from perframe.backends.cpu.kernels.vector import (
    at_least,
    at_most,
    largest_of,
    load,
    multiply_add,
    splat,
    subtract,
)

field, of_pick = NMS.at, PICK.at

# a block of chosen boxes: the low y of all, their low x, high y, high x, and areas
LOW_Y, LOW_X, HIGH_Y, HIGH_X, AREA = (index * BOX_BLOCK for index in range(5))
INFINITY = math.inf
WORST = (1 << 31) - 1  # the index of a box is subtracted from it: of equal scores the lower index wins


@inline
def _key(score, index):
    """A number that is larger for a box that comes earlier."""
    bits = float_to_bits(score) if score != 0 else 0  # -0 equals 0
    ordered = int64(bits if bits >= 0 else bits ^ 0x7FFFFFFF)
    return (ordered << 32) | (WORST - index)


@inline
def _sink(keys, count, hole, key):
    """Put a key into the heap, whose largest key is first: at `hole` or below."""
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        if child + 1 < count and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[hole] = keys[child]
        hole = child
    keys[hole] = key


@inline
def _candidates(scores, first, boxes, bounded, least, keys):
    """Make a heap of the scores that are numbers and above the least. Return their number."""
    count = 0
    for box in range(boxes):
        score = scores[first + box]
        if score == score and (not bounded or score > least):
            keys[count] = _key(score, box)
            count += 1
    for hole in range(count // 2 - 1, -1, -1):
        _sink(keys, count, hole, keys[hole])
    return count


@inline
def _edges(boxes, at, centered):
    """(low y, low x, high y, high x)"""
    a, b, c, d = boxes[at], boxes[at + 1], boxes[at + 2], boxes[at + 3]
    if centered:
        half_c, half_d = c / float32(2), d / float32(2)
        return a - half_c, b - half_d, a + half_c, b + half_d
    return min(a, c), min(b, d), max(a, c), max(b, d)


@inline
def _cells_over(boxes, first, count, centered, cells):
    """The lowest low y of the boxes, and the cells in a unit of height; 0 where all belong to one cell."""
    lowest, highest = float32(INFINITY), float32(-INFINITY)
    for box in range(first, first + count):
        low_y, _, _, _ = _edges(boxes, box * 4, centered)
        if low_y < lowest:  # not NaN
            lowest = low_y
        if low_y > highest:
            highest = low_y
    height = highest - lowest
    if not (0 < height < INFINITY):  # NaN too
        return float32(0), float32(0)
    return lowest, float32(cells) / height


@inline
def _cell_of(y, lowest, scale, cells):
    """The cell of a y. That of a larger one is never smaller."""
    at = (y - lowest) * scale
    if at >= cells:
        return cells - 1
    return int64(at) if at > 0 else 0


@inline
def _meets(kept, block, low_y, low_x, high_y, high_x):
    """Whether a box has a common area with any box of a block."""
    most = splat(float32(0))
    zero = most
    y0, x0, y1, x1 = splat(low_y), splat(low_x), splat(high_y), splat(high_x)
    for i in range(block, block + BOX_BLOCK, LANES):
        height = subtract(at_most(load(kept, HIGH_Y + i), y1), at_least(load(kept, LOW_Y + i), y0))
        width = subtract(at_most(load(kept, HIGH_X + i), x1), at_least(load(kept, LOW_X + i), x0))
        common = multiply_add(at_least(height, zero), at_least(width, zero), zero)
        most = at_least(most, common)
    return largest_of(most) > 0


@inline
def _overlaps(kept, block, count, low_y, low_x, high_y, high_x, threshold):
    """Whether a box overlaps any of the first `count` boxes of a block by more than the threshold."""
    area = product(high_y - low_y, high_x - low_x)
    found = False
    for i in range(block, block + count):
        height = min(kept[HIGH_Y + i], high_y) - max(kept[LOW_Y + i], low_y)
        width = min(kept[HIGH_X + i], high_x) - max(kept[LOW_X + i], low_x)
        common = product(max(height, float32(0)), max(width, float32(0)))
        union = area + kept[AREA + i] - common
        real = (common > 0) & (union > 0) & (area > 0) & (kept[AREA + i] > 0)
        found = found | (real & (common / union > threshold))
    return found


def build() -> Any:
    """Items are (batch, class)."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        boxes, scores, out = floats(n[field.boxes]), floats(n[field.scores]), int64s(n[field.out])
        classes, count, picks = n[field.classes], n[field.box_count], n[field.picks]
        centered, bounded = n[field.is_centered] != 0, n[field.has_least] != 0
        threshold, least = floats(n[field.overlap])[0], floats(n[field.least])[0]
        cells, block_size = n[field.cells], AREA + BOX_BLOCK
        blocks = (picks + BOX_BLOCK - 1) // BOX_BLOCK + cells
        lowest, scale = float32(0), float32(0)
        for item in range(begin, end):
            batch, label = item // classes, item % classes
            keys, address = int64s(n[field.keys] + item * count * 8), n[field.kept] + item * blocks * block_size * 4
            kept, highest = floats(address), floats(n[field.highest] + item * cells * 4)
            # the newest block of each cell and the boxes in it; then for each block the one before it in its cell
            links, used = int64s(n[field.links] + item * (2 * cells + blocks) * 8), 0
            for cell in range(cells):
                links[cell], links[cells + cell], highest[cell] = -1, BOX_BLOCK, -INFINITY
            if cells > 1:
                lowest, scale = _cells_over(boxes, batch * count, count, centered, cells)
            left = _candidates(scores, item * count, count, bounded, least, keys)
            chosen = 0
            while left and chosen < picks:
                box = WORST - (keys[0] & 0xFFFFFFFF)
                left -= 1
                _sink(keys, left, 0, keys[left])
                low_y, low_x, high_y, high_x = _edges(boxes, (batch * count + box) * 4, centered)
                suppressed = False
                for cell in range(_cell_of(high_y, lowest, scale, cells) + 1):
                    block, known = links[cell], links[cells + cell]
                    while highest[cell] > low_y and block >= 0 and not suppressed:
                        at = block * block_size
                        if _meets(address, at, low_y, low_x, high_y, high_x):
                            suppressed = _overlaps(kept, at, known, low_y, low_x, high_y, high_x, threshold)
                        block, known = links[2 * cells + block], BOX_BLOCK
                    if suppressed:
                        break
                if suppressed:
                    continue
                cell = _cell_of(low_y, lowest, scale, cells)
                if links[cells + cell] == BOX_BLOCK:
                    links[2 * cells + used], links[cell], links[cells + cell] = links[cell], used, 0
                    used += 1
                at = links[cell] * block_size + links[cells + cell]
                links[cells + cell] += 1
                if high_y > highest[cell]:  # not NaN
                    highest[cell] = high_y
                kept[LOW_Y + at], kept[LOW_X + at], kept[HIGH_Y + at], kept[HIGH_X + at] = low_y, low_x, high_y, high_x
                kept[AREA + at] = product(high_y - low_y, high_x - low_x)
                row = (item * picks + chosen) * 3
                out[row], out[row + 1], out[row + 2] = batch, label, box
                chosen += 1
            for i in range((item * picks + chosen) * 3, (item + 1) * picks * 3):
                out[i] = -1

    return kernel


@inline
def _overlap(boxes, one, other, threshold):
    """Whether two boxes overlap by more than the threshold."""
    low_y, low_x, high_y, high_x = _edges(boxes, one * 4, False)
    top, left, bottom, right = _edges(boxes, other * 4, False)
    height = max(min(high_y, bottom) - max(low_y, top), float32(0))
    width = max(min(high_x, right) - max(low_x, left), float32(0))
    common, area = product(height, width), product(high_y - low_y, high_x - low_x)
    area_of_other = product(bottom - top, right - left)
    union = area + area_of_other - common
    real = (common > 0) & (union > 0) & (area > 0) & (area_of_other > 0)
    return real & (common / union > threshold)


def pick() -> Any:
    """Items are batches."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        boxes, scores, classes = floats(n[of_pick.boxes]), floats(n[of_pick.scores]), int64s(n[of_pick.classes])
        picked, owners = int64s(n[of_pick.out]), int64s(n[of_pick.owners])
        count, picks, labelled = n[of_pick.box_count], n[of_pick.picks], n[of_pick.has_classes] != 0
        limits = floats(n[of_pick.limits])
        most, least = limits[0], limits[1]
        for item in range(begin, end):
            first, out, chosen = item * count, item * picks, 0
            for box in range(first, first + count):
                owner = -1
                if scores[box] > least:
                    for number in range(chosen):
                        better = first + picked[out + number]
                        same = not labelled or classes[better] == classes[box]
                        if same and _overlap(boxes, better, box, most):
                            owner = number
                            break
                    if owner < 0 and chosen < picks:
                        picked[out + chosen] = box - first
                        owner = chosen
                        chosen += 1
                owners[box] = owner
            for number in range(out + chosen, out + picks):
                picked[number] = -1

    return kernel
