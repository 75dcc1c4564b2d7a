"""Mutations of stored tensors: their values, shapes, bytes and locations."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from fuzz.mutations import Random, Subject, entry, mutation, pick, whole


@mutation(5)
def values_of_tensor(subject: Subject, rng: Random) -> str:
    tensor = pick(rng, subject.tensors())
    try:
        array = np.array(numpy_helper.to_array(tensor)) if tensor is not None else None
    except Exception:  # another mutation was here
        return ""
    if array is None or array.dtype.kind not in "iufb" or not array.size:
        return ""
    at = int(rng.integers(array.size))
    array.reshape(-1)[at] = entry(rng, array.dtype, array.reshape(-1)[at])
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return f"{tensor.name} {array.dtype}"


@mutation(3)
def shape_of_tensor(subject: Subject, rng: Random) -> str:
    """The data, too, in some cases."""
    tensor = pick(rng, subject.tensors())
    if tensor is None:
        return ""
    dims = list(tensor.dims)
    if dims and rng.random() < 0.6:
        at = int(rng.integers(len(dims)))
        dims[at] = whole(rng, dims[at])
    elif rng.random() < 0.5:
        dims.insert(0, 1)
    else:
        dims = dims[1:]
    size = np.prod(dims, dtype=float)
    if rng.random() < 0.6 and 0 <= size < 1 << 16 and min(dims, default=0) >= 0:
        try:
            array = np.resize(numpy_helper.to_array(tensor), dims)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        except Exception:  # another mutation was here
            return ""
        return f"{tensor.name} resized to {dims}"
    tensor.dims[:] = dims
    return f"{tensor.name} said to be {dims}"


@mutation(1)
def bytes_of_tensor(subject: Subject, rng: Random) -> str:
    tensor = pick(rng, subject.tensors())
    if tensor is None:
        return ""
    how = int(rng.integers(4))
    if how == 0:
        tensor.data_type = int(rng.integers(0, 30))
    elif how == 1:
        tensor.raw_data = tensor.raw_data[: -int(rng.integers(1, 9))]
    elif how == 2:
        tensor.raw_data = tensor.raw_data + bytes(int(rng.integers(1, 9)))
    else:
        tensor.float_data.append(1.0)
    return f"{tensor.name} {how}"


@mutation(1)
def data_elsewhere(subject: Subject, rng: Random) -> str:
    tensor = pick(rng, subject.tensors())
    if tensor is None or not tensor.raw_data:
        return ""
    subject.files["weights.bin"] = tensor.raw_data
    entries = {"location": pick(rng, ("weights.bin", "weights.bin", "../x", "/etc/passwd", "", "a\0b", "."))}
    if rng.random() < 0.5:
        entries["offset"] = str(whole(rng))
    if rng.random() < 0.5:
        entries["length"] = str(whole(rng, len(tensor.raw_data)))
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return f"{tensor.name} {entries}"
