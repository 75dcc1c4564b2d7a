"""Normalisations by mean and variance: rows, channels, groups; long rows, odd scales, all outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check

draw = Draw(53)


def case(op: str, shape: tuple[int, ...], *factors: tuple[int, ...], name: str = "", **options: Any) -> Case:
    attributes = {key: options.pop(key) for key in ("axis", "epsilon", "num_groups", "stash_type") if key in options}
    dtype = options.pop("dtype", np.float32)
    inputs = [draw(*one, low=-3, high=5, dtype=dtype) for one in (shape, *factors)]
    options = {"rtol": 1e-4, "atol": 1e-5} | options
    return Case(f"{shape} {attributes} {factors} {name}", op, inputs, attributes, **options)


def _rows(x: Any, scale: Any, bias: Any) -> list[Any]:
    """Means and factors are float32, unless x is wider."""
    wide = np.result_type(x.dtype, np.float32)
    rows = x.astype(wide)
    mean, factor = rows.mean(1, keepdims=True), 1 / np.sqrt(rows.var(1, keepdims=True) + wide.type(1e-5))
    return [((rows - mean) * factor * scale + bias).astype(x.dtype), mean, factor]


CASES = [
    case("LayerNormalization", shape, shape[axis:], shape[axis:], axis=axis, outputs=outputs)
    for shape, axis in (((3, 7), -1), ((3, 7), 0), ((2, 3, 5), -2), ((2, 3, 5), 2), ((1, 2, 1500), -1), ((2, 1), 1))
    for outputs in (1, 3)
]
CASES += [
    case("LayerNormalization", (3, 7), (7,), name="no bias"),
    case("LayerNormalization", (3, 7), (7,), (7,), epsilon=0.5),
    case("LayerNormalization", (2, 3, 5), (5,), (3, 5), axis=-2, name="smaller scale"),
    case("LayerNormalization", (2, 3, 5), (3, 1), (1, 5), axis=-2, name="odd scale"),
    case("LayerNormalization", (2, 3, 4, 5), (3, 1, 5), (3, 4, 5), axis=-3, name="split scale", gl=False),
    case("LayerNormalization", (3, 7), (7,), (7,), dtype=np.float64, outputs=3, stash_type=11, reference=_rows),
    case("LayerNormalization", (3, 7), (7,), (7,), dtype=np.float16, outputs=3, reference=_rows, rtol=1e-2, atol=1e-2),
    *(
        case("RMSNormalization", shape, shape[axis:], axis=axis)
        for shape, axis in (((3, 7), -1), ((2, 3, 5), -2), ((1, 1500), -1))
    ),
    *(
        case("InstanceNormalization", (2, 3, *rest), (3,), (3,))
        for rest in ((7,), (5, 7), (2, 3, 4), (40, 41), (4099,))
    ),
    case("InstanceNormalization", (2, 3, 5), (3,), (3,), epsilon=0.1),
    case("InstanceNormalization", (2, 3, 5), (3,), (3,), opset=6, name="opset 6"),
    *(
        case("GroupNormalization", (2, 6, *rest), (6,), (6,), num_groups=groups)
        for rest in ((5,), (3, 4))
        for groups in (1, 2, 6)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_standardize(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


def test_groups_of_opset_18_have_one_scale_each(backend: str, backend_context: Any) -> None:
    def reference(x: Any, scale: Any, bias: Any) -> Any:
        rows = x.reshape(2, 3, 10)
        centered = rows - rows.mean(2, keepdims=True)
        y = centered / np.sqrt(rows.var(2, keepdims=True) + 1e-5)
        return (y * scale[:, None] + bias[:, None]).reshape(x.shape)

    check(
        case("GroupNormalization", (2, 6, 5), (3,), (3,), num_groups=3, opset=18, reference=reference),
        backend,
        backend_context,
    )


def test_a_large_mean_takes_no_digits_from_the_variance(backend: str, backend_context: Any) -> None:
    x = draw(2, 3000) + np.float32(1000)
    ones = np.ones(3000, np.float32)
    exact = x.astype(np.float64)
    y = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    one = Case("", "LayerNormalization", [x, ones], reference=lambda *_: y.astype(np.float32), rtol=1e-3, atol=1e-3)
    check(one, backend, backend_context)


@pytest.mark.parametrize("size", [4097, 200_704])
def test_long_rows_keep_the_digits_of_their_variance(size: int) -> None:
    x = draw(1, size) * np.float32(10) + np.float32(1000)
    exact = x.astype(np.float64)
    y = ((exact - exact.mean()) / np.sqrt(exact.var() + 1e-5)).astype(np.float32)
    one = Case("", "LayerNormalization", [x, np.ones(size, np.float32)], reference=lambda *_: y, rtol=0, atol=3e-5)
    check(one, "cpu", None)
