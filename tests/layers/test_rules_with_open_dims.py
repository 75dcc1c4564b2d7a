"""Shape rules over open dims: the formula of each dim gives what the rule says for any sizes, from 0 on."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perframe as pf
from perframe.ir.declaration import declaration
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.layers import gather
from perframe.testing import Case, check

NAMES = ("n", "c", "h", "w")
PICTURE = ("n", "c", "h", "w")


@dataclass(frozen=True)
class Kind:
    """A layer, its inputs (shapes, or values), and the text of the shape of its first output."""

    op: str
    inputs: tuple[Any, ...]
    text: str
    attributes: dict[str, Any] = field(default_factory=dict)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def square(kernel: int, stride: int = 1, pad: int = 0, **more: Any) -> dict[str, Any]:
    return {"kernel_shape": (kernel, kernel), "strides": (stride, stride), "pads": (pad,) * 4, **more}


FAR = 2**63 - 1
KINDS = [
    Kind("Conv", (PICTURE, (8, "c", 3, 3)), "(n, 8, h, w)", square(3, 1, 1)),
    Kind("Conv", (PICTURE, (8, "c", 3, 3)), "(n, 8, (h + 1)/2, (w + 1)/2)", square(3, 2, 1)),
    Kind("Conv", (PICTURE, (8, "c", 3, 3)), "(n, 8, max(h - 2, 0), max(w - 2, 0))", square(3)),
    Kind(
        "Conv",
        (PICTURE, (8, "c", 3, 3)),
        "(n, 8, (h + 1)/2, (w + 1)/2)",
        {"kernel_shape": (3, 3), "strides": (2, 2), "auto_pad": "SAME_UPPER"},
    ),
    Kind(
        "ConvTranspose",
        (PICTURE, ("c", 8, 2, 2)),
        "(n, 8, 2*h, 2*w)",
        {"kernel_shape": (2, 2), "strides": (2, 2)},
    ),
    Kind("ConvTranspose", (PICTURE, ("c", 8, 4, 4)), "(n, 8, 2*h, 2*w)", square(4, 2, 1)),
    Kind("MaxPool", (PICTURE,), "(n, c, h/2, w/2)", square(2, 2)),
    Kind("MaxPool", (PICTURE,), "(n, c, (h + 1)/2, (w + 1)/2)", square(2, 2, ceil_mode=1)),
    Kind("AveragePool", (PICTURE,), "(n, c, h/4, w/4)", square(4, 4)),
    Kind("LpPool", (PICTURE,), "(n, c, (h + 1)/2, (w + 1)/2)", square(3, 2, 1)),
    Kind("MaxUnpool", (PICTURE, PICTURE), "(n, c, 2*h, 2*w)", square(2, 2)),
    Kind("GlobalAveragePool", (PICTURE,), "(n, c, 1, 1)"),
    Kind("DepthToSpace", (("n", 8, "h", "w"),), "(n, 2, 2*h, 2*w)", {"blocksize": 2}),
    Kind("SpaceToDepth", (("n", 3, "h", "w"),), "(n, 12, h/2, w/2)", {"blocksize": 2}),
    Kind("Flatten", (PICTURE,), "(n, c*h*w)", {"axis": 1}),
    Kind("Reshape", (PICTURE, ints(0, 0, -1)), "(n, c, h*w)"),
    Kind("Reshape", (("n", 6, "h"), ints(0, 2, -1)), "(n, 2, 3*h)"),
    Kind("Tile", (("n", "h"), ints(2, 3)), "(2*n, 3*h)"),
    Kind("Pad", (("n", "h"), ints(0, 1, 0, 2)), "(n, h + 3)"),
    Kind("Concat", (("n", "h"), ("n", "w"), ("n", 2)), "(n, h + w + 2)", {"axis": 1}),
    Kind("Slice", (("n", "h"), ints(1), ints(FAR), ints(1)), "(n, max(h - 1, 0))"),
    Kind("Slice", (("n", "h"), ints(0), ints(-1), ints(1)), "(n, max(h - 1, 0))"),
    Kind("Slice", (("n", "h"), ints(0), ints(5), ints(1)), "(n, min(h, 5))"),
    Kind("Slice", (("n", "h"), ints(0), ints(FAR), ints(1), ints(2)), "(n, (h + 1)/2)"),
    Kind("Slice", (("n", "h"), ints(-1), ints(-FAR), ints(1), ints(-1)), "(n, h)"),
    Kind("Slice", (("n", "h"), ints(-2), ints(FAR), ints(1)), "(n, min(h, 2))"),
    Kind("Split", (("n", "h"),), "(n, (h + 1)/2)", {"axis": 1, "num_outputs": 2}),
    Kind("Resize", (PICTURE, None, np.float32([1, 1, 2, 0.5])), "(n, c, 2*h, w/2)"),
    Kind("Expand", (("n", 1), ints(1, 5)), "(n, 5)"),
    Kind("Transpose", (("n", "h", "w"),), "(w, h, n)"),
    Kind("MatMul", (("n", "h", "c"), ("c", "w")), "(n, h, w)"),
    Kind("STFT", (("n", "h"), ints(4), None, ints(8)), "(n, max(h/4 - 1, 0), 5, 2)"),
    Kind("ReduceSum", (PICTURE, ints(1)), "(n, h, w)", {"keepdims": 0}),
]


def outputs(kind: Kind, sizes: dict[str, int]) -> tuple[PartialTensor, ...]:
    """The outputs, with these sizes for names."""

    def partial(value: Any) -> PartialTensor | None:
        if isinstance(value, tuple):
            return PartialTensor(pf.DataType.FLOAT32, DynamicTensorShape(value).with_dims(sizes))
        return None if value is None else PartialTensor.of(value)

    return declaration(kind.op).outputs_for([partial(value) for value in kind.inputs], kind.attributes)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.op} {kind.text}")
@given(sizes=st.fixed_dictionaries({name: st.integers(0, 12) for name in NAMES}))
@settings(deadline=None, max_examples=60)
def test_formulas_of_dims(kind: Kind, sizes: dict[str, int]) -> None:
    open_outputs = outputs(kind, {})
    assert str(open_outputs[0].shape) == kind.text
    try:
        concrete = outputs(kind, sizes)
    except pf.InferenceError:  # the window does not fit
        return
    for made, known in zip(open_outputs, concrete, strict=True):
        assert made.shape is not None and made.shape.with_dims(sizes) == known.shape


def test_the_runner_finds_sizes_that_are_used_as_ints(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("", "GatherND", [np.zeros((2, 3), np.float32), np.zeros((4, 2), np.int64)])
    check(case, "cpu")
    monkeypatch.setattr(gather, "specialized", operator.index)
    with pytest.raises(AssertionError, match=r"gather\.py:\d+"):
        check(case, "cpu")
