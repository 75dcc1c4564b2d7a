"""An operator on its way to layers: what its adapter asks for, and adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perframe.importers.litert.file import Operation, TensorQuantization
from perframe.importers.litert.tensors import Array, GraphTensors, plain_name
from perframe.importers.node import LayerMaker
from perframe.ir import Value
from perframe.ir.shape_arithmetic import listed
from perframe.ir.sizes.partial import Dim
from perframe.tensor import DataType

ACTIVATIONS = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}  # RELU, RELU_N1_TO_1, RELU6
TANH = 4


class LiteRTNode(LayerMaker):
    """One operator of a graph. With `exact` its adapter gets quantized numbers unchanged.

    `inline(index, inputs, builder)` imports another graph of the file for these inputs, which are stored values, and
    returns its outputs. Without a builder, its layers join those around the operator.
    """

    def __init__(
        self, tensors: GraphTensors, operation: Operation, exact: bool, inline: Callable[..., list[Value]]
    ) -> None:
        outputs = [index for index in operation.outputs if index >= 0]
        named = tensors.graph.tensors[outputs[0]].name if outputs else ""
        super().__init__(tensors.builder, plain_name(named) or operation.name)
        self.tensors, self.operation, self.exact, self.inline = tensors, operation, exact, inline

    # --- layers ---

    def first(self, value: Value) -> Value:
        """Return a value with its last dim as the second."""
        rank = self.rank(value)
        return self("Transpose", value, perm=(0, rank - 1, *range(1, rank - 1)))

    def last(self, value: Value) -> Value:
        """Return a value with its second dim as the last."""
        return self("Transpose", value, perm=(0, *range(2, self.rank(value)), 1))

    # --- inputs and outputs ---

    def has(self, index: int) -> bool:
        """Whether the operator has this input."""
        return index < len(self.operation.inputs) and self.operation.inputs[index] >= 0

    def x(self, index: int) -> Value:
        """Return an input: of floats, unless the adapter gets quantized ones unchanged."""
        return self.raw(index) if self.exact else self.tensors.real(self._tensor(index))

    def raw(self, index: int) -> Value:
        """Return an input in its stored form."""
        return self.tensors.stored(self._tensor(index))

    def all(self) -> list[Value]:
        """Return all inputs."""
        return [self.x(index) for index in range(len(self.operation.inputs))]

    def optional(self, index: int) -> Value | None:
        """Return an input, or None if it is absent."""
        return self.x(index) if self.has(index) else None

    def weights(self, index: int, perm: tuple[int, ...]) -> Value:
        """Return an input with its dims in another order, and with its quantization."""
        return self.tensors.arranged(self._tensor(index), perm)

    def _tensor(self, index: int) -> int:
        if not self.has(index):
            raise NotImplementedError(f"it has no input {index}")
        return self.operation.inputs[index]

    def quantization(self, index: int) -> TensorQuantization | None:
        """Return the quantization of an output."""
        return self.tensors.quantization(self.operation.outputs[index])

    def output_dtype(self) -> DataType:
        """Return the dtype that the file declares for the first output. Quantized outputs are real at first."""
        tensor = self.operation.outputs[0]
        if self.tensors.quantization(tensor) is not None and not self.exact:
            return DataType.FLOAT32
        return self.tensors.dtype(tensor)

    def output_shape(self) -> tuple[Dim, ...]:
        """Return the shape that the file declares for the first output."""
        return self.tensors.graph.tensors[self.operation.outputs[0]].shape

    def stored(self, value: Value, tensor: int) -> Value:
        """Return the stored form of a result: quantized if the tensor is, and of its dtype."""
        scales, tensors = self.tensors.quantization(tensor), self.tensors
        if scales is not None and value.spec.dtype is DataType.FLOAT32:
            zero = tensors.zero(scales, tensor)
            return self("QuantizeLinear", value, tensors.scale(scales), zero, axis=scales.axis)
        dtype = tensors.dtype(tensor)
        complexes = (DataType.COMPLEX64, DataType.COMPLEX128)  # they are pairs of floats in layers
        return value if dtype in complexes else self.cast(value, dtype)

    # --- facts ---

    def option(self, name: str, default: Any = 0) -> Any:
        """Return an option by its name in the schema."""
        return self.operation.options.get(name, default)

    def value(self, index: int) -> Array:
        """Return the value of an input. Raises NotImplementedError if it is not known."""
        found = self.known(self.raw(index))
        if found is None:
            raise NotImplementedError(f"its input {index} ({self.raw(index).name!r}) is not a constant")
        return found

    def entries(self, index: int) -> list[int]:
        """Return the entries of an input that is a shape, 0 for an unknown first one: a batch.

        Raises NotImplementedError if another entry is not known.
        """
        spec = self.raw(index).spec
        found = listed(spec) if spec.value is None else tuple(int(entry) for entry in spec.value.reshape(-1))
        if found is None or not all(isinstance(entry, int) for entry in found[1:]):
            raise NotImplementedError(f"not all entries of its input {index} ({self.raw(index).name!r}) are known")
        return [entry if isinstance(entry, int) else 0 for entry in found]

    def axes(self, index: int) -> list[int]:
        """Return the value of an input that lists integers. Raises NotImplementedError if it is not known."""
        return [int(number) for number in self.value(index).reshape(-1)]

    def refuse(self, *options: str) -> None:
        """Raise NotImplementedError if one of these options is set."""
        for name in options:
            if self.option(name):
                raise NotImplementedError(f"its option {name}={self.option(name)!r} is not supported")

    def activated(self, value: Value) -> Value:
        """Return a value after the activation that the operator's options fuse."""
        kind = self.option("FusedActivationFunction")
        if kind in ACTIVATIONS:
            return self.clipped(value, *ACTIVATIONS[kind])
        if kind == TANH:
            return self("Tanh", value)
        if kind:
            raise NotImplementedError(f"the fused activation {kind} is not supported")
        return value

    def clipped(self, value: Value, low: float | None, high: float | None) -> Value:
        """Return a value within limits."""
        if (low, high) == (0.0, None):
            return self("Relu", value)
        bounds = [None if limit is None else self.number(limit, value) for limit in (low, high)]
        return self("Clip", value, *bounds)
