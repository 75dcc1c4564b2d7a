"""Concatenation on GL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import Binding, Tools, ints
from perframe.layers.join import Joining

_AT_ONCE = 6


def lower(
    layer: LayerLike,
    form: Joining,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """Up to six inputs a kernel; what it makes is the first input of the next."""
    parts = [(value, run) for value, run in zip(inputs, form.runs, strict=True) if value is not None and run]
    bindings = []
    while True:
        now, parts = parts[:_AT_ONCE], parts[_AT_ONCE:]
        runs = [run for _, run in now]
        total = sum(runs)
        target = tools.scratch((form.outer * total,), outputs[0].dtype) if parts else outputs[0]
        params: dict[str, Any] = {
            "first": ints([sum(runs[:k]) for k in range(len(runs))]),
            "run": ints(runs),
            "total": total,
        }
        given = {f"X{k}": value for k, (value, _) in enumerate(now)}
        bindings.append(Binding(layer.name, "join", given, target, params, {"OPERANDS": str(len(now))}))
        if not parts:
            return bindings
        parts.insert(0, (target, total))
