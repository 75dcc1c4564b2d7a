"""Linear attention on GL: for each token the change, the new state and what the queries read of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.join import joined
from perframe.backends.gl.steps import ROUNDS, Binding, Tools
from perframe.layers.attention import LinearState
from perframe.tensor import DataType

_PARTS = ("CHANGE", "STATE", "READ")
_TOKENS = 4096  # each is three launches


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """As many tokens as there may be launches."""
    form: LinearState = layer.form(inputs, outputs)
    if form.tokens > _TOKENS:
        return f"{form.tokens} tokens are too many launches"
    return "" if 4 * form.keys <= ROUNDS else f"keys of {form.keys} are too long for one shader"


def lower(
    layer: LayerLike,
    form: LinearState,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """Three kernels a token; the outputs are joined at the end, the last state is an output itself."""
    query, key, value, past, decay, beta = (*inputs, *(None,) * 3)[:6]
    assert query is not None and key is not None and value is not None
    size = form.batch * form.heads * form.keys * form.values
    state = past or tools.constant(np.zeros(size, np.float32))
    shared = {"Q": query, "K": key, "V": value, "G": decay or key, "B": beta or key}
    bindings: list[Binding] = []

    def kernel(part: str, token: int, reads: dict[str, Operand], y: Operand) -> Operand:
        names = {"CHANGE": "KVGB", "STATE": "KG", "READ": "Q"}[part]
        given = {name: operand for name, operand in shared.items() if name in names} | reads
        params: dict[str, Any] = {
            "token": token,
            "tokens": form.tokens,
            "query_heads": form.query_heads,
            "heads": form.heads,
            "keys": form.keys,
            "values": form.values,
            "delta": int(form.delta),
            "decays": form.decays,
            "betas": form.betas,
            "scale": form.scale,
        }
        defines = {name: str(index) for index, name in enumerate(_PARTS)} | {"PART": part}
        bindings.append(Binding(layer.name, "attention", given, y, params, defines))
        return y

    def scratch(*shape: int) -> Operand:
        return tools.scratch(shape, DataType.FLOAT32)

    made = []
    for token in range(form.tokens):
        change = kernel("CHANGE", token, {"S": state}, scratch(form.batch * form.heads * form.values))
        last = token == form.tokens - 1 and len(outputs) > 1
        state = kernel("STATE", token, {"S": state, "C": change}, outputs[1] if last else scratch(size))
        read = outputs[0] if form.tokens == 1 else scratch(form.batch * form.query_heads * form.values)
        made.append(kernel("READ", token, {"S": state}, read))
    if form.tokens > 1:
        whole = joined(layer, made, form.batch, tools, bindings)
        bindings.append(_copy(layer, whole, outputs[0]))
    if not form.tokens and len(outputs) > 1:
        bindings.append(_copy(layer, state, outputs[1]))
    return bindings


def _copy(layer: LayerLike, x: Operand, y: Operand) -> Binding:
    params: dict[str, Any] = {"shape": (y.shape.size,), "strides": (1,), "rank": 1, "offset": 0}
    return Binding(layer.name, "move", {"X": x}, y, params)
