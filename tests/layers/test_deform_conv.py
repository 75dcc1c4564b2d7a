"""Deformable convolution: offsets, masks, groups of both kinds, and places outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check

draw = Draw(41)


def deform(
    x: Sequence[int],
    w: Sequence[int],
    output: Sequence[int],
    bias: bool = False,
    mask: bool = False,
    reach: float = 1.5,
    dtype: Any = np.float32,
    **attributes: Any,
) -> Case:
    shared, taps = attributes.get("offset_group", 1), int(np.prod(w[2:]))
    offset = draw(x[0], shared * taps * 2, *output, low=-reach, high=reach, dtype=dtype)
    more = [
        draw(w[0], dtype=dtype) if bias else None,
        draw(x[0], shared * taps, *output, low=0, high=1, dtype=dtype) if mask else None,
    ]
    while more and more[-1] is None:
        more.pop()
    said = " ".join(f"{key}={value}" for key, value in attributes.items())
    name = f"{tuple(x)} by {tuple(w)} bias {bias} mask {mask} reach {reach} {np.dtype(dtype)} {said}"
    inputs = [draw(*x, dtype=dtype), draw(*w, dtype=dtype), offset, *more]
    return Case(name, "DeformConv", inputs, attributes, opset=22, rtol=1e-4, atol=1e-5)


CASES = [
    deform((1, 2, 5, 6), (3, 2, 2, 2), (4, 5)),
    deform((2, 2, 5, 6), (3, 2, 3, 3), (5, 6), bias=True, pads=[1, 1, 1, 1]),
    deform((1, 4, 5, 6), (4, 2, 2, 3), (4, 4), mask=True, group=2),
    deform((1, 4, 5, 6), (4, 4, 2, 2), (4, 5), bias=True, mask=True, offset_group=2),
    deform((1, 4, 7, 6), (4, 1, 3, 2), (3, 3), group=4, offset_group=2, strides=[2, 2], pads=[0, 1, 0, 0]),
    deform((1, 2, 7, 7), (3, 2, 2, 2), (5, 4), dilations=[2, 3]),
    deform((1, 2, 5, 6), (3, 2, 2, 2), (4, 5), reach=20.0),
    deform((1, 2, 5, 6), (3, 2, 2, 2), (4, 5), dtype=np.float64),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_deform_conv(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
