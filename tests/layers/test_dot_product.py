"""Attention as one layer, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.ir import Layer, Model, Value
from perframe.ir.arrangement import Arrangement
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType

PLACE: dict[str, Any] = {"backend": "cpu", "ctx": None}  # where `attend` runs
NAMES = ("query", "key", "value", "added", "kept", "dropped")


def attend(given: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """The layer's result, where the test runs."""
    values = [Value(name, DataType.of(x.dtype), DynamicTensorShape(x.shape)) for name, x in given.items()]
    layer = Layer("DotProductAttention", "attention", [name if name in given else "" for name in NAMES], ["y"])
    layer.attributes = attributes
    model = Model(values, [Value("y", DataType.FLOAT32, None)], [layer], {})
    with pf.Worker(model, PLACE["backend"], PLACE["ctx"], strict=True) as worker:
        worker.schedule(given)
        return worker.peek_output("y").download_to_array()


@pytest.fixture(autouse=True)
def place(backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLACE, "backend", backend)
    monkeypatch.setitem(PLACE, "ctx", backend_context)


def wanted(given: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """By the definition."""
    query, key, value, added, kept, dropped = (given.get(name) for name in NAMES)
    scores = np.matmul(query.astype(np.float64) * attributes.get("scale", 1.0), key.astype(np.float64))
    softcap = attributes.get("softcap", 0.0)
    scores = softcap * np.tanh(scores / softcap) if softcap else scores
    scores = scores if added is None else scores + added
    keeps = bool(attributes.get("keeps", 1))
    scores = scores if kept is None else np.where(kept == keeps, scores, attributes.get("fill", -np.inf))
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    weights /= weights.sum(-1, keepdims=True)
    weights = weights if dropped is None else np.where(dropped, 0, weights)
    return np.matmul(weights, value.astype(np.float64))


def check(given: dict[str, Any], **attributes: Any) -> None:
    """Compare the result with float64. Both have NaN at the same positions."""
    with np.errstate(all="ignore"):
        want = wanted(given, attributes)
    made = attend(given, attributes)
    assert made.shape == want.shape and made.dtype == np.float32
    largest = np.abs(want[np.isfinite(want)]).max(initial=1e-30)
    np.testing.assert_allclose(made, want, 1e-4, 1e-5 * largest)


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def operands(batch: tuple[int, ...], rows: int, keys: int, size: int, columns: int) -> dict[str, Any]:
    return {
        "query": random(*batch, rows, size, seed=1),
        "key": random(*batch, size, keys, seed=2),
        "value": random(*batch, keys, columns, seed=3),
    }


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 13, 15, 71, 128])
@pytest.mark.parametrize("keys", [1, 2, 31, 33, 128, 701])
def test_any_size(rows: int, keys: int) -> None:
    for batch, size, columns in (((), 16, 32), ((2,), 1, 1), ((2, 3), 17, 5), ((1, 2), 64, 33), ((2, 1, 1), 80, 64)):
        check(operands(batch, rows, keys, size, columns), scale=size**-0.5)


@pytest.mark.parametrize("rows", [2, 23])
def test_masks(rows: int) -> None:
    chance = np.random.default_rng(5)
    for softcap in (0.0, 2.5):
        for added in ((), (rows, 37), (2, 1, 1, 37), (2, 3, rows, 1), (3, 1, 1)):
            for keeps in (0, 1):
                given = operands((2, 3), rows, 37, 8, 9)
                given["added"] = random(*added, seed=4)
                given["kept"] = chance.random((rows, 37) if keeps else (2, 1, rows, 37)) < 0.7
                given["dropped"] = chance.random((rows, 1)) < 0.3
                check(given, scale=0.3, softcap=softcap, keeps=keeps, fill=-10000.0)
                del given["added"], given["dropped"]
                check(given, scale=-0.3, softcap=softcap, keeps=keeps)


@pytest.mark.parametrize("rows", [2, 23])
def test_fully_masked_rows(rows: int) -> None:
    given = operands((2,), rows, 700, 8, 9)
    given["kept"] = np.arange(rows)[:, None] * 300 > np.arange(700)
    check(given)
    check(given, fill=-3.4e38)
    given["dropped"] = ~given["kept"].any(-1, keepdims=True)
    check(given)


@pytest.mark.parametrize("rows", [3, 30])
def test_special_values(rows: int) -> None:
    given = operands((2,), rows, 500, 8, 9)
    given["query"][0, 0, 3] = np.nan
    given["query"][0, 1, 3] = np.inf
    given["query"][1, 0] = -np.inf
    given["key"][1, 2, 499] = np.inf
    given["value"][1, 4, 2] = np.nan
    check(given)


@pytest.mark.parametrize("rows", [3, 30])
def test_empty_dims(rows: int) -> None:
    for keys, size in ((0, 8), (7, 0), (0, 0)):
        check(operands((2,), rows, keys, size, 5))
    assert attend(operands((2,), rows, 7, 8, 0), {}).shape == (2, rows, 0)
    assert attend(operands((0,), rows, 7, 8, 5), {}).shape == (0, rows, 5)


