"""ONNX files as they are read: whole, not damaged, and with the weights that lie beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import onnx
from google.protobuf.message import DecodeError

from perframe.errors import ModelError


def read(source: str | Path | bytes | IO[bytes] | onnx.ModelProto) -> tuple[onnx.ModelProto, str]:
    """The parsed file and the name that messages call it by. Raises ModelError, FileNotFoundError."""
    if isinstance(source, onnx.ModelProto):
        return source, source.graph.name or "model"
    folder: Path | None = None
    if isinstance(source, (str, Path)):
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(f"there is no model file {str(path)!r}")
        name, data, folder = path.name, path.read_bytes(), path.parent
    elif isinstance(source, (bytes, bytearray, memoryview)):
        name, data = "bytes", bytes(source)
    elif hasattr(source, "read"):
        name, data = str(getattr(source, "name", "file object")), source.read()
    else:
        raise ModelError(
            f"cannot load a model from {type(source).__name__}: give a path, bytes, a file object or a ModelProto"
        )
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise ModelError(
            f"{name}: not a complete ONNX file ({len(data)} bytes do not parse): it is truncated or of another format; "
            "copy or export it again"
        ) from None
    if not proto.ir_version or not proto.opset_import or not proto.HasField("graph"):
        raise ModelError(f"{name}: not an ONNX file: it parses, but has no graph, opset or IR version")
    _read_external_data(proto, name, folder)
    return proto, name


def _read_external_data(proto: onnx.ModelProto, name: str, folder: Path | None) -> None:
    tensors = [t for t in _tensors(proto.graph) if t.data_location == onnx.TensorProto.EXTERNAL]
    if not tensors:
        return
    if folder is None:
        raise ModelError(f"{name}: its weights lie in other files; load it by its path")
    for tensor in tensors:
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        target = (folder / location).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise ModelError(f"{name}: tensor {tensor.name!r} points outside the model's folder: {location!r}")
        if not target.is_file():
            raise ModelError(f"{name}: tensor {tensor.name!r} wants {location!r}, which is not beside the model")
        try:
            onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        except (OSError, ValueError, onnx.checker.ValidationError) as error:
            raise ModelError(f"{name}: tensor {tensor.name!r} cannot be read from {location!r}: {error}") from None
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


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
