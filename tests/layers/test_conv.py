"""Convolution and its transpose: groups, depthwise, every window, one to three spatial dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check

draw = Draw(19)


def conv(
    x: Sequence[int],
    w: Sequence[int],
    bias: bool = True,
    op: str = "Conv",
    dtype: Any = np.float32,
    constants: Sequence[int] = (1, 2),
    **attributes: Any,
) -> Case:
    said = " ".join(f"{key}={value}" for key, value in attributes.items())
    group = attributes.get("group", 1)
    outputs = w[0] if op == "Conv" else w[1] * group
    inputs = [draw(*x, dtype=dtype), draw(*w, dtype=dtype), *([draw(outputs, dtype=dtype)] if bias else [])]
    tolerance = 1e-2 if dtype == np.float16 else 1e-4
    name = f"{tuple(x)} by {tuple(w)}{'' if bias else ' without bias'} {said}"
    kept = [index for index in constants if index < len(inputs)]
    dilated = "dilations" in attributes and "SAME" in attributes.get("auto_pad", "")
    reference = "onnx" if dilated or dtype != np.float32 else "onnxruntime"  # the reference that supports it
    options: dict[str, Any] = {"rtol": tolerance, "atol": tolerance / 10}
    return Case(name, op, inputs, attributes, constants=kept, opset=22, reference=reference, **options)


def transposed(x: Sequence[int], w: Sequence[int], bias: bool = True, **options: Any) -> Case:
    return conv(x, w, bias, "ConvTranspose", **options)


CONVOLUTIONS = [
    conv((1, 3, 11, 13), (5, 3, 3, 3)),
    conv((2, 3, 11, 13), (5, 3, 3, 3), bias=False),
    conv((1, 7, 5, 3), (11, 7, 1, 1)),
    conv((1, 16, 8, 8), (32, 16, 1, 1), strides=[2, 2]),
    conv((2, 4, 11, 13), (8, 4, 3, 3), pads=[1, 1, 1, 1]),
    conv((2, 4, 11, 13), (8, 4, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]),
    conv((1, 3, 11, 13), (5, 3, 2, 5), strides=[3, 2], pads=[0, 2, 1, 3]),
    conv((1, 3, 11, 13), (5, 3, 2, 2), strides=[4, 5]),
    conv((1, 3, 11, 13), (5, 3, 3, 2), dilations=[2, 3], pads=[2, 1, 2, 3]),
    conv((1, 3, 11, 13), (4, 3, 3, 3), dilations=[5, 6]),
    conv((1, 3, 11, 13), (4, 3, 3, 3), auto_pad="SAME_UPPER"),
    conv((1, 3, 11, 13), (4, 3, 3, 4), auto_pad="SAME_UPPER", strides=[2, 3]),
    conv((1, 3, 11, 13), (4, 3, 2, 4), auto_pad="SAME_LOWER", strides=[2, 3]),
    conv((1, 3, 11, 13), (4, 3, 3, 3), auto_pad="VALID", strides=[2, 2]),
    conv((1, 3, 9, 7), (4, 3, 9, 7)),
    conv((1, 3, 5, 5), (4, 3, 7, 7), pads=[3, 3, 3, 3]),
    conv((1, 3, 5, 5), (4, 3, 3, 3), pads=[4, 5, 6, 7]),
    conv((1, 3, 11, 13), (5, 3, 3, 3), kernel_shape=[3, 3]),
    conv((1, 4, 9, 7), (6, 2, 3, 3), group=2, pads=[1, 1, 1, 1]),
    conv((2, 6, 9, 7), (9, 2, 3, 2), group=3, strides=[2, 1]),
    conv((1, 5, 9, 7), (5, 1, 3, 3), group=5, pads=[1, 1, 1, 1]),
    conv((2, 8, 9, 7), (8, 1, 5, 5), group=8, strides=[2, 2], pads=[2, 2, 2, 2]),
    conv((1, 3, 9, 7), (6, 1, 3, 3), group=3, dilations=[2, 2], auto_pad="SAME_UPPER"),
    conv((1, 4, 9, 7), (8, 1, 3, 3), bias=False, group=4),
    conv((3, 2, 17), (5, 2, 4), strides=[3], pads=[2, 1]),
    conv((1, 4, 17), (4, 1, 3), group=4, dilations=[2], auto_pad="SAME_LOWER"),
    conv((2, 3, 17), (5, 3, 1)),
    conv((1, 2, 5, 6, 7), (3, 2, 2, 3, 3), strides=[1, 2, 2], pads=[1, 0, 1, 0, 1, 1]),
    conv((1, 4, 4, 5, 3), (4, 2, 2, 2, 2), group=2, dilations=[1, 2, 1]),
    conv((2, 6, 5, 3, 4), (3, 2, 3, 2, 1), group=3, bias=False, auto_pad="SAME_UPPER", strides=[2, 1, 1]),
    conv((1, 4, 4, 5, 3), (4, 1, 2, 2, 2), group=4, pads=[1, 0, 1, 0, 1, 1]),
    conv((2, 5, 6, 7, 21), (5, 1, 3, 3, 3), group=5, pads=[1, 1, 1, 1, 1, 1]),
    conv((1, 19, 5, 9, 11), (19, 1, 3, 2, 3), group=19, strides=[2, 1, 2], dilations=[2, 3, 1], pads=[2, 4, 1] * 2),
    conv((1, 2, 3, 4, 5), (2, 1, 2, 2, 2), group=2, pads=[4, 0, 0, 3, 0, 0]),  # planes that no tap reaches
    conv((1, 3, 2, 3, 5), (3, 1, 3, 5, 20), group=3, pads=[1, 2, 240] * 2, dilations=[1, 1, 25]),
    conv((1, 35, 5, 3, 19), (17, 35, 3, 3, 3), pads=[1, 1, 1, 1, 1, 1]),
    conv((2, 3, 7, 9, 20), (5, 3, 3, 2, 3), strides=[2, 1, 2], dilations=[2, 3, 8], pads=[2, 1, 9, 3, 3, 8]),
    conv((1, 2, 2, 3, 4), (3, 2, 2, 2, 2), pads=[4, 0, 0, 3, 0, 0]),  # planes that no tap reaches
    conv((2, 3, 7, 5, 6), (5, 3, 3, 1, 1), strides=[2, 1, 1], pads=[1, 0, 0, 1, 0, 0]),
    conv((2, 3, 4, 5, 6), (5, 3, 1, 3, 3), pads=[0, 1, 1, 0, 1, 1]),
    conv((2, 3, 4, 5, 6), (5, 3, 1, 1, 4), strides=[1, 1, 3]),
    conv((1, 1, 6, 7, 17), (16, 1, 5, 5, 1), pads=[2, 2, 0, 2, 2, 0]),
    conv((2, 3, 6, 9, 5), (7, 3, 3, 4, 1), strides=[2, 1, 1], pads=[2, 1, 0, 0, 4, 0], dilations=[1, 2, 1]),
    conv((1, 4, 6, 4, 7), (6, 2, 2, 3, 1), group=2, strides=[1, 2, 1], pads=[1, 1, 0, 0, 1, 0]),
    conv((2, 3, 4, 5, 6), (5, 3, 1, 1, 1)),
    conv((2, 3, 1, 9, 1), (4, 3, 1, 4, 1)),
    conv((1, 5, 37, 1), (7, 5, 5, 1), strides=[2, 1], pads=[2, 0, 1, 0]),
    conv((2, 5, 1, 1), (7, 5, 1, 1)),
    conv((1, 5, 6, 1), (7, 5, 2, 3), pads=[0, 1, 0, 1]),
    # few planes
    conv((2, 3, 9, 37), (3, 3, 3, 3), pads=[1, 1, 1, 1]),
    conv((1, 3, 9, 37), (3, 1, 5, 3), group=3, pads=[2, 1, 1, 2], dilations=[2, 3]),
    conv((2, 1, 41), (2, 1, 4), pads=[9, 2]),
    conv((1, 3, 11, 13), (5, 3, 3, 3), constants=()),
    conv((1, 6, 7, 7), (6, 1, 3, 3), constants=(2,), group=6, pads=[1, 1, 1, 1]),
    conv((1, 67, 6, 5), (35, 67, 3, 3), pads=[1, 1, 1, 1]),
    conv((1, 3, 7, 9), (5, 3, 3, 3), dtype=np.float64),
    conv((1, 3, 7, 9), (5, 3, 3, 3), dtype=np.float16),
]
TRANSPOSES = [
    transposed((1, 3, 5, 7), (3, 4, 3, 3)),
    transposed((2, 3, 5, 7), (3, 4, 3, 3), bias=False),
    transposed((1, 3, 5, 7), (3, 4, 1, 1)),
    transposed((1, 3, 5, 7), (3, 4, 2, 2), strides=[2, 2]),
    transposed((2, 3, 5, 7), (3, 4, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1]),
    transposed((1, 3, 5, 7), (3, 4, 3, 2), strides=[2, 3], pads=[0, 1, 1, 0]),
    transposed((1, 3, 5, 7), (3, 4, 2, 2), strides=[3, 4]),
    transposed((1, 3, 5, 7), (3, 4, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]),
    transposed((1, 3, 5, 7), (3, 4, 3, 3), strides=[3, 2], output_padding=[2, 1]),
    transposed((1, 3, 5, 7), (3, 4, 3, 3), strides=[2, 2], output_shape=[10, 14]),
    transposed((1, 3, 5, 7), (3, 4, 3, 4), strides=[3, 2], output_shape=[15, 15]),
    transposed((1, 3, 5, 7), (3, 4, 3, 3), strides=[3, 2], output_shape=[15, 14], auto_pad="SAME_UPPER"),
    transposed((1, 3, 5, 7), (3, 4, 3, 3), strides=[3, 2], auto_pad="SAME_UPPER"),
    transposed((1, 3, 5, 7), (3, 4, 4, 3), strides=[2, 2], auto_pad="SAME_LOWER"),
    transposed((1, 3, 5, 7), (3, 4, 3, 3), strides=[2, 2], auto_pad="VALID"),
    transposed((1, 3, 5, 7), (3, 4, 3, 2), dilations=[2, 3]),
    transposed((1, 3, 5, 7), (3, 4, 3, 2), dilations=[2, 2], strides=[3, 2], pads=[1, 2, 2, 1]),
    transposed((2, 4, 5, 3), (4, 3, 3, 3), group=2, strides=[2, 2]),
    transposed((1, 4, 5, 3), (4, 1, 3, 3), group=4, pads=[1, 1, 1, 1]),
    transposed((1, 6, 4, 3), (6, 2, 2, 2), group=3, strides=[2, 1], output_padding=[1, 0]),
    transposed((2, 3, 7), (3, 5, 4), strides=[3], pads=[1, 2]),
    transposed((1, 2, 3, 4, 5), (2, 3, 2, 3, 2), strides=[2, 1, 2], pads=[0, 1, 0, 1, 0, 1]),
    transposed(
        (1, 4, 3, 2, 4), (4, 3, 2, 2, 3), group=2, dilations=[1, 2, 1], output_padding=[0, 0, 1], strides=[1, 1, 2]
    ),
    transposed((1, 3, 5, 7), (3, 4, 3, 3), strides=[2, 2], constants=()),
    transposed((1, 3, 4, 5), (3, 4, 3, 3), dtype=np.float64, strides=[2, 2]),
]


@pytest.mark.parametrize("case", CONVOLUTIONS + TRANSPOSES, ids=str)
def test_conv(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
