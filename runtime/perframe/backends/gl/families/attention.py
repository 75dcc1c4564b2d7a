"""Linear attention on GL: each token computes the change, the new state, and the result of the queries on it."""

from __future__ import annotations

import numpy as np

from perframe.backends.gl.families.join import joined
from perframe.backends.gl.steps import Binding, Call, Tools
from perframe.backends.operand import Operand
from perframe.layers.attention import LinearState
from perframe.tensor import DataType

_PARTS = ("CHANGE", "STATE", "READ")
_TOKENS = 4096  # the most tokens; each takes three launches


def supports(call: Call[LinearState]) -> str | None:
    """Supports a limited number of tokens, because each takes launches, and of keys."""
    form = call.form
    if form.tokens > _TOKENS:
        return f"{form.tokens} tokens are too many launches"
    return None if 4 * form.keys <= call.rounds else f"keys of {form.keys} are too long for one shader"


def lower(call: Call[LinearState], tools: Tools) -> list[Binding]:
    """Three kernels a token. The results are joined at the end; the last state is an output."""
    form, query, key, value = call.form, call.x, call.input(1), call.input(2)
    past, decay, beta = (call.optional(index) for index in (3, 4, 5))
    size = form.batch * form.heads * form.keys * form.values
    state = past or tools.constant(np.zeros(size, np.float32))
    shared = {"Q": query, "K": key, "V": value, "G": decay or key, "B": beta or key}
    bindings: list[Binding] = []

    def kernel(part: str, token: int, reads: dict[str, Operand], y: Operand) -> Operand:
        names = {"CHANGE": "KVGB", "STATE": "KG", "READ": "Q"}[part]
        given = {name: operand for name, operand in shared.items() if name in names} | reads
        defines = {name: str(index) for index, name in enumerate(_PARTS)} | {"PART": part}
        bindings.append(call.bind("attention", given, y, {"token": token}, defines))
        return y

    def scratch(*shape: int) -> Operand:
        return tools.scratch(shape, DataType.FLOAT32)

    made = []
    for token in range(form.tokens):
        change = kernel("CHANGE", token, {"S": state}, scratch(form.batch * form.heads * form.values))
        last = token == form.tokens - 1 and len(call.outputs) > 1
        state = kernel("STATE", token, {"S": state, "C": change}, call.outputs[1] if last else scratch(size))
        read = call.y if form.tokens == 1 else scratch(form.batch * form.query_heads * form.values)
        made.append(kernel("READ", token, {"S": state}, read))
    if form.tokens > 1:
        whole = joined(call, made, form.batch, tools, bindings)
        bindings.append(call.copy(whole, call.y))
    if not form.tokens and len(call.outputs) > 1:
        bindings.append(call.copy(state, call.outputs[1]))
    return bindings
