"""What an ONNX file says of values: declarations, arrays and attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from perframe.errors import ModelError
from perframe.importers.onnx_weights import plain_array
from perframe.ir import Value
from perframe.ir.sizes.partial import Dim, DynamicTensorShape
from perframe.tensor import DataType

Array = NDArray[Any]

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


def array_of(tensor: onnx.TensorProto, where: str) -> Array:
    """Return a tensor of the graph `where` as an array. Raises ModelError."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:  # `read_external_data` has read all others
        raise ModelError(f"{where}: tensor {tensor.name!r} lies in another file")
    if min(tensor.dims, default=0) < 0:
        raise ModelError(f"{where}: tensor {tensor.name!r} has a negative dim: {list(tensor.dims)}")
    try:
        plain = None if tensor.HasField("segment") else plain_array(tensor.raw_data, tensor.data_type, tensor.dims)
        array = numpy_helper.to_array(tensor) if plain is None else plain
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{where}: initializer {tensor.name!r} cannot be read: {error}") from None
    return array.astype(object) if array.dtype.kind in "US" else array


def dense(sparse: onnx.SparseTensorProto, where: str) -> Array:
    """Return a sparse tensor as an array with its zeros. Its indices are flat, or one row of indices a value."""
    name, values, dims = sparse.values.name, array_of(sparse.values, where), tuple(sparse.dims)
    try:
        indices = array_of(sparse.indices, where)
        result = np.zeros(dims, values.dtype)
        listed = indices.ndim == 1
        flat = np.ravel_multi_index(*(((indices,), (result.size,)) if listed else (tuple(indices.T), dims)))
        result.reshape(-1)[flat] = values
    except (ValueError, IndexError, TypeError, MemoryError) as error:
        raise ModelError(f"{where}: sparse tensor {name!r} of dims {list(dims)} cannot be read: {error}") from None
    return result


def attribute_of(attribute: onnx.AttributeProto, where: str) -> Any:
    """Return the value of an attribute. Raises ModelError."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, int | float):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, onnx.TensorProto):
        return array_of(value, where)
    if isinstance(value, onnx.SparseTensorProto):
        return dense(value, where)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple([item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in value])
    return value
