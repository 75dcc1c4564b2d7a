"""Reading of ONNX files: the file is parsed and checked, and weights in other files are read too."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO

import onnx
from google.protobuf.message import DecodeError

from perframe.errors import MissingFileError, ModelError
from perframe.importers.external_data import Weights, read_external_data
from perframe.importers.formats import what_it_is
from perframe.importers.onnx_walk import Contents
from perframe.importers.onnx_weights import split
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class OnnxFile:
    """A parsed file.

    `name` is its name in messages. `weights` holds the large weights by the index of their initializer, which then has
    no data. `values` holds the names of the values of all its graphs.
    """

    proto: onnx.ModelProto
    name: str
    weights: Weights
    values: frozenset[str]


def read(source: str | Path | bytes | IO[bytes] | onnx.ModelProto) -> OnnxFile:
    """Read and check a file. Raises ModelError; MissingFileError if there is no such file."""
    weights: Weights = {}
    folder: Path | None = None
    if isinstance(source, onnx.ModelProto):
        proto, name = source, str(source.graph.name or "model")
    elif isinstance(source, (str, Path)):
        path = Path(source)
        name, folder = path.name, path.parent
        proto = _parsed_file(path, weights)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        name = "bytes"
        proto = _parsed(io.BytesIO(source), len(source), name, weights)
    elif hasattr(source, "read"):
        name, whole = str(getattr(source, "name", "file object")), source.read()
        if not isinstance(whole, bytes):
            raise ModelError(f"{name}: read() gave {type(whole).__name__} and not bytes: open the file with mode 'rb'")
        proto = _parsed(io.BytesIO(whole), len(whole), name, weights)
    else:
        raise ModelError(
            f"cannot load a model from {type(source).__name__}: give a path, bytes, a file object or a ModelProto"
        )
    try:
        contents = Contents(proto)
        values = frozenset(contents.names_of_values())
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None
    read_external_data(contents, name, folder, weights)
    return OnnxFile(proto, name, weights, values)


def _parsed_file(path: Path, weights: Weights) -> onnx.ModelProto:
    try:
        if path.is_dir():
            inside = sorted(found.name for found in path.glob("*.onnx"))[:5]
            raise MissingFileError(
                f"{str(path)!r} is a folder: give the path of the model's file, such as {', '.join(inside) or 'm.onnx'}"
            )
        if not path.exists():
            raise MissingFileError(f"there is no model file {str(path)!r} (looked in {str(Path.cwd())!r})")
        if not path.is_file():
            raise ModelError(f"{str(path)!r} is not a file, but a device or a pipe")
        with path.open("rb") as file:
            return _parsed(file, path.stat().st_size, path.name, weights)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{str(path)[:200]!r} cannot be read: {error}") from None


def _parsed(file: IO[bytes], size: int, name: str, weights: Weights) -> onnx.ModelProto:
    data, found = split(file, size)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise ModelError(f"{name}: not a complete ONNX file ({size} bytes do not parse): {what_it_is(data)}") from None
    if not proto.ir_version or not proto.opset_import or not proto.HasField("graph"):
        raise ModelError(f"{name}: not a whole ONNX file: it has no graph, opset or IR version; {what_it_is(data)}")
    weights.update(found)
    return proto