@pytest.mark.parametrize("rows", [2, 40])
def test_wide_heads_and_long_rows(rows: int) -> None:
    check(operands((2,), rows, 50, 512, 512), scale=0.04)
    check(operands((1,), rows, 30, 3001, 700), scale=0.01)
    keys = 60001 if PLACE["backend"] == "cpu" else 20001  # so many rounds of a loop every driver makes
    check(operands((1,), rows, keys, 8, 8), scale=0.3)


@pytest.mark.parametrize("rows", [2, 40])
def test_what_repeats(rows: int) -> None:
    given = operands((2, 3, 4), rows, 50, 16, 8)
    given["key"], given["value"] = given["key"][:, :, :1], given["value"][:1, :, :1]
    check(given)
    given["query"] = given["query"][:1]
    check(given)
    given["added"] = random(5, 1, 1, rows, 50)[:2]
    check(given)
    check({"query": random(2, 1, 8), "key": random(2, 8, 1), "value": random(2, 7, 5), "added": random(rows, 7)})


@pytest.mark.parametrize("rows", [2, 40])
def test_operands_cut_out_of_one(rows: int) -> None:
    """(tokens, batch, 3 * heads * size), as PyTorch's attention has it; the result (tokens, batch, heads, size)."""
    packed = random(rows, 2, 3 * 4 * 8)
    query, key, value = packed.reshape(rows, 2, 3, 4, 8).transpose(2, 1, 3, 0, 4)
    starts = [(0, 0, at) for at in (0, 32, 64)]
    plain = [Arrangement(((1, 1, 0), (2, 8, 4), (0, 1, 0), (2, 1, 8)), start) for start in starts]
    views = (plain[0], plain[1].swapped(), plain[2])
    want = wanted({"query": query, "key": key.swapaxes(-1, -2), "value": value}, {"scale": 0.35})
    made = attend(dict.fromkeys(NAMES[:3], packed), {"scale": 0.35, "views": views, "perm": (2, 0, 1, 3)})
    np.testing.assert_allclose(made, want.transpose(2, 0, 1, 3), 1e-4, 1e-5)


@pytest.mark.parametrize("rows", [2, 40])
def test_values_and_queries_by_columns(rows: int) -> None:
    given = {"query": random(2, 16, rows), "key": random(2, 50, 16), "value": random(2, 9, 50)}
    views = tuple(Arrangement.of(3).swapped() for _ in range(3))
    want = wanted({name: value.swapaxes(1, 2) for name, value in given.items()}, {})
    np.testing.assert_allclose(attend(given, {"views": views}), want, 1e-4, 1e-5)


@pytest.mark.parametrize("perm", [(), (0, 2, 1, 3)])
def test_some_rows_at_a_time(perm: tuple[int, ...], backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend == "cpu":
        pytest.skip("the CPU always takes a few rows at a time")
    monkeypatch.setattr("perframe.backends.gl.families.attention.MOST_SCORES", 2 * 3 * 37 * 16)
    given = operands((2, 3), 45, 37, 8, 9)
    given["added"], given["kept"] = random(2, 1, 45, 37), random(45, 37) > -1
    given["dropped"] = np.arange(45)[:, None] % 7 == 3
    attributes = {"scale": 0.3, "softcap": 2.5, "fill": -10000.0}
    want = wanted(given, attributes)
    made = attend(given, attributes | {"perm": perm})
    np.testing.assert_allclose(made, want.transpose(perm) if perm else want, 1e-4, 1e-5)


@pytest.mark.quick(cases=0)
def test_the_scores_of_all_queries_are_never_held(backend: str, backend_context: Any) -> None:
    given = operands((1, 4), 2048, 2048, 8, 8)
    values = [Value(name, DataType.FLOAT32, DynamicTensorShape(x.shape)) for name, x in given.items()]
    model = Model(
        values,
        [Value("y", DataType.FLOAT32, None)],
        [
            Layer("MatMul", "scores", ["query", "key"], ["s"]),
            Layer("Softmax", "softmax", ["s"], ["w"]),
            Layer("MatMul", "sum", ["w", "value"], ["y"]),
        ],
        {},
    )
    with pf.Worker(model, backend, backend_context, strict=True) as worker:
        worker.schedule(given)
        made = worker.peek_output("y").download_to_array()
        (use,) = worker.memory_use
    assert use.workspace + use.packed < 2048**2 * 8  # half of all scores
    want = wanted(given | {"query": given["query"][:, :, ::300]}, {})
    np.testing.assert_allclose(made[:, :, ::300], want, 1e-4, 1e-5)


def test_bad_shapes_are_refused() -> None:
    good = operands((2,), 3, 5, 8, 8)
    for name, shape in (("query", (2, 3, 7)), ("key", (3, 8, 5)), ("value", (2, 4, 8)), ("value", (4, 8))):
        with pytest.raises(pf.InferenceError):
            attend(good | {name: random(*shape)}, {})
    with pytest.raises(pf.InferenceError):
        attend(good | {"kept": random(3, 5)}, {})
