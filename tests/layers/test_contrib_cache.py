"""Attention of com.microsoft over a cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from layers.test_contrib import check, fed, model
from perframe.testing import Draw
from perframe.testing.cases import Array, expected_by_onnxruntime

draw = Draw(83)
OUTPUTS = ["y", "keys", "values"]
H, G, D = 4, 2, 16  # onnxruntime turns heads of 16, 32, … only


def inputs(
    batch: int, tokens: int, past: int, lengths: list[int], *more: Array | None, packed: bool = False, groups: int = G
) -> list[Array | None]:
    """Lengths are those of all keys of each line."""
    query, key, value = (draw(batch, tokens, heads * D) for heads in (H, groups, groups))
    given: list[Array | None] = [query, key, value]
    if packed:
        given = [np.concatenate([query, key, value], -1), None, None]
    cache = [draw(batch, groups, past, D) for _ in range(2)]
    ends = np.array(lengths, np.int32) - 1
    total = np.array(max(lengths), np.int32)
    return [*given, *cache, ends, total, *more]


TABLES = [draw(32, D // 2, low=-1, high=1) for _ in range(2)]
CASES: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("prompt", inputs(1, 5, 0, [5]), {}),
    ("prompt of two", inputs(2, 5, 0, [5, 5]), {}),
    ("decode", inputs(1, 1, 4, [5]), {}),
    ("decode of two", inputs(2, 1, 4, [5, 5]), {}),
    ("more tokens", inputs(1, 3, 4, [7]), {}),
    ("equal heads", inputs(1, 1, 4, [5], groups=H), {}),
    ("one head", inputs(1, 1, 4, [5], groups=1), {}),
    ("packed", inputs(1, 1, 4, [5], packed=True), {}),
    ("rotary", inputs(1, 1, 4, [5], *TABLES), {"do_rotary": 1}),
    ("rotary prompt", inputs(2, 3, 0, [3, 3], *TABLES, packed=True), {"do_rotary": 1}),
    ("interleaved", inputs(1, 2, 4, [6], *TABLES), {"do_rotary": 1, "rotary_interleaved": 1}),
    ("places", inputs(1, 2, 4, [6], *TABLES, np.array([[1, 7]], np.int64)), {"do_rotary": 1}),
    ("scale", inputs(1, 1, 4, [5]), {"scale": 0.2}),
    ("cap", inputs(1, 1, 4, [5]), {"softcap": 0.5}),
    ("window", inputs(1, 3, 6, [9]), {"local_window_size": 3}),
    ("window prompt", inputs(1, 6, 0, [6]), {"local_window_size": 2}),
    ("smooth", inputs(1, 2, 4, [6]), {"smooth_softmax": 1}),
    ("sink", inputs(1, 2, 4, [6], None, None, None, None, draw(H)), {}),
    ("added", inputs(1, 2, 4, [6], None, None, None, draw(1, H, 2, 6)), {}),
    ("added to all", inputs(2, 1, 4, [5, 5], None, None, None, draw(1, 1, 1, 5)), {"softcap": 0.7}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_against_onnxruntime(case: Any, backend: str, backend_context: Any) -> None:
    _, given, attributes = case
    groups = given[3].shape[1]
    attributes = {"num_heads": H, "kv_num_heads": groups, **attributes}
    check(backend, backend_context, "GroupQueryAttention", given, attributes, outputs=3, tolerance=1e-4, native=True)


LINES = [
    ("room", inputs(2, 1, 6, [5, 3], *TABLES), [5, 3], [1, 1]),
    ("no room", inputs(2, 1, 6, [7, 4], *TABLES), [7, 4], [1, 1]),
    ("prompt", inputs(2, 5, 0, [5, 3], *TABLES), [5, 3], [5, 3]),
    ("prompt into room", inputs(2, 4, 6, [4, 4], *TABLES), [4, 4], [4, 4]),
]


@pytest.mark.parametrize("case", LINES, ids=lambda case: case[0])
def test_lines_of_different_lengths(case: Any, backend: str, backend_context: Any) -> None:
    """Elements after a line's last key, and results of padding, are not compared."""
    _, given, keys, tokens = case
    attributes = {"num_heads": H, "kv_num_heads": G, "do_rotary": 1}
    proto = model("GroupQueryAttention", given, attributes, outputs=OUTPUTS)
    wanted = expected_by_onnxruntime(proto, fed(given))
    made = list(pf.run(proto, fed(given), backend=backend, ctx=backend_context).values())
    assert [value.shape for value in made] == [value.shape for value in wanted]
    for line, (end, last) in enumerate(zip(keys, tokens, strict=True)):
        np.testing.assert_allclose(made[0][line, :last], wanted[0][line, :last], 1e-4, 1e-4)
        for value, want in zip(made[1:], wanted[1:], strict=True):
            np.testing.assert_allclose(value[line, :, :end], want[line, :, :end], 1e-4, 1e-4)


