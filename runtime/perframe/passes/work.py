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
        inputs = [Value(v.name, v.dtype, _closed(v.shape), v.kind, v.element_kind) for v in model.inputs]
        is_closed = inputs == model.inputs  # what the passes inferred then serves here too
        self._closed = model if is_closed else Model(inputs, model.outputs, (), {}, model.name)

    def remembering(self) -> AbstractContextManager[None]:
        """Remember what was inferred, within a `with` block."""
        return self._closed.remembering()

    def measure(self) -> Size:
        """Return the size of the model as it is now."""
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
            return sum([_multiply_adds_of(layer, specs) for layer in counted])
        except PerframeError:  # a dim of 1 does not fit, or a shape depends on values
            return None


def _multiply_adds_of(layer: Layer, specs: Mapping[str, PartialTensor]) -> int:
    given = [specs[name] if name else None for name in layer.inputs]
    made = [specs[name] for name in layer.outputs if name]
    if any([spec is not None and (spec.shape is None or not spec.shape.is_static) for spec in (*given, *made)]):
        raise PerframeError("a shape depends on values")
    return int(layer.form(given, made).operations) // 2  # type: ignore[arg-type]


def _closed(shape: DynamicTensorShape | None) -> DynamicTensorShape | None:
    return None if shape is None else DynamicTensorShape([dim if isinstance(dim, int) else 1 for dim in shape])
