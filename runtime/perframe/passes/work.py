"""The size of a model while passes change it: layers, bytes of constants, multiply-adds."""

from __future__ import annotations

from collections.abc import Mapping

from perframe.errors import PerframeError
from perframe.ir import Layer, Model, Value
from perframe.ir.inference import Inference
from perframe.ir.report import ModelSize
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor

Specs = Mapping[Value, PartialTensor]  # of all values of a model

COUNTED = ("conv", "conv_transpose", "matmul", "quantized", "packed")  # the families whose forms count their operations


def measure(model: Model, closing: Inference | None) -> ModelSize:
    """Return the size of a model. `closing` infers shapes with open dims as 1, and reuses those of earlier calls.
    Without it the multiply-adds are None.
    """
    size = sum([array.nbytes for value in model.constant_values if (array := value.constant) is not None])
    return ModelSize(len(model.layers), size, None if closing is None else _multiply_adds(model, closing))


def _multiply_adds(model: Model, closing: Inference) -> int | None:
    counted = [layer for layer in model.layers if layer.family in COUNTED]
    if not counted:
        return 0
    tensors = [x for x in model.inputs if x.spec.kind == "tensor"]
    is_open = any(x.spec.shape is None or not x.spec.shape.is_static for x in tensors)
    try:
        if is_open:
            specs = closing.specs(model.layers, {x: x.spec.with_shape(closed(x.spec.shape)) for x in tensors})
        else:
            specs = model.specs()  # the model remembers what it inferred
    except PerframeError:  # a dim of 1 does not fit
        return None
    found = [multiply_adds(layer, specs) for layer in counted]
    return None if None in found else sum(number or 0 for number in found)


def multiply_adds(layer: Layer, specs: Mapping[Value, PartialTensor] | None = None) -> int | None:
    """Return the multiply-adds of a product or a convolution; None for other layers and unknown shapes.

    `specs` replace those of the values themselves.
    """
    given = [None if value is None else spec_in(specs, value) for value in layer.inputs]
    made = [spec_in(specs, value) for value in layer.results]
    open_shapes = any([x is not None and (x.shape is None or not x.shape.is_static) for x in (*given, *made)])
    if layer.family not in COUNTED or open_shapes:
        return None
    return int(layer.form(given, made).operations) // 2  # type: ignore[arg-type]


def spec_in(specs: Mapping[Value, PartialTensor] | None, value: Value) -> PartialTensor:
    """Return the spec of a value in a mapping; its own without one."""
    return value.spec if specs is None else specs[value]


def closed(shape: DynamicTensorShape | None) -> DynamicTensorShape | None:
    """Return a shape with its open dims as 1."""
    return None if shape is None else DynamicTensorShape([dim if isinstance(dim, int) else 1 for dim in shape])
