"""Weights in fewer bits: a constant becomes a smaller one, and a layer that makes floats of it.

That layer is a DequantizeLinear, or a Cast for float16, so that every backend and every other runtime can run it. It
has the constant's old name. A worker runs it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from perframe.errors import ModelError
from perframe.ir import Array, Layer, Model, Value
from perframe.passes.match import constant_of
from perframe.quantization.numbers import Scales, asymmetric, best_symmetric, rounded, symmetric
from perframe.tensor import DataType

LEAST_ELEMENTS = 256  # smaller constants stay: the new layer would take as many bytes as it saves
BLOCK_SIZE = 32


@dataclass(frozen=True)
class Role:
    """A layer's input that holds weights: the axis of its columns, which have a scale each, and that of its rows."""

    index: int
    columns: int
    rows: int


_RECURRENT = [Role(1, 1, 2), Role(2, 1, 2)]
ROLES: dict[str, Callable[[Layer], list[Role]]] = {
    "Conv": lambda _layer: [Role(1, 0, 1)],
    "ConvTranspose": lambda _layer: [Role(1, 1, 0)],
    "MatMul": lambda _layer: [Role(1, -1, -2), Role(0, -2, -1)],
    "Gemm": lambda layer: [Role(1, 0, 1) if layer.transB else Role(1, 1, 0)],
    "Gather": lambda layer: [Role(0, 0, -1)] if layer.axis == 0 else [],
    "LSTM": lambda _layer: _RECURRENT,
    "GRU": lambda _layer: _RECURRENT,
    "RNN": lambda _layer: _RECURRENT,
}


@dataclass(frozen=True)
class Weights:
    """A constant that a layer multiplies, or chooses rows of. Its axes count from 0."""

    value: Value
    values: Array
    columns: int
    rows: int
    layer: Layer

    @property
    def name(self) -> str:
        """The name of the constant."""
        return self.value.name


@dataclass(frozen=True)
class Store:
    """Where the layers and constants of a model's quantized weights go."""

    model: Model
    block_size: int
    per_tensor: bool

    def layer(self, op: str, name: str, inputs: list[Value], output: Value, **attributes: object) -> Layer:
        """Return a layer of one output."""
        return Layer(op, f"{name}/{op}", inputs, [output], dict(attributes))

    def constant(self, name: str, value: Array) -> Value:
        """Return a new constant."""
        return self.model.add_constant(name, np.asarray(value))


Format = Callable[[Store, Weights], list[Layer]]


def _float16(store: Store, weights: Weights) -> list[Layer]:
    with np.errstate(over="ignore"):
        values = weights.values.astype(np.float16)
    if not np.isfinite(values).all():
        largest = np.abs(weights.values).max()
        raise ModelError(
            f"layer {weights.layer.name!r} ({weights.layer.op}): its weights {weights.name!r} reach {largest:.4g}, and "
            "float16 ends at 65504: exclude the layer, or choose int8"
        )
    small = store.constant(f"{weights.name}/float16", values)
    return [store.layer("Cast", weights.name, [small], weights.value, to=DataType.FLOAT32)]


def _bytes(dtype: DataType) -> Format:
    """Integers with a scale for each column, or for the tensor; uint8 has zero points too."""

    def make(store: Store, weights: Weights) -> list[Layer]:
        axes = tuple(axis for axis in range(weights.values.ndim) if store.per_tensor or axis != weights.columns)
        low, high = weights.values.min(axes, keepdims=True), weights.values.max(axes, keepdims=True)
        signed = dtype is DataType.INT8
        scales = symmetric(np.maximum(-low, high), dtype) if signed else asymmetric(low, high, dtype)
        return dequantized(store, weights, scales, dtype)

    return make


