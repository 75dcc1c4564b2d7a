"""Sequences and optionals on the host: lists of tensors, or None. Their specs have the elements' dtype and no shape."""

from __future__ import annotations

from typing import Any

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import layer
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.tensor import DataType


@layer(on_host=True)
def SequenceConstruct(*inputs: PartialTensor) -> PartialTensor:
    return _sequence_of(*inputs)


def _sequence_of(*inputs: PartialTensor) -> PartialTensor:
    """A sequence with the values of these inputs. Raises InferenceError if they have different dtypes."""
    dtypes = list(dict.fromkeys(one.dtype for one in inputs))
    if len(dtypes) > 1:
        raise InferenceError(f"a sequence holds tensors of one dtype, and these have {', '.join(map(str, dtypes))}")
    return PartialTensor(dtypes[0], kind="sequence")


@layer(on_host=True)
def SequenceEmpty(*, dtype: DataType = DataType.FLOAT32) -> PartialTensor:
    return PartialTensor(dtype, kind="sequence")


@layer(on_host=True)
def SequenceAt(sequence: PartialTensor, position: PartialTensor) -> PartialTensor:
    return PartialTensor(sequence.dtype)


@layer(on_host=True)
def SequenceInsert(
    sequence: PartialTensor, tensor: PartialTensor, position: PartialTensor | None = None
) -> PartialTensor:
    return _sequence_of(sequence, tensor)


@layer(on_host=True)
def SequenceErase(sequence: PartialTensor, position: PartialTensor | None = None) -> PartialTensor:
    return PartialTensor(sequence.dtype, kind="sequence")


@layer(on_host=True)
def SequenceLength(sequence: PartialTensor) -> PartialTensor:
    return PartialTensor(DataType.INT64, DynamicTensorShape(()))


@layer(on_host=True)
def ConcatFromSequence(sequence: PartialTensor, *, axis: int, new_axis: Flag = 0) -> PartialTensor:
    return PartialTensor(sequence.dtype)


@layer(on_host=True)
def SplitToSequence(
    x: PartialTensor, split: PartialTensor | None = None, *, axis: int = 0, keepdims: Flag = 1
) -> PartialTensor:
    return PartialTensor(x.dtype, kind="sequence")


@layer(on_host=True)
def Optional(x: PartialTensor | None = None, *, type: Any = None) -> PartialTensor:
    if x is None:
        return PartialTensor(DataType.FLOAT32, kind="optional")
    return PartialTensor(x.dtype, x.shape, kind="optional", element_kind=x.kind)


@layer(on_host=True)
def OptionalHasElement(x: PartialTensor | None = None) -> PartialTensor:
    return PartialTensor(DataType.BOOL, DynamicTensorShape(()))


@layer(on_host=True)
def OptionalGetElement(x: PartialTensor) -> PartialTensor:
    return PartialTensor(x.dtype, x.shape, kind=x.element_kind if x.kind == "optional" else x.kind)


@layer(on_host=True)
def Pass(x: PartialTensor) -> PartialTensor:
    return PartialTensor(x.dtype, x.shape, kind=x.kind, element_kind=x.element_kind)
