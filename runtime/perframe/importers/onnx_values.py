"""What an ONNX file says of values: declarations, arrays and attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import ModelError
from perframe.importers.external_data import EXTERNAL
from perframe.importers.onnx_messages import Message, NeedsLibrary
from perframe.importers.onnx_weights import listed_array, plain_array
from perframe.ir import Value
from perframe.ir.sizes.partial import Dim, DynamicTensorShape
from perframe.tensor import DataType

if TYPE_CHECKING:
    import onnx

Array = NDArray[Any]

UNKNOWN = "?"  # an unknown dim in ONNX's own text format
_MAX_NESTING = 8  # sequences of sequences
# ONNX's numbers of the element types, from 1 on, and the fields of an attribute's value
DATA_TYPES = (
    *("FLOAT32", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL", "FLOAT16", "FLOAT64"),
    *("UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2"),
    *("FLOAT8E5M2FNUZ", "UINT4", "INT4", "FLOAT4E2M1", "FLOAT8E8M0", "UINT2", "INT2"),
)
FLOAT = 1
_FIELDS = dict(enumerate(("f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "graphs"), 1))
_FIELDS |= {11: "sparse_tensor", 12: "sparse_tensors", 13: "tp", 14: "type_protos"}


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


def joined(inferred: DynamicTensorShape | None, said: DynamicTensorShape | None) -> DynamicTensorShape | None:
    """Return the inferred shape of an output. Where a dim is not a number, the dim that the file declares counts."""
    if inferred is None or said is None:
        return inferred if said is None else said
    if len(inferred) != len(said):
        return inferred
    dims = (know if isinstance(know, int) else say or know for know, say in zip(inferred, said, strict=True))
    return DynamicTensorShape(dims)


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
    if not 0 < number <= len(DATA_TYPES):
        raise ModelError(f"ONNX defines no element type {number}")
    return DataType[DATA_TYPES[number - 1]]


def array_of(tensor: onnx.TensorProto, where: str) -> Array:
    """Return a tensor of the graph `where` as an array. Raises ModelError."""
    if tensor.data_location == EXTERNAL:  # `read_external_data` has read all others
        raise ModelError(f"{where}: tensor {tensor.name!r} lies in another file")
    if min(tensor.dims, default=0) < 0:
        raise ModelError(f"{where}: tensor {tensor.name!r} has a negative dim: {list(tensor.dims)}")
    try:
        plain = None if tensor.HasField("segment") else plain_array(tensor.raw_data, tensor.data_type, tensor.dims)
        array = _by_library(tensor) if plain is None else plain
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{where}: initializer {tensor.name!r} cannot be read: {error}") from None
    return array.astype(object) if array.dtype.kind in "US" else array


def _by_library(tensor: onnx.TensorProto) -> Array:
    """Return a tensor whose values are not raw data, or of an unusual element type. Raises NeedsLibrary."""
    if isinstance(tensor, Message):
        listed = None if tensor.raw_data else listed_array(tensor, tensor.data_type, tensor.dims)
        if listed is None:
            raise NeedsLibrary
        return listed
    from onnx import numpy_helper  # imported late: it takes longer than loading a small model

    array: Array = numpy_helper.to_array(tensor)
    return array


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
    """Return the value of an attribute. Raises ModelError, NeedsLibrary."""
    if attribute.ref_attr_name:
        raise ModelError(f"{where}: attribute {attribute.name!r} refers to one of a function, outside of any")
    field = _FIELDS.get(attribute.type, "")
    if field in ("f", "i", "g", "tp"):
        return getattr(attribute, field)
    if field == "s":
        return attribute.s.decode("utf-8", "replace")
    if field == "t":
        return array_of(attribute.t, where)
    if field == "sparse_tensor":
        return dense(attribute.sparse_tensor, where)
    if field == "strings":
        return tuple([item.decode("utf-8", "replace") for item in attribute.strings])
    return tuple(getattr(attribute, field)) if field else None