def dequantized(store: Store, weights: Weights, scales: Scales, dtype: DataType) -> list[Layer]:
    """Return the layer that makes a constant of integers. The scales broadcast with the values."""
    whole = scales.scale.size == 1
    inputs = [
        store.constant(f"{weights.name}/{dtype}", rounded(weights.values, scales, dtype)),
        store.constant(f"{weights.name}/scale", scales.scale.reshape(() if whole else -1)),
    ]
    if scales.zero is not None:
        inputs.append(store.constant(f"{weights.name}/zero", scales.zero.reshape(() if whole else -1)))
    attributes = {} if whole else {"axis": weights.columns}
    return [store.layer("DequantizeLinear", weights.name, inputs, weights.value, **attributes)]


def _int4(store: Store, weights: Weights) -> list[Layer]:
    """Blocks of rows with a scale each. The weights of a convolution become rows of one axis, which blocks can fill."""
    values, axis, dtype = weights.values, weights.rows, DataType.INT4
    spreads = weights.layer.op in ("Conv", "ConvTranspose") and values.ndim > 2
    if spreads:
        values, axis = values.reshape(len(values), -1), 1
    moved = np.moveaxis(values, axis, -1)
    length = moved.shape[-1]
    block = min(store.block_size, length)
    padded = np.zeros((*moved.shape[:-1], -(-length // block) * block), np.float32)
    padded[..., :length] = moved
    blocks = padded.reshape(*moved.shape[:-1], -1, block)
    scales = best_symmetric(blocks, dtype, -1)
    whole = rounded(blocks, scales, dtype).reshape(padded.shape)[..., :length]
    inputs = [
        store.constant(f"{weights.name}/int4", np.ascontiguousarray(np.moveaxis(whole, -1, axis))),
        store.constant(f"{weights.name}/scale", np.ascontiguousarray(np.moveaxis(scales.scale[..., 0], -1, axis))),
    ]
    if not spreads:
        made = store.layer("DequantizeLinear", weights.name, inputs, weights.value, axis=axis, block_size=block)
        return [made]
    matrix = Value(f"{weights.name}/matrix")
    shape = store.constant(f"{weights.name}/shape", np.array(weights.values.shape, np.int64))
    return [
        store.layer("DequantizeLinear", weights.name, inputs, matrix, axis=axis, block_size=block),
        store.layer("Reshape", weights.name, [matrix, shape], weights.value),
    ]


FORMATS: dict[str, Format] = {
    "float16": _float16,
    "uint8": _bytes(DataType.UINT8),
    "int8": _bytes(DataType.INT8),
    "int4": _int4,
}


def weights_of(layer: Layer) -> Iterator[Weights]:
    """Yield the constants of float32 that a layer multiplies. Raises ModelError if they are not finite."""
    roles = ROLES.get(layer.op)
    for role in roles(layer) if roles is not None else ():
        value = layer.inputs[role.index] if role.index < len(layer.inputs) else None
        values = constant_of(value)
        if value is None or values is None or values.dtype != np.float32 or values.ndim < 2 or not values.size:
            continue
        if value.is_output:
            continue
        if not np.isfinite(values).all():
            raise ModelError(f"layer {layer.name!r} ({layer.op}): its weights {value.name!r} hold NaN or infinity")
        yield Weights(value, values, role.columns % values.ndim, role.rows % values.ndim, layer)


def quantize_weights(model: Model, kind: str, exclude: set[str], per_tensor: bool, block_size: int) -> int:
    """Replace the weights of a model and of its bodies in place, and return how many were replaced.

    `kind` is one of FORMATS. Raises ModelError for weights that it cannot hold.
    """
    store, made, count = Store(model, block_size, per_tensor), list[Layer](), 0
    kept = {value for layer in model.layers if layer.name in exclude for value in layer.operands}
    for layer in model.layers:
        for weights in weights_of(layer):
            if weights.values.size >= LEAST_ELEMENTS and weights.value not in kept:
                made += FORMATS[kind](store, weights)
                weights.value.constant = None
                count += 1
        for body in layer.inner_models.values():
            count += quantize_weights(body, kind, exclude, per_tensor, block_size)
    model.layers = [*made, *model.layers]
    return count
