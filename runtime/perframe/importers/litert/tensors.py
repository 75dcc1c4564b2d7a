"""The tensors of a LiteRT graph that is being imported, and their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import ModelError
from perframe.importers.builder import Builder
from perframe.importers.litert.constants import constant_of, data_type
from perframe.importers.litert.file import LiteRTFile, Operation, TensorQuantization
from perframe.ir import Value
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.tensor import DataType

Array = NDArray[Any]

QUANTIZED = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.INT32, DataType.INT64)


def plain_name(name: str) -> str:
    """Return a name for layers and values: the converter joins the names of all operators that it fused by ";"."""
    return name.partition(";")[0]


class GraphTensors:
    """The tensors of graph `index` of a file, and the value of each that was imported into a builder.

    `arrays` keeps the constants of all graphs of the file, by graph and tensor.
    """

    def __init__(self, file: LiteRTFile, index: int, builder: Builder, arrays: dict[tuple[int, int], Array]) -> None:
        self.file, self.index, self.builder, self.arrays = file, index, builder, arrays
        self.graph = file.graphs[index]
        self.values: dict[int, Value] = {}

    def dtype(self, tensor: int) -> DataType:
        """Return the dtype of a tensor."""
        return data_type(self.graph.tensors[tensor], self.file.name)

    def quantization(self, tensor: int) -> TensorQuantization | None:
        """Return how a tensor is quantized; None if it is not."""
        info = self.graph.tensors[tensor] if tensor >= 0 else None
        if info is None or info.quantization is None or self.dtype(tensor) not in QUANTIZED:
            return None
        return info.quantization

    def is_exact(self, operation: Operation) -> bool:
        """Whether an operator that only moves elements may move quantized numbers. An activation needs real ones."""
        if operation.options.get("FusedActivationFunction"):
            return not any(self.quantization(i) is not None for i in operation.inputs if i >= 0)
        scales = [self.quantization(i) for i in (*operation.inputs, *operation.outputs) if i >= 0]
        found = [one for one in scales if one is not None]
        made = [self.quantization(i) for i in operation.outputs]
        if not found or made[0] is None:
            return not found
        return all(
            one.scale.size == 1
            and np.array_equal(one.scale, found[0].scale)
            and np.array_equal(one.zero, found[0].zero)
            for one in found
        )

    def array(self, tensor: int) -> Array | None:
        """Return the value of a constant tensor; None for any other."""
        key = self.index, tensor
        if key not in self.arrays:
            found = constant_of(self.graph.tensors[tensor], self.dtype(tensor), self.file.name)
            if found is None:
                return None
            self.arrays[key] = found
        return self.arrays[key]

    def stored(self, tensor: int) -> Value:
        """Return a tensor's value as the file stores it. Raises ModelError if nothing makes it."""
        found = self.values.get(tensor)
        if found is None:
            value, info = self.array(tensor), self.graph.tensors[tensor]
            if value is None:
                raise ModelError(f"{self.file.name}: {info.name!r} is read, and no earlier operator makes it")
            copied = np.array(value)  # not a view, which would keep the whole file in memory
            found = self.values[tensor] = self.builder.constant(copied, like=plain_name(info.name) or "constant")
        return found

    def real(self, tensor: int) -> Value:
        """Return a tensor's floats."""
        info, scales = self.graph.tensors[tensor], self.quantization(tensor)
        return (
            self.stored(tensor) if scales is None else self._dequantized(self.stored(tensor), info.name, scales, tensor)
        )

    def arranged(self, tensor: int, perm: tuple[int, ...]) -> Value:
        """Return a tensor's floats with its dims in another order."""
        info, value, scales = self.graph.tensors[tensor], self.array(tensor), self.quantization(tensor)
        if tensor in self.values and self.values[tensor].constant is None:
            value = None
        if value is None:
            return self.builder.layer("Transpose", info.name, [self.real(tensor)], 1, info.name, {"perm": perm})[0]
        if len(perm) != value.ndim:
            raise ValueError(f"{info.name!r} of shape {value.shape} must have {len(perm)} dims")
        key = ("arranged", self.index, tensor, perm)
        if key not in self.builder.made:
            moved = np.array(value.transpose(perm), order="C")
            made = self.builder.constant(moved, like=plain_name(info.name) or "constant")
            if scales is not None:
                turned = TensorQuantization(
                    scales.scale, scales.zero, perm.index(scales.axis) if scales.scale.size > 1 else 0
                )
                made = self._dequantized(made, info.name, turned, tensor)
            self.builder.made[key] = made
        return self.builder.made[key]

    def _dequantized(self, value: Value, like: str, scales: TensorQuantization, tensor: int) -> Value:
        key = ("real", value, scales.scale.tobytes(), scales.zero.tobytes(), scales.axis)
        if key not in self.builder.made:
            inputs = [value, self.scale(scales), self.zero(scales, tensor)]
            name = f"{plain_name(like)}:real"
            made = self.builder.layer("DequantizeLinear", name, inputs, 1, name, {"axis": scales.axis})
            self.builder.made[key] = made[0]
        return self.builder.made[key]

    def scale(self, scales: TensorQuantization) -> Value:
        """Return the scales as a constant."""
        return self.builder.constant(_whole(scales.scale))

    def zero(self, scales: TensorQuantization, tensor: int) -> Value:
        """Return the zero points as a constant of the dtype of a tensor. Raises ModelError if they do not fit it."""
        dtype = self.dtype(tensor).numpy
        kind = np.iinfo(dtype)
        if scales.zero.min() < kind.min or scales.zero.max() > kind.max:
            raise ModelError(
                f"{self.file.name}: {self.graph.tensors[tensor].name!r} has zero points outside of {dtype}"
            )
        return self.builder.constant(_whole(scales.zero).astype(dtype))

    def output(self, tensor: int, name: str) -> Value:
        """Give the value of an output tensor its name, and return it as an output of the model."""
        info, builder = self.graph.tensors[tensor], self.builder
        value = self.stored(tensor)
        if self.dtype(tensor) in (DataType.COMPLEX64, DataType.COMPLEX128):
            raise ModelError(f"{self.file.name}: output {name!r} is complex, which no layer makes")
        captured = any(value in layer.operands for layer in builder.layers if "captures" in layer.attributes)
        taken = [other for other in self.graph.outputs if self.values.get(other) is value]
        if value.producer is None or len(taken) > 1 or captured:
            (value,) = builder.layer("Identity", name, [value], 1, name, {})
            self.values[tensor] = value
        value.name, spec = name, value.spec
        open_ = any(None in self.graph.tensors[index].shape for index in self.graph.inputs)
        value.declared = spec.with_shape(spec.shape if open_ else _joined(spec, info.shape))
        return value


def _whole(values: Array) -> Array:
    """Return numbers for the axes of a tensor: a bare number if there is only one."""
    return values.reshape(()) if values.size == 1 else values


def _joined(spec: PartialTensor, said: Sequence[int | None]) -> DynamicTensorShape:
    """Return the inferred shape of an output. Where a dim is not inferred, the dim that the file declares counts."""
    if spec.shape is None:
        return DynamicTensorShape(said)
    if len(spec.shape) != len(said):
        return spec.shape
    return DynamicTensorShape(know if know is not None else say for know, say in zip(spec.shape, said, strict=True))
