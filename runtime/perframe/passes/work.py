"""The size of a model while passes change it: layers, bytes of constants, multiply-adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from perframe.errors import PerframeError
from perframe.ir import Layer, Model, Value
from perframe.ir.inference import Inference
from perframe.ir.report import Size
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor

Specs = Mapping[Value, PartialTensor]  # of all values of a model

COUNTED = ("conv", "conv_transpose", "matmul", "quantized")  # the families whose forms count their operations


class Sizes:
    """Measures one model again and again. Layers that did not change are not measured again."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._inference = Inference()
        self._closed: tuple[tuple[PartialTensor, ...], list[PartialTensor]] | None = None

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Remember what was inferred, within a `with` block."""
        self._inference.remembers = True
        try:
            yield
        finally:
            self._inference.remembers = False
            self._inference.forget()

    def measure(self) -> Size:
        """Return the current size of the model."""
        model = self._model
        size = sum([value.nbytes for value in model.constants.values()])
        return Size(len(model.layers), size, self._multiply_adds())

    def _multiply_adds(self) -> int | None:
        counted = [layer for layer in self._model.layers if layer.family in COUNTED]
        if not counted:
            return 0
        specs: Mapping[Value, PartialTensor] | None = None
        try:
            if all(value.spec.shape is None or value.spec.shape.is_static for value in self._model.inputs):
                self._model.infer()
            else:
                specs = self._inference.specs(self._model.layers, self._closed_inputs())
        except PerframeError:  # a dim of 1 does not fit
            return None
        found = [multiply_adds(layer, specs) for layer in counted]
        return None if None in found else sum(number or 0 for number in found)

    def _closed_inputs(self) -> dict[Value, PartialTensor]:
        """The inputs with their open dims as 1. The same objects each time, so that inference can be reused."""
        key = tuple(value.spec for value in self._model.inputs)
        if (
            self._closed is None
            or len(self._closed[0]) != len(key)
            or any(a is not b for a, b in zip(self._closed[0], key, strict=True))
        ):
            self._closed = (
                key,
                [
                    PartialTensor(spec.dtype, closed(spec.shape), kind=spec.kind, element_kind=spec.element_kind)
                    for spec in key
                ],
            )
        return dict(zip(self._model.inputs, self._closed[1], strict=True))


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
