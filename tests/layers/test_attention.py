"""Attention in all its kinds: linear with its layer, the others by the functions that the standard gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.ir.declaration import declaration
from perframe.ir.sizes.partial import PartialTensor
from perframe.testing import Case, Draw, check
from perframe.testing.cases import Array

draw = Draw(59)
RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


def linear(
    rule: str,
    batch: int = 2,
    tokens: int = 5,
    query_heads: int = 2,
    heads: int = 2,
    keys: int = 4,
    values: int = 3,
    past: bool = True,
    decays: int | None = None,
    betas: int | None = None,
    dtype: Any = np.float32,
    **attributes: Any,
) -> Case:
    gated, delta = RULES[rule]

    def some(*shape: int, present: bool = True, low: float = -1) -> Array | None:
        return draw(*shape, low=low, dtype=dtype) if present else None

    given = [some(batch, tokens, query_heads * keys), some(batch, tokens, heads * keys)]
    given += [some(batch, tokens, heads * values), some(batch, heads, keys, values, present=past)]
    given += [some(batch, tokens, decays or heads * keys, present=gated)]
    given += [some(batch, tokens, betas or heads, present=delta, low=0)]
    while given[-1] is None:
        given.pop()
    attributes |= {"update_rule": rule, "q_num_heads": query_heads, "kv_num_heads": heads}
    name = f"{rule} {batch} {tokens} {query_heads}:{heads} {keys} {values} {past} {decays} {betas} {np.dtype(dtype)}"
    tolerance = 2e-2 if dtype == np.float16 else 1e-4
    return Case(name, "LinearAttention", given, attributes, 2, (), 27, rtol=tolerance, atol=tolerance / 10)


LINEAR = [
    *(linear(rule) for rule in RULES),
    *(linear(rule, past=False, query_heads=6, heads=3) for rule in RULES),
    *(linear(rule, tokens=1, batch=1, scale=0.3) for rule in RULES),
    *(linear(rule, query_heads=4, heads=1, keys=1, values=1) for rule in RULES),
    *(linear(rule, tokens=43, keys=7, values=5, decays=2) for rule in ("gated", "gated_delta")),
    *(linear(rule, betas=1) for rule in ("delta", "gated_delta")),
    *(linear(rule, dtype=np.float16) for rule in RULES),
]


@pytest.mark.parametrize("case", LINEAR, ids=str)
def test_linear_attention(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


@pytest.mark.parametrize(
    ("attributes", "inputs"),
    [
        ({"update_rule": "sideways"}, 6),
        ({"update_rule": "linear"}, 6),
        ({"update_rule": "delta"}, 3),
        ({"q_num_heads": 3}, 6),
        ({"kv_num_heads": 0}, 6),
        ({"q_num_heads": 4, "kv_num_heads": 4}, 6),
    ],
    ids=str,
)
def test_bad_attributes_are_refused(attributes: dict[str, Any], inputs: int) -> None:
    case = linear("gated_delta", keys=3, values=3)
    given = [None if value is None else PartialTensor.of(value) for value in case.inputs[:inputs]]
    with pytest.raises(pf.InferenceError):
        declaration("LinearAttention").outputs_for(given, {"q_num_heads": 2, "kv_num_heads": 2} | attributes)


def attention(
    name: str,
    query: tuple[int, ...],
    key: tuple[int, ...],
    *more: Array | None,
    outputs: int = 1,
    reference: str = "onnx",
    **attributes: Any,
) -> Case:
    given = [draw(*query), draw(*key), draw(*key), *more]
    return Case(name, "Attention", given, attributes, outputs, (), 24, reference, rtol=1e-4, atol=1e-5)


PACKED = {"q_num_heads": 4, "kv_num_heads": 2}
FUNCTIONS = [
    attention("plain", (2, 3, 5, 8), (2, 3, 7, 8)),
    attention("causal", (2, 3, 5, 8), (2, 3, 7, 8), is_causal=1),
    attention("groups", (2, 6, 5, 8), (2, 3, 7, 8), scale=0.3),
    attention("mask", (2, 3, 5, 8), (2, 3, 7, 8), draw(5, 7)),
    attention("bools", (2, 3, 5, 8), (2, 3, 7, 8), draw(5, 7, dtype=bool) | np.eye(5, 7, dtype=bool)),
    attention("capped", (2, 3, 5, 8), (2, 3, 7, 8), softcap=2.0),
    attention("packed", (2, 5, 32), (2, 7, 16), **PACKED),
    attention("cache", (2, 3, 5, 8), (2, 3, 7, 8), None, draw(2, 3, 4, 8), draw(2, 3, 4, 8), outputs=3),
    *(
        attention(
            f"products {mode}",
            (2, 3, 5, 8),
            (2, 3, 7, 8),
            draw(5, 7),
            None,
            None,
            outputs=4,
            reference="onnxruntime",
            qk_matmul_output_mode=mode,
            softcap=3.0,
        )
        for mode in range(4)
    ),
    Case("", "SwiGLU", [draw(3, 5, low=-4, high=4), draw(3, 5)], {}, 1, (), 28),
    Case(
        "",
        "RotaryEmbedding",
        [draw(2, 3, 4, 8), draw(4, 4), draw(4, 4), np.array([[0, 1, 2, 3], [3, 2, 1, 0]])],
        {},
        1,
        (),
        24,
    ),
    Case(
        "pairs",
        "RotaryEmbedding",
        [draw(2, 3, 4, 8), draw(2, 4, 2), draw(2, 4, 2)],
        {"interleaved": 1, "rotary_embedding_dim": 4},
        1,
        (),
        24,
    ),
    Case(
        "",
        "CausalConvWithState",
        [draw(2, 3, 7), draw(3, 1, 4), draw(3), draw(2, 3, 3)],
        {"activation": "silu"},
        2,
        (),
        27,
        rtol=1e-4,
    ),
    Case("short", "CausalConvWithState", [draw(1, 3, 1), draw(3, 1, 4)], {}, 2, (), 27, rtol=1e-4),
]


@pytest.mark.parametrize("case", FUNCTIONS, ids=str)
def test_functions(case: Case, backend: str, backend_context: Any) -> None:
    proto = case.proto()
    wanted = case.expected(proto)
    made = pf.run(proto, case.fed, backend=backend, ctx=backend_context, strict=backend != "cpu")
    loose = 1 if backend == "cpu" else 10
    for value, want in zip(made.values(), wanted, strict=True):
        assert value.shape == want.shape and value.dtype == want.dtype
        np.testing.assert_allclose(value, want, case.rtol * loose, case.atol * loose)
