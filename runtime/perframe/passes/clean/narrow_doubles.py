"""Numbers of 64 bits become float32: no GPU's kernels compute with more. `load(narrow_doubles=True)` asks for it.

Inputs and outputs of the model keep their types. Constants are folded before, in 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.passes.clean import fold_constants
from perframe.tensor import DataType

WIDE, NARROW = DataType.FLOAT64, DataType.FLOAT32


def run(model: Model, evaluate: Evaluate) -> int:
    """Narrow all values between inputs and outputs, and return the number of values and attributes that changed."""
    fold_constants.run(model, evaluate)
    count = _narrow(model)
    before, after = list[Layer](), list[Layer]()
    for value in model.inputs:
        if value.dtype is WIDE:
            narrow = Layer("Cast", f"{value.name}/narrow", [value], [f"{value.name} narrow"], {"to": NARROW})
            model.replace_uses(value, narrow.output)
            before.append(narrow)
    for value in model.outputs:
        maker = value.producer
        if value.dtype is WIDE and maker is not None:
            narrowed = Value(f"{value.name} narrow")
            maker.outputs = [narrowed if one is value else one for one in maker.outputs]
            model.replace_uses(value, narrowed)
            after.append(Layer("Cast", f"{value.name}/widen", [narrowed], [value], {"to": WIDE}))
        elif value.dtype is WIDE and value.constant is not None:
            value.constant = value.constant.astype(np.float64)
    model.layers = [*before, *model.layers, *after]
    return count + len(before) + len(after)


def _narrow(model: Model) -> int:
    count = 0
    for value in model.constant_values:
        if value.constant is not None and value.constant.dtype == np.float64:
            value.constant = _narrowed(value.constant)
            count += 1
    for layer in model.walk():
        for key, attribute in layer.attributes.items():
            if attribute is WIDE or (isinstance(attribute, np.ndarray) and attribute.dtype == np.float64):
                layer.attributes = {**layer.attributes, key: NARROW if attribute is WIDE else _narrowed(attribute)}
                count += 1
        for body in layer.inner_models.values():
            count += _narrow(body)
            for value in (*body.inputs, *body.outputs):
                if value.declared is not None and value.declared.dtype is WIDE:
                    value.declared = value.declared.with_shape(value.declared.shape, NARROW)
    return count


def _narrowed(array: Any) -> Any:
    with np.errstate(over="ignore"):
        return array.astype(np.float32)
