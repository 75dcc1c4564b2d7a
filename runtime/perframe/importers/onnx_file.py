"""ONNX files as they are read: whole, not damaged, and with the weights that lie beside them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from perframe.errors import ModelError
from perframe.importers.onnx_weights import read_array, split

Weights = dict[int, NDArray[Any]]


def read(source: str | Path | bytes | IO[bytes] | onnx.ModelProto) -> tuple[onnx.ModelProto, str, Weights]:
    """The parsed file, the name that messages call it by, and its large weights by the index of the initializer, which
    has none then. Raises ModelError, FileNotFoundError.
    """
    if isinstance(source, onnx.ModelProto):
        return source, source.graph.name or "model", {}
    folder: Path | None = None
    if isinstance(source, (str, Path)):
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(f"there is no model file {str(path)!r}")
        name, folder, size = path.name, path.parent, path.stat().st_size
        with path.open("rb") as file:
            data, weights = split(file, size)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        name, size = "bytes", len(source)
        data, weights = split(io.BytesIO(source), size)
    elif hasattr(source, "read"):
        name, whole = str(getattr(source, "name", "file object")), source.read()
        size = len(whole)
        data, weights = split(io.BytesIO(whole), size)
    else:
        raise ModelError(
            f"cannot load a model from {type(source).__name__}: give a path, bytes, a file object or a ModelProto"
        )
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise ModelError(
            f"{name}: not a complete ONNX file ({size} bytes do not parse): it is truncated or of another format; "
            "copy or export it again"
        ) from None
    if not proto.ir_version or not proto.opset_import or not proto.HasField("graph"):
        raise ModelError(f"{name}: not an ONNX file: it parses, but has no graph, opset or IR version")
    _read_external_data(proto, name, folder, weights)
    return proto, name, weights


def _read_external_data(proto: onnx.ModelProto, name: str, folder: Path | None, weights: Weights) -> None:
    numbered = enumerate(_tensors(proto.graph))  # the graph's own initializers come first
    tensors = [(i, t) for i, t in numbered if t.data_location == onnx.TensorProto.EXTERNAL]
    if not tensors:
        return
    if folder is None:
        raise ModelError(f"{name}: its weights lie in other files; load it by its path")
    for index, tensor in tensors:
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        target = (folder / location).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise ModelError(f"{name}: tensor {tensor.name!r} points outside the model's folder: {location!r}")
        if not target.is_file():
            raise ModelError(f"{name}: tensor {tensor.name!r} wants {location!r}, which is not beside the model")
        array = _external_array(tensor, target) if index < len(proto.graph.initializer) else None
        if array is not None:
            weights[index] = array
            continue
        try:
            onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        except (OSError, ValueError, onnx.checker.ValidationError) as error:
            raise ModelError(f"{name}: tensor {tensor.name!r} cannot be read from {location!r}: {error}") from None
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _external_array(tensor: onnx.TensorProto, path: Path) -> NDArray[Any] | None:
    """The weights in another file; None where they are no plain array, or not all there."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        with path.open("rb") as file:
            size = path.stat().st_size - offset if length < 0 else length
            inside = 0 <= offset <= offset + size <= path.stat().st_size
            return read_array(file, offset, size, tensor.data_type, tensor.dims) if inside else None
    except (OSError, ValueError):  # onnx says what is wrong
        return None


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The initializers of a graph and its inner graphs, and the tensors that are attributes."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("sparse_tensor"):
            yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
        for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            yield from _tensors(inner)
