"""Declarations of values in ONNX: name, element type and shape."""

from __future__ import annotations

import onnx

from perframe.errors import ModelError
from perframe.model import Value
from perframe.sizes.partial import Dim, DynamicTensorShape
from perframe.tensor import DataType

UNKNOWN = "?"  # an unknown dim in ONNX's own text format
_MAX_NESTING = 8  # sequences of sequences


def declared(info: onnx.ValueInfoProto, bare: bool = False) -> Value:
    """Return a value as the file declares it; `bare` leaves the names of dims out. Raises ModelError."""
    kind = info.type
    if kind.HasField("sequence_type") or kind.HasField("optional_type"):
        what = "sequence" if kind.HasField("sequence_type") else "optional"
        inner = "sequence" if kind.optional_type.elem_type.HasField("sequence_type") else "tensor"
        return Value(info.name, _element_type(info), None, what, inner)
    if not kind.HasField("tensor_type"):
        raise ModelError(f"input or output {info.name!r} is neither tensor, sequence nor optional")
    dtype = data_type(kind.tensor_type.elem_type)
    if not kind.tensor_type.HasField("shape"):
        return Value(info.name, dtype, None)
    dims = [_dim(dim, info.name) for dim in kind.tensor_type.shape.dim]
    if bare:
        dims = [None if isinstance(dim, str) else dim for dim in dims]
    return Value(info.name, dtype, DynamicTensorShape(dims))


def _dim(dim: onnx.TensorShapeProto.Dimension, name: str) -> Dim:
    """Return a dim; None if it is unknown. Exporters also write -1 for an unknown dim."""
    if not dim.HasField("dim_value"):
        return dim.dim_param if dim.dim_param not in ("", UNKNOWN) else None
    if dim.dim_value < -1:
        raise ModelError(f"input or output {name!r} has a dim of {dim.dim_value}, and no dim may be negative")
    return None if dim.dim_value == -1 else int(dim.dim_value)


def _element_type(info: onnx.ValueInfoProto) -> DataType:
    """Return the dtype of the tensors in a sequence or an optional."""
    kind = info.type
    for _ in range(_MAX_NESTING):
        which = kind.WhichOneof("value")
        if which == "tensor_type":
            return data_type(kind.tensor_type.elem_type)
        if which not in ("sequence_type", "optional_type"):
            break
        kind = getattr(kind, which).elem_type
    raise ModelError(f"input or output {info.name!r} is a sequence or an optional without tensors")


def data_type(number: int) -> DataType:
    """Return ONNX's number of an element type as a DataType. Raises ModelError."""
    if number == onnx.TensorProto.STRING:
        return DataType.STRING
    try:
        return DataType.of(onnx.helper.tensor_dtype_to_np_dtype(number))
    except (KeyError, ValueError, TypeError):
        raise ModelError(f"ONNX defines no element type {number}") from None
