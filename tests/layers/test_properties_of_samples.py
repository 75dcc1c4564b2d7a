"""Operators over random shapes and attributes: those that sample between elements, and attention.

One strategy a family draws cases; NumPy says what is right, or ONNX's evaluator where it can.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layers.test_properties import BOUNDED, FLAG, WHEN, Random, draws, shapes
from layers.test_properties_of_windows import BATCH, CLOSE, SOME, several, window
from perframe.testing import Case, check, ints
from perframe.testing.cases import Array


@st.composite
def resize(random: Random) -> Case:
    shape = random(shapes(1, 4, smallest=1))
    mode = random(st.sampled_from(["nearest", "linear", "cubic"]))
    ways = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
    attributes = {"mode": mode, "coordinate_transformation_mode": random(st.sampled_from(ways))}
    if mode == "nearest":
        rounding = st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
        attributes["nearest_mode"] = random(rounding)
    elif random(st.booleans()):
        attributes["antialias"] = 1
    x = draws(random)(*shape, low=-9, high=9)
    changed = random(st.sets(st.integers(0, len(shape) - 1), max_size=2))
    factors = [random(st.sampled_from([0.5, 2, 1.5, 3])) if i in changed else 1 for i in range(len(shape))]
    assume(all(factor * dim >= 1 for factor, dim in zip(factors, shape, strict=True)))
    sides = list(zip(factors, shape, strict=True))
    if "pytorch" in str(attributes):  # ONNX's evaluator takes a single point from elsewhere than 0
        assume(all(factor == 1 or int(factor * dim) > 1 for factor, dim in sides))
    if "symmetric" in str(attributes):  # and rounds numbers that are nearly whole the wrong way
        assume(all(float(factor * dim).is_integer() for factor, dim in sides))
    if random(st.booleans()):
        given = [None, np.array(factors, np.float32)]
    else:
        given = [None, None, ints(*(int(factor * dim) for factor, dim in zip(factors, shape, strict=True)))]
    return Case("", "Resize", [x, *given], attributes, constants=random(WHEN), rtol=1e-4, atol=1e-4)


@st.composite
def grid_sample(random: Random) -> Case:
    rank, draw = random(st.sampled_from([2, 2, 3])), draws(random)
    mode = random(st.sampled_from(["linear", "nearest", *(["cubic"] if rank == 2 else [])]))
    padding = random(st.sampled_from(["zeros", "border", "reflection"]))
    # ONNX's evaluator cannot reflect in a dim of one
    least = 2 if padding == "reflection" else 1
    batch, size, points = random(SOME), several(random, rank, least, 5), several(random, rank, 1, 4)
    given = [draw(batch, random(SOME), *size, low=-9, high=9), draw(batch, *points, rank, low=-1.6, high=1.6)]
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": random(FLAG)}
    return Case("", "GridSample", given, attributes, rtol=1e-3, atol=1e-3)


@st.composite
def deform_conv(random: Random) -> Case:
    size, kernel, attributes = window(random, 2)
    size = [max(dim, 2) for dim in size]  # ONNX's evaluator cannot sample in a dim of one
    attributes.pop("auto_pad", None)
    pads = attributes.setdefault("pads", [0] * 4)
    group, shared, made, batch, draw = random(SOME), random(SOME), random(SOME), random(BATCH), draws(random)
    output = [
        (size[i] + pads[i] + pads[i + 2] - attributes["dilations"][i] * (kernel[i] - 1) - 1) // attributes["strides"][i]
        + 1
        for i in range(2)
    ]
    taps = kernel[0] * kernel[1]
    given = [draw(batch, group * shared, *size), draw(group * made, shared, *kernel)]
    given += [draw(batch, shared * taps * 2, *output, low=-1.5, high=1.5)]
    given += [draw(group * made)] if random(st.booleans()) else [None]
    given += [draw(batch, shared * taps, *output, low=0)] if random(st.booleans()) else [None]
    attributes |= {"group": group, "offset_group": shared, "kernel_shape": kernel}
    nothing = np.zeros((0, group * made, *output), np.float32)
    reference: Any = "onnx" if batch else lambda *_: nothing
    return Case("", "DeformConv", given, attributes, opset=22, reference=reference, **CLOSE)


@st.composite
def col2im(random: Random) -> Case:
    rank = random(SOME)
    size, block, attributes = window(random, rank)
    attributes.pop("auto_pad", None)
    pads = attributes.setdefault("pads", [0] * 2 * rank)
    steps, spread = attributes["strides"], attributes["dilations"]
    counts = [
        (n + pads[i] + pads[i + rank] - spread[i] * (block[i] - 1) - 1) // steps[i] + 1 for i, n in enumerate(size)
    ]
    batch, c = random(BATCH), random(SOME)

    def reference(x: Array, *_: Array) -> Array:
        whole = np.zeros((batch, c, *(n + pads[i] + pads[i + rank] for i, n in enumerate(size))), np.float32)
        columns = x.reshape(batch, c, *block, *counts)
        for tap in np.ndindex(*block):
            at = [
                slice(t * d, t * d + s * (k - 1) + 1, s) for t, d, s, k in zip(tap, spread, steps, counts, strict=True)
            ]
            whole[(..., *at)] += columns[(slice(None), slice(None), *tap)]
        return whole[(..., *(slice(pads[i], pads[i] + n) for i, n in enumerate(size)))]

    x = draws(random)(batch, c * int(np.prod(block)), int(np.prod(counts)))
    return Case("", "Col2Im", [x, ints(*size), ints(*block)], attributes, reference=reference, **CLOSE)


@st.composite
def roi_align(random: Random) -> Case:
    draw, batch, (h, w) = draws(random), random(SOME), several(random, 2, 2, 7)
    count = random(BATCH)
    corner, extent = draw(count, 2, low=-2, high=5), draw(count, 2, low=1, high=5)
    pictures = draw(count, low=0, high=batch - 1, dtype=np.int64)
    given = [draw(batch, random(SOME), h, w), np.concatenate([corner, corner + extent], 1), pictures]
    attributes = {
        "mode": random(st.sampled_from(["avg", "max"])),
        "coordinate_transformation_mode": random(st.sampled_from(["half_pixel", "output_half_pixel"])),
        "output_height": random(SOME),
        "output_width": random(SOME),
        "sampling_ratio": random(st.integers(0, 2)),
        "spatial_scale": random(st.sampled_from([1.0, 0.5])),
    }
    return Case("", "RoiAlign", given, attributes, constants=[], rtol=1e-4, atol=1e-4)


@st.composite
def attention(random: Random) -> Case:
    draw, (batch, heads, shared, queries, keys, size, out) = draws(random), several(random, 7, 1, 5)
    given: list[Array | None] = [draw(batch, heads * shared, queries, size)]
    given += [draw(batch, heads, keys, size), draw(batch, heads, keys, out)]
    given += [draw(queries, keys)] if random(st.booleans()) else []
    cap = random(st.sampled_from([0.0, 0.7]))
    return Case("", "Attention", given, {"softcap": cap}, **CLOSE)


FAMILIES = (resize, grid_sample, deform_conv, col2im, roi_align, attention)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_drawn(family: Any, backend: str, backend_context: Any) -> None:
    @given(family())
    @BOUNDED
    def agrees(case: Case) -> None:
        check(case, backend, backend_context)

    agrees()
