"""Numbers of 64 bits become float32: no GPU's kernels compute with more. `load(narrow_doubles=True)` asks for it.

Inputs and outputs of the model keep their types. Constants are folded before, in 64 bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from perframe.model import Evaluate, Layer, Model, Value
from perframe.passes import fold_constants
from perframe.tensor import DataType

WIDE, NARROW = DataType.FLOAT64, DataType.FLOAT32


def run(model: Model, evaluate: Evaluate) -> int:
    """Narrow all values between inputs and outputs, and return the number of values and attributes that changed."""
    fold_constants.run(model, evaluate)
    count = _narrow(model)
    before, after = list[Layer](), list[Layer]()
    for value in model.inputs:
        if value.dtype is WIDE:
            name = model.names.free(value.name)
            _rename(model, value.name, name)
            before.append(Layer("Cast", f"{value.name}/narrow", [value.name], [name], {"to": NARROW}))
    for value in model.outputs:
        if value.dtype is WIDE:
            name = model.names.free(value.name)
            _rename(model, value.name, name)
            after.append(Layer("Cast", f"{value.name}/widen", [name], [value.name], {"to": WIDE}))
    model.layers = [*before, *model.layers, *after]
    return count + len(before) + len(after)


def _narrow(model: Model) -> int:
    count = 0
    for name, constant in model.constants.items():
        if constant.dtype == np.float64:
            model.constants[name] = _narrowed(constant)
            count += 1
    for layer in model.layers:
        for key, value in layer.attributes.items():
            if value is WIDE or (isinstance(value, np.ndarray) and value.dtype == np.float64):
                layer.attributes = {**layer.attributes, key: NARROW if value is WIDE else _narrowed(value)}
                count += 1
        for body in layer.attributes.get("bodies", {}).values():
            count += _narrow(body)
            body.inputs[:] = map(_narrow_value, body.inputs)
            body.outputs[:] = map(_narrow_value, body.outputs)
    return count


def _narrowed(array: Any) -> Any:
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _narrow_value(value: Value) -> Value:
    return replace(value, dtype=NARROW) if value.dtype is WIDE else value


def _rename(model: Model, old: str, new: str) -> None:
    """Give a value another name wherever layers read or write it. Bodies get captured values as inputs of their own."""
    for layer in model.layers:
        layer.inputs[:] = [new if name == old else name for name in layer.inputs]
        layer.outputs[:] = [new if name == old else name for name in layer.outputs]
