"""Layers of float16 or bfloat16 become float32 layers between casts.

Then all later passes and kernels apply. Values between layers keep float32's precision and range, except where a GPU
stores them as halves. A layer is widened if it infers the same shapes from float32. The others read and make the file's
dtype: BitCast, casts to float16, and casts to integers, which truncate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perframe.errors import PerframeError
from perframe.ir import Array, Evaluate, Layer, Model, Value
from perframe.ir.sizes.partial import PartialTensor
from perframe.passes.match import is_near_halves
from perframe.tensor import DataType

HALF, WIDE = DataType.FLOAT16, DataType.FLOAT32
NARROW = (HALF, DataType.BFLOAT16)
NARROW_BYTES = 2


def has_narrow_floats(model: Model) -> bool:
    """Whether the model may compute in float16 or bfloat16. It asks for no inference."""
    if any(value.declared is not None and value.declared.dtype in NARROW for value in model.inputs):
        return True
    return any(_mentions_narrow(layer) for layer in model.layers)


def _mentions_narrow(layer: Layer) -> bool:
    if any(attribute in NARROW for attribute in layer.attributes.values() if isinstance(attribute, DataType)):
        return True
    given = [value.constant for value in layer.operands if value.constant is not None]
    given += [attribute for attribute in layer.attributes.values() if isinstance(attribute, np.ndarray)]
    halves = any([array.dtype.itemsize == NARROW_BYTES and array.dtype.name in NARROW for array in given])
    return halves and not _is_conversion(layer)


def _is_conversion(layer: Layer) -> bool:
    """Whether it casts a constant. `fold_weights` folds it, without a word on how a GPU stores the result."""
    return layer.op == "Cast" and layer.input(0).constant is not None


def run(model: Model, evaluate: Evaluate) -> int:
    """Widen, and return the number of layers that are of float32 now."""
    if not has_narrow_floats(model):
        return 0
    model.infer()
    return _Widening(model).run()


class _Widening:
    """The values of a model before and after the pass."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._before = {value: value.spec for layer in model.layers for value in (*layer.operands, *layer.results)}
        self._widened: set[Value] = set()  # values that are of float32 now
        self._wide: dict[Value, Value] = {}  # by a value that stays narrow: the same numbers in float32
        self._narrowed: dict[Value, Value] = {}  # by a widened value: the same numbers in the file's dtype

    def run(self) -> int:
        """Widen, and return the number of layers that are of float32 now."""
        count = 0
        for layer in self._model.walk():
            results = self._results(layer)
            if results is not None:
                self._widen(layer, results)
                count += 1
                continue
            for value in layer.operands:
                if value in self._widened:
                    layer.replace_input(value, self._narrow(value, layer))
            for value in (*layer.operands, *layer.results):
                if value in self._before and value not in self._widened and value.spec.dtype is WIDE:
                    value.is_half = False
        if count:
            self._end_outputs()
        return count

    def _is_narrow(self, value: Value | None) -> bool:
        spec = None if value is None else self._before.get(value)
        return spec is not None and spec.kind == "tensor" and spec.dtype in NARROW

    def _results(self, layer: Layer) -> Sequence[PartialTensor] | None:
        """What the layer infers from float32; None if it has to keep the file's dtypes."""
        if layer.declaration.on_host or layer.inner_models or _is_conversion(layer):
            return None
        if self._is_lookup(layer) or self._is_cache(layer):
            return None
        truncates = layer.op == "Cast" and not layer.to.is_float
        if truncates or not any(self._is_narrow(value) for value in layer.operands):
            return None
        try:
            results = layer.infer([None if value is None else self._spec(value) for value in layer.inputs])
        except PerframeError:
            return None
        pairs = zip(layer.outputs, results, strict=False)
        return results if all(value is None or self._fits(value, spec) for value, spec in pairs) else None

    def _is_lookup(self, layer: Layer) -> bool:
        """Whether it reads some elements of a constant, which stays small."""
        first = layer.inputs[0] if layer.family == "gather" else None
        return first is not None and first.constant is not None

    def _is_cache(self, layer: Layer) -> bool:
        """Whether it appends to an input of the model, or replaces rows of it. Other rows of a state stay in place, in
        the file's dtype.
        """
        replaces = layer.op == "TensorScatter" or (layer.op == "ScatterND" and layer.reduction == "none")
        first = layer.inputs[0] if (layer.declaration.joins or replaces) and layer.inputs else None
        return first is not None and first in self._model.inputs and layer.output.is_output

    def _fits(self, value: Value, spec: PartialTensor) -> bool:
        before = self._before[value]
        dtype = WIDE if self._is_narrow(value) else before.dtype
        return spec.kind == before.kind and spec.dtype is dtype and spec.shape == before.shape

    def _spec(self, value: Value) -> PartialTensor:
        if value in self._widened or not self._is_narrow(value):
            return value.spec
        known = value.constant
        return value.spec.with_shape(value.spec.shape, WIDE) if known is None else PartialTensor.of(_widened(known))

    def _widen(self, layer: Layer, results: Sequence[PartialTensor]) -> None:
        for value in layer.operands:
            if self._is_narrow(value) and value not in self._widened:
                layer.replace_input(value, self._widened_twin(value, layer))
        for made, spec in zip(layer.outputs, results, strict=False):
            if made is not None:
                made.spec = spec
                if self._is_narrow(made):
                    made.is_half = self._before[made].dtype is HALF
                    self._widened.add(made)

    def _widened_twin(self, value: Value, reader: Layer) -> Value:
        if value not in self._wide:
            if value.constant is not None:
                made = self._model.add_constant(value.name, _widened(value.constant))
            else:
                made = self._cast(value, WIDE, reader)
            made.is_half = self._before[value].dtype is HALF or is_near_halves(value.constant)
            self._wide[value] = made
        return self._wide[value]

    def _narrow(self, value: Value, reader: Layer) -> Value:
        if value not in self._narrowed:
            self._narrowed[value] = self._cast(value, self._before[value].dtype, reader)
        return self._narrowed[value]

    def _cast(self, value: Value, dtype: DataType, before: Layer) -> Value:
        cast = Layer("Cast", f"{value.name}/{dtype}", [value], [f"{value.name} {dtype}"], {"to": dtype})
        self._model.insert(cast, before=before)
        return cast.output

    def _end_outputs(self) -> None:
        """Make the model's outputs in the file's dtypes."""
        for value in self._model.outputs:
            maker = value.producer
            if value not in self._widened or maker is None:
                continue
            made = Value(f"{value.name} {WIDE}")
            made.is_half = value.is_half
            maker.outputs = [made if one is value else one for one in maker.outputs]
            self._model.replace_uses(value, made)
            cast = Layer("Cast", f"{value.name}/end", [made], [value], {"to": self._before[value].dtype})
            self._model.insert(cast)


def _widened(array: Array) -> Array:
    return np.asarray(array, np.float32)
