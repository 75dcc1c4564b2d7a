"""Attention of com.microsoft."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from layers.test_contrib import check, fed, model
from perframe.testing import Draw
from perframe.testing.cases import Array, expected_by_onnxruntime

draw = Draw(79)
B, S, T, H, D = 2, 3, 5, 4, 6
QUERY, KEY, VALUE = draw(B, S, H * D), draw(B, T, H * D), draw(B, T, H * D)
BIAS = draw(3 * H * D)
TABLES = [draw(9, 3, low=-1, high=1) for _ in range(2)]


def lengths(*values: int) -> Array:
    return np.array(values, np.int32)


ROTARY: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("offset", [draw(2, 3, 24), np.array([2], np.int64), *TABLES], {}),
    ("places", [draw(2, 3, 24), np.array([[2, 0, 8], [1, 3, 5]], np.int64), *TABLES], {}),
    ("interleaved", [draw(2, 3, 24), np.array([2], np.int64), *TABLES], {"interleaved": 1}),
    ("heads", [draw(2, 4, 3, 6), np.array([1], np.int64), *TABLES], {}),
    ("part", [draw(2, 3, 32), np.array([2], np.int64), *TABLES], {"num_heads": 4, "rotary_embedding_dim": 6}),
    (
        "part interleaved",
        [draw(2, 3, 32), np.array([2], np.int64), *TABLES],
        {"num_heads": 4, "rotary_embedding_dim": 6, "interleaved": 1},
    ),
]


@pytest.mark.parametrize("case", ROTARY, ids=lambda case: case[0])
def test_rotary_embedding(case: Any, backend: str, backend_context: Any) -> None:
    check(backend, backend_context, "RotaryEmbedding", case[1], case[2], native=True)


MASK = np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 0]], np.int32)
PAST = draw(2, B, H, 2, D)
MANY: list[tuple[str, list[Array | None], dict[str, Any], int]] = [
    ("bare", [QUERY, KEY, VALUE], {}, 1),
    ("scale", [QUERY, KEY, VALUE], {"scale": 0.7}, 1),
    ("bias", [QUERY, KEY, VALUE, BIAS], {}, 1),
    ("narrow", [QUERY, KEY, draw(B, T, H * 3), draw(H * (D + D + 3))], {}, 1),
    ("mask", [QUERY, KEY, VALUE, None, MASK], {}, 1),
    ("mask value", [QUERY, KEY, VALUE, None, MASK], {"mask_filter_value": -1.0}, 1),
    ("lengths", [QUERY, KEY, VALUE, None, lengths(5, 2)], {}, 1),
    ("added", [QUERY, KEY, VALUE, None, None, draw(1, H, S, T)], {}, 1),
    ("causal", [QUERY, KEY[:, :S].copy(), VALUE[:, :S].copy()], {"unidirectional": 1}, 1),
    (
        "causal mask",
        [QUERY, KEY[:, :S].copy(), VALUE[:, :S].copy(), None, MASK[:, 1:4].copy()],
        {"unidirectional": 1},
        1,
    ),
    ("past", [QUERY, *2 * [draw(B, S, H * D)], BIAS, None, None, *PAST], {"unidirectional": 1}, 3),
    ("past mask", [QUERY, *2 * [draw(B, S, H * D)], None, MASK, None, *PAST], {}, 3),
    ("crossed", [QUERY, draw(B, H, T, D), draw(B, H, T, D)], {}, 1),
    ("present", [QUERY, KEY, VALUE], {}, 3),
]


@pytest.mark.parametrize("case", MANY, ids=lambda case: case[0])
def test_multi_head_attention(case: Any, backend: str, backend_context: Any) -> None:
    _, inputs, attributes, outputs = case
    attributes = {"num_heads": H, **attributes}
    check(
        backend, backend_context, "MultiHeadAttention", inputs, attributes, outputs=outputs, tolerance=1e-4, native=True
    )


def test_scores(backend: str, backend_context: Any) -> None:
    """onnxruntime needs the type of this output in the file."""
    given = [QUERY, KEY, VALUE, None, MASK]
    proto = model("MultiHeadAttention", given, {"num_heads": H}, outputs=["y", "", "", "scores"])
    proto.graph.output[1].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    feeds = fed(given)
    wanted = expected_by_onnxruntime(proto, feeds)
    made = pf.run(proto, feeds, backend=backend, ctx=backend_context)
    for value, want in zip(made.values(), wanted, strict=True):
        np.testing.assert_allclose(value, want, 1e-4, 1e-4)


def _split(x: Array) -> Array:
    return x.reshape(*x.shape[:2], H, D)


@pytest.mark.parametrize("packed", ["keys and values", "all"])
def test_packed_queries_keys_and_values(packed: str, backend: str, backend_context: Any) -> None:
    """onnxruntime has it on other devices only."""
    query, key, value = (draw(B, S, H * D) for _ in range(3))
    plain = model("MultiHeadAttention", [query, key, value], {"num_heads": H})
    wanted = expected_by_onnxruntime(plain, {"x0": query, "x1": key, "x2": value})
    inputs = [query, np.stack([_split(key), _split(value)], 3)]
    if packed == "all":
        inputs = [np.stack([_split(x) for x in (query, key, value)], 3)]
    check(backend, backend_context, "MultiHeadAttention", inputs, {"num_heads": H}, wanted=wanted)


WEIGHTS = draw(8, 3 * H * D)
ONE: list[tuple[str, list[Array | None], dict[str, Any], int]] = [
    ("bare", [draw(B, T, 8), WEIGHTS, BIAS], {}, 1),
    ("mask", [draw(B, T, 8), WEIGHTS, BIAS, MASK], {}, 1),
    ("mask of pairs", [draw(B, S, 8), WEIGHTS, BIAS, np.tril(np.ones((B, S, S), np.int32))], {}, 1),
    ("lengths", [draw(B, T, 8), WEIGHTS, BIAS, lengths(5, 2)], {}, 1),
    ("ends", [draw(B, T, 8), WEIGHTS, BIAS, lengths(5, 4, 1, 2)], {}, 1),
    ("causal", [draw(B, T, 8), WEIGHTS, BIAS], {"unidirectional": 1}, 1),
    ("causal mask", [draw(B, T, 8), WEIGHTS, BIAS, MASK], {"unidirectional": 1}, 1),
    ("past", [draw(B, S, 8), WEIGHTS, BIAS, MASK, PAST], {"unidirectional": 1}, 2),
    ("added", [draw(B, T, 8), WEIGHTS, BIAS, None, None, draw(1, H, T, T)], {"scale": 0.3}, 1),
    ("sizes", [draw(B, T, 8), draw(8, 8 + 8 + 12), draw(28)], {"qkv_hidden_sizes": [8, 8, 12]}, 1),
]


@pytest.mark.parametrize("case", ONE, ids=lambda case: case[0])
def test_attention(case: Any, backend: str, backend_context: Any) -> None:
    _, inputs, attributes, outputs = case
    attributes = {"num_heads": H, **attributes}
    check(backend, backend_context, "Attention", inputs, attributes, outputs=outputs, tolerance=1e-4, native=True)


def test_what_cannot_be_honoured_is_reported() -> None:
    with pytest.raises(pf.UnsupportedOperatorError, match="do_rotary=1"):
        pf.load(model("Attention", [draw(B, T, 8), WEIGHTS, BIAS], {"num_heads": H, "do_rotary": 1}))
    with pytest.raises(pf.UnsupportedOperatorError, match=r"scale=2\.0"):
        pf.load(model("RotaryEmbedding", ROTARY[0][1], {"scale": 2.0}))


@pytest.mark.parametrize("batch, tokens", [(1, 4), (3, 2)])
def test_dims_without_sizes(batch: int, tokens: int, backend: str, backend_context: Any) -> None:
    given = [draw(batch, tokens, 8), WEIGHTS, BIAS, np.ones((batch, tokens), np.int32)]
    proto = model("Attention", given, {"num_heads": H, "unidirectional": 1}, constants=(1, 2))
    for info in proto.graph.input:
        for dim, name in zip(info.type.tensor_type.shape.dim, ("batch", "tokens"), strict=False):
            dim.dim_param = name
    feeds = fed(given, (1, 2))
    (wanted,) = expected_by_onnxruntime(proto, feeds)
    made = pf.run(proto, feeds, backend=backend, ctx=backend_context)["y0"]
    np.testing.assert_allclose(made, wanted, 1e-4, 1e-4)


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize("tokens, bias, past", [(1, True, True), (2, False, True), (7, True, False), (3, False, False)])
def test_causal_conv(activation: str, tokens: int, bias: bool, past: bool, backend: str, backend_context: Any) -> None:
    inputs = [draw(2, 5, tokens), draw(5, 1, 4), draw(5) if bias else None, draw(2, 5, 3) if past else None]
    attributes = {"activation": activation, "ndim": 1}
    check(
        *(backend, backend_context, "CausalConvWithState", inputs, attributes),
        outputs=2,
        tolerance=1e-4,
        native=True,
    )


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention(rule: str, backend: str, backend_context: Any) -> None:
    tokens, queries, heads, size = 5, 4, 2, 8
    decay = -np.abs(draw(2, tokens, heads)) if "gated" in rule else None
    beta = np.abs(draw(2, tokens, heads)) if "delta" in rule else None
    inputs = [draw(2, tokens, queries * size), 0.2 * draw(2, tokens, heads * size), draw(2, tokens, heads * size)]
    inputs = [*inputs, draw(2, heads, size, size), decay, beta]
    attributes = {"q_num_heads": queries, "kv_num_heads": heads, "update_rule": rule, "scale": 0.3}
    check(*(backend, backend_context, "LinearAttention", inputs, attributes), outputs=2, tolerance=1e-3, native=True)
