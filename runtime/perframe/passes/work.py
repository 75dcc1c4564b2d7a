"""The size of a model while passes change it: layers, bytes of constants, multiply-adds."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from perframe.errors import PerframeError
from perframe.model import Layer, Model, Value
from perframe.model.report import Size
from perframe.tensor.partial import DynamicTensorShape, PartialTensor

COUNTED = ("conv", "conv_transpose", "matmul", "quantized")  # the families whose forms count their operations


class Sizes:
    """Measures one model again and again. Layers that did not change are not measured again."""

    def __init__(self, model: Model) -> None:
        self._model = model
        inputs = [Value(v.name, v.dtype, closed(v.shape), v.kind, v.element_kind) for v in model.inputs]
        is_closed = inputs == model.inputs  # what the passes inferred then serves here too
        self._closed = model if is_closed else Model(inputs, model.outputs, (), {}, model.name)

    def remembering(self) -> AbstractContextManager[None]:
        """Remember what was inferred, within a `with` block."""
        return self._closed.remembering()

    def measure(self) -> Size:
        """Return the current size of the model."""
        model = self._model
        size = sum([value.nbytes for value in model.constants.values()])
        return Size(len(model.layers), size, self._multiply_adds())

    def _multiply_adds(self) -> int | None:
        counted = [layer for layer in self._model.layers if layer.family in COUNTED]
        if not counted:
            return 0
        self._closed.layers, self._closed.constants = self._model.layers, self._model.constants
        try:
            specs = self._closed.infer()
        except PerframeError:  # a dim of 1 does not fit
            return None
        found = [multiply_adds(layer, specs) for layer in counted]
        return None if None in found else sum(number or 0 for number in found)


def multiply_adds(layer: Layer, specs: Mapping[str, PartialTensor]) -> int | None:
    """Return the multiply-adds of a product or a convolution; None for other layers and unknown shapes."""
    given = [specs[name] if name else None for name in layer.inputs]
    made = [specs[name] for name in layer.outputs if name]
    open_shapes = any([x is not None and (x.shape is None or not x.shape.is_static) for x in (*given, *made)])
    if layer.family not in COUNTED or open_shapes:
        return None
    return int(layer.form(given, made).operations) // 2  # type: ignore[arg-type]


def closed(shape: DynamicTensorShape | None) -> DynamicTensorShape | None:
    """Return a shape with its open dims as 1."""
    return None if shape is None else DynamicTensorShape([dim if isinstance(dim, int) else 1 for dim in shape])