@pytest.mark.parametrize("batch, past", [(1, 0), (1, 3), (2, 5)])
def test_dims_without_sizes(batch: int, past: int, backend: str, backend_context: Any) -> None:
    """A step of a decoder, whose cache grows."""
    given = inputs(batch, 1, past, [past + 1] * batch)
    proto = model("GroupQueryAttention", given, {"num_heads": H, "kv_num_heads": G}, outputs=OUTPUTS)
    for info in proto.graph.input:
        dims = info.type.tensor_type.shape.dim
        if dims:
            dims[0].dim_param = "batch"
        if len(dims) == 4:
            dims[2].dim_param = "past"
    wanted = expected_by_onnxruntime(proto, fed(given))
    made = pf.run(proto, fed(given), backend=backend, ctx=backend_context)
    for value, want in zip(made.values(), wanted, strict=True):
        np.testing.assert_allclose(value, want, 1e-4, 1e-4)


def resident(seen: int, rows: int, window: int) -> int:
    """How many keys onnxruntime keeps, in the first rows of a cache."""
    return seen if seen <= rows else window + (seen - rows - 1) % (rows - window + 1)


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("window, rows", [(4, 4), (4, 6), (3, 7)])
@pytest.mark.parametrize("steps", [(1,), (3, 1, 2), (6, 1, 1, 5)], ids=str)
def test_a_cache_of_the_last_keys(window: int, rows: int, steps: Any, backend: str, backend_context: Any) -> None:
    """Lines of a batch have seen different numbers of keys. Rows without a key are not compared."""
    ahead = np.array([0, 2] if steps == (1,) else [0])  # onnxruntime takes several tokens of one line alone
    attributes = {"num_heads": H, "kv_num_heads": G, "local_window_size": window, "sliding_window_cache": 1}
    attributes["do_rotary"] = 1
    seen, caches = 0, [draw(len(ahead), G, rows, D) for _ in range(2)]
    for step in range(8):
        tokens = steps[step % len(steps)]
        seen += tokens
        given = inputs(len(ahead), tokens, rows, [*(seen + ahead)], *TABLES)
        given[3:5] = caches
        proto = model("GroupQueryAttention", given, attributes, outputs=OUTPUTS)
        wanted = expected_by_onnxruntime(proto, fed(given))
        made = list(pf.run(proto, fed(given), backend=backend, strict=backend != "cpu", ctx=backend_context).values())
        for line, all_keys in enumerate(seen + ahead):
            held = resident(all_keys, rows, window)
            np.testing.assert_allclose(made[0][line], wanted[0][line], 1e-4, 1e-4)
            for value, want in zip(made[1:], wanted[1:], strict=True):
                np.testing.assert_allclose(value[line, :, :held], want[line, :, :held], 1e-5, 1e-5)
        caches = [np.nan_to_num(value) for value in wanted[1:]]  # it leaves rows without a key unwritten


def test_an_empty_cache_of_the_last_keys_gets_its_rows(backend: str, backend_context: Any) -> None:
    attributes = {"num_heads": H, "kv_num_heads": G, "local_window_size": 4, "sliding_window_cache": 1}
    given = inputs(1, 3, 0, [3])
    made = pf.run(
        model("GroupQueryAttention", given, attributes, outputs=OUTPUTS),
        fed(given),
        backend=backend,
        ctx=backend_context,
    )
    whole = model("GroupQueryAttention", given, {**attributes, "sliding_window_cache": 0}, outputs=OUTPUTS)
    wanted = expected_by_onnxruntime(whole, fed(given))
    assert made["keys"].shape == (1, G, 4, D)
    np.testing.assert_allclose(made["y"], wanted[0], 1e-5, 1e-5)
    np.testing.assert_allclose(made["keys"][:, :, :3], wanted[1], 1e-5, 1e-5)


def test_queries_and_keys_are_normalized(backend: str, backend_context: Any) -> None:
    """onnxruntime does so on its GPUs only: it gets them normalized."""
    given = inputs(1, 3, 4, [7], *TABLES)
    weights = [draw(D, low=0.5, high=1.5) for _ in range(2)]
    attributes = {"num_heads": H, "kv_num_heads": G, "do_rotary": 1}
    all_given = [*given, *[None] * 5, *weights]
    proto = model("GroupQueryAttention", all_given, {**attributes, "qk_norm_epsilon": 1e-3}, outputs=OUTPUTS)
    made = pf.run(proto, fed(all_given), backend=backend, strict=backend != "cpu", ctx=backend_context)
    for index, weight in enumerate(weights):
        heads = given[index].reshape(1, 3, -1, D)  # type: ignore[union-attr]
        normal = heads / np.sqrt((heads**2).mean(-1, keepdims=True) + 1e-3) * weight
        given[index] = normal.reshape(1, 3, -1).astype(np.float32)
    wanted = expected_by_onnxruntime(model("GroupQueryAttention", given, attributes, outputs=OUTPUTS), fed(given))
    for value, want in zip(made.values(), wanted, strict=True):
        np.testing.assert_allclose(value, want, 1e-4, 1e-4)


def test_what_cannot_be_honoured_is_reported() -> None:
    attributes = {"num_heads": H, "kv_num_heads": G, "k_quant_type": "PER_TENSOR"}
    with pytest.raises(pf.UnsupportedOperatorError, match="k_quant_type='PER_TENSOR'"):
        pf.load(model("GroupQueryAttention", inputs(1, 1, 4, [5]), attributes))
    attributes = {"num_heads": H, "kv_num_heads": G, "sliding_window_cache": 1}
    with pytest.raises(pf.UnsupportedOperatorError, match="needs a local_window_size"):
        pf.load(model("GroupQueryAttention", inputs(1, 1, 4, [5]), attributes))
