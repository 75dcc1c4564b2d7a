"""Values and weights as bytes, with scales that calibration data has given.

Each value that a chosen layer reads is quantized and dequantized where it is made (QDQ). The dequantized value has the
old name, so that two models can be compared value by value. Backends and other runtimes find the pattern: a product
between two such pairs is one of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perframe.ir import Array, Layer, Model, Value
from perframe.passes.match import constant_of
from perframe.quantization.choosing import Choice, data_of
from perframe.quantization.numbers import Scales, asymmetric, symmetric
from perframe.quantization.ranges import Histogram, joined, range_of
from perframe.quantization.weights import Store, Weights, dequantized, weights_of
from perframe.tensor import DataType

_MOST_BIAS = 2.0**30  # of an int32; sums need room beside it


def value_scales(choice: Choice, found: Mapping[str, Histogram], method: str, dtype: DataType) -> dict[Value, Scales]:
    """The scale and zero point of each value; those of a group are the same object."""
    scales = dict[Value, Scales]()
    for group in choice.groups:
        low, high = range_of(joined([found[value.name] for value in group]), method, dtype)
        if dtype is DataType.INT8:  # symmetric: the zero point is 0
            made = Scales(symmetric(max(-low, high), dtype).scale, np.zeros((), np.int8))
        else:
            made = asymmetric(low, high, dtype)
        scales |= dict.fromkeys(group, made)
    return scales


def insert(model: Model, choice: Choice, scales: Mapping[Value, Scales], per_tensor: bool) -> None:
    """Quantize the values and the products of a choice in place."""
    insertion = _Insertion(model, choice, scales, per_tensor)
    weights = [made for layer in choice.products for made in insertion.product(layer)]
    insertion.values()
    model.layers = [*weights, *model.layers]


class _Insertion:
    """The new layers of a model."""

    def __init__(self, model: Model, choice: Choice, scales: Mapping[Value, Scales], per_tensor: bool) -> None:
        self._model, self._choice, self._scales = model, choice, scales
        self._store = Store(model, 0, per_tensor)
        self._parameters: dict[int, list[Value]] = {}  # a scale and a zero point, by the id of a group's

    # --- values ---

    def values(self) -> None:
        """Put a pair of layers after each value."""
        at_first = list[Layer]()
        for value in self._choice.values:
            maker = value.producer
            if maker is None or value.is_output:  # the caller's value stays, and chosen layers read another
                real, target = value, Value(f"{value.name}/dequantized")
                for layer in self._choice.layers:
                    if value in data_of(layer):
                        layer.replace_input(value, target)
            else:
                real, target = Value(f"{value.name}/real"), value
                maker.outputs = [real if one is value else one for one in maker.outputs]
            pair = self._pair(value, real, target)
            if maker is None:
                at_first += pair
            else:
                self._model.insert(*pair, after=maker)
        self._model.layers = [*at_first, *self._model.layers]

    def _pair(self, value: Value, source: Value, target: Value) -> list[Layer]:
        given, whole = self._given(value), Value(f"{value.name}/bytes")
        return [
            Layer("QuantizeLinear", f"{value.name}/QuantizeLinear", [source, *given], [whole]),
            Layer("DequantizeLinear", f"{value.name}/DequantizeLinear", [whole, *given], [target]),
        ]

    def _given(self, value: Value) -> list[Value]:
        """The scale and the zero point of a value. A group shares them."""
        scales = self._scales[value]
        if id(scales) not in self._parameters:
            assert scales.zero is not None
            given = (("scale", scales.scale), ("zero", scales.zero))
            self._parameters[id(scales)] = [self._store.constant(f"{value.name}/{what}", one) for what, one in given]
        return self._parameters[id(scales)]

    # --- products ---

    def product(self, layer: Layer) -> list[Layer]:
        """Return the layers that make the weights and the bias of a product from integers.

        A MatMul's bias stays real: ONNX has none, and an Add follows in a file. So does that of a second product with
        the same weights.
        """
        made, data = list[Layer](), self._scales[layer.input(0)].scale
        bias = constant_of(layer.inputs[2]) if layer.inputs[2:] and layer.op != "MatMul" else None
        for weights in weights_of(layer):
            if bias is not None and bias.shape != weights.values.shape[weights.columns : weights.columns + 1]:
                bias = None
            scales = _weight_scales(weights, self._store.per_tensor, data, bias)
            made += dequantized(self._store, weights, scales, DataType.INT8)
            weights.value.constant = None
            if bias is not None:
                made.append(self._bias(layer, bias, (scales.scale * data).reshape(-1)))
        return made

    def _bias(self, layer: Layer, bias: Array, unit: Array) -> Layer:
        """Return the layer that makes a bias from numbers in the unit of the sums. The product reads it."""
        name, real = layer.input(2).name, Value(f"{layer.name}/bias")
        whole = np.rint(bias.astype(np.float64) / unit).astype(np.int32)
        one = unit.size == 1
        inputs = [
            self._store.constant(f"{name}/int32", whole),
            self._store.constant(f"{name}/scale", unit.reshape(()) if one else unit),
        ]
        layer.set_input(2, real)
        return Layer("DequantizeLinear", f"{real.name}/DequantizeLinear", inputs, [real], {} if one else {"axis": 0})


def _weight_scales(weights: Weights, per_tensor: bool, data: Array, bias: Array | None) -> Scales:
    """Scales of the columns. A column of tiny weights gets a larger one, if its bias would not fit into an int32."""
    axes = tuple(axis for axis in range(weights.values.ndim) if per_tensor or axis != weights.columns)
    scale = symmetric(np.abs(weights.values).max(axes, keepdims=True), DataType.INT8).scale
    if bias is not None:
        least = np.abs(bias) / (_MOST_BIAS * data)
        least = least.max() if per_tensor else least.reshape(scale.shape)
        scale = np.maximum(scale, least).astype(np.float32)
    return Scales(scale, None)
