"""A state of a loop to which each iteration appends one row is collected instead.

PyTorch exports `rows = torch.cat((rows, row))` in a scripted loop that way. Appending copies all earlier rows in each
iteration; a collected output copies each row once.
"""

from __future__ import annotations

import numpy as np

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.report import refuse
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor

FIRST_STATE = 2  # a body's inputs begin with the iteration number and the condition; a loop's with two others


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of states that were replaced."""
    changes = 0
    for layer in model.walk():
        while layer.op == "Loop" and (found := _appended(layer)) is not None:
            layer = _collected(model, layer, found)
            changes += 1
    return changes


def _appended(layer: Layer) -> int | None:
    """Return the index of a state to which the body only appends one row."""
    body = layer.inner_models["body"]
    own = [value for value in body.inputs if value.name not in layer.captures]
    for index, state in enumerate(own[FIRST_STATE:]):
        made, given = body.outputs[1 + index], layer.inputs[FIRST_STATE + index]
        join, result = made.producer, layer.outputs[index] if index < len(layer.outputs) else None
        if join is None or join.op != "Concat" or join.inputs[:1] != (state,) or given is None or result is None:
            continue
        rows = join.inputs[1] if len(join.inputs) == 2 else None
        is_read = state.is_output or len(state.users) > 1 or made.users or body.outputs.count(made) > 1
        if is_read or join.epilogue or rows is None or rows is state or rows.producer is None or rows.is_output:
            refuse(join, "the loop's body uses these values for more than appending one to the other")
        elif _row(given.spec, rows.spec, join) is None:
            refuse(join, "the shape of a row is not known, or it is not one row along the first axis")
        else:
            return index
    return None


def _row(given: PartialTensor, rows: PartialTensor, join: Layer) -> DynamicTensorShape | None:
    """Return the shape of what one iteration appends. Its row has the dims of the state at the begin."""
    if given.shape is None or rows.shape is None or not given.shape.may_be((None, *rows.shape[1:])):
        return None
    shape = DynamicTensorShape((rows.shape[0], *given.shape[1:]))
    return shape if shape.is_static and shape[0] == 1 and join.axis % shape.rank == 0 else None


def _collected(model: Model, layer: Layer, index: int) -> Layer:
    """Replace a loop by one that collects the rows of a state, and return the new loop."""
    given, result = layer.input(FIRST_STATE + index), layer.outputs[index]
    assert result is not None
    body = layer.inner_models["body"].copy(with_bodies=True)
    own = [value for value in body.inputs if value.name not in layer.captures]
    state, made = own[FIRST_STATE + index], body.outputs[1 + index]
    join = made.producer
    assert join is not None
    rows = join.input(1)
    rows.declared = rows.spec.with_shape(_row(given.spec, rows.spec, join))
    body.inputs = [value for value in body.inputs if value is not state]
    body.outputs = [*(value for value in body.outputs if value is not made), rows]
    body.remove(join)

    left_out = len(body.outputs) - 1 - len(layer.outputs)
    others = [*layer.outputs[:index], *layer.outputs[index + 1 :], *(None,) * left_out]
    stacked, flat = Value(f"{result.name} by iteration"), Value(f"{result.name} appended")
    inputs = [value for at, value in enumerate(layer.inputs) if at != FIRST_STATE + index]
    loop = Layer("Loop", layer.name, inputs, [*others, stacked], {**layer.attributes, "bodies": {"body": body}})
    second = Value("axis", constant=np.array([1], np.int64))
    model.replace(
        layer,
        loop,
        Layer("Squeeze", f"{layer.name} rows", [stacked, second], [flat]),
        Layer("Concat", f"{layer.name} joined", [given, flat], [result], {"axis": 0}),
    )
    return loop
