"""Facts that declarations state, so that no code asks for an operator by its name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from perframe.layers.base import Declaration, attributes_of, declaration
from perframe.layers.epilogue import Stage
from perframe.tensor.partial import PartialTensor


def window(x: PartialTensor, *, kernel_shape: tuple[int, ...], strides: int | None = None) -> PartialTensor:
    return x


@attributes_of(window)
def pool(x: PartialTensor, y: PartialTensor | None = None, *, p: int = 2, **shared: Any) -> PartialTensor:
    return window(x, **shared)


def test_attributes_of_another_function_come_first() -> None:
    entry = Declaration("Pool", "pool", pool)
    assert (entry.inputs, entry.required, entry.variadic) == (("x", "y"), 1, False)
    assert list(entry.attributes) == ["kernel_shape", "strides", "p"]
    assert entry.with_defaults({"kernel_shape": (3,)}) == {"kernel_shape": (3,), "strides": None, "p": 2}


RELU = Stage("Relu", (), (None,))


@pytest.mark.parametrize(
    ("stage", "limits"),
    [
        (RELU, (0, math.inf)),
        (Stage("Clip", (), (None,)), (-math.inf, math.inf)),
        (Stage("Clip", (), (None, -1.0)), (-1, math.inf)),
        (Stage("Clip", (), (None, 0.0, 6.0)), (0, 6)),
        (Stage("Clip", (), (2.0, None)), None),  # a number, clipped to the running value
        (Stage("Clip", (), (None, (RELU,))), None),
        (Stage("Add", (), (None, 1.0)), None),
    ],
)
def test_a_clip_says_its_limits(stage: Stage, limits: tuple[float, float] | None) -> None:
    assert stage.limits == limits


def test_a_branch_says_which_body_runs() -> None:
    body_for = declaration("If").body_for
    assert body_for is not None and declaration("Loop").body_for is None
    assert [body_for(np.array(value)) for value in (True, [False])] == ["then_branch", "else_branch"]


def test_some_layers_read_nothing_but_shapes() -> None:
    assert [declaration(op).reads_values for op in ("Shape", "Size", "Neg")] == [False, False, True]
