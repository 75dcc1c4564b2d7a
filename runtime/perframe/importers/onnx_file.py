"""Reading of ONNX files: the file is parsed and checked, and weights in other files are read too."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from perframe.errors import MissingFileError, ModelError
from perframe.importers.external_data import Weights, read_external_data
from perframe.importers.formats import refusal, what_it_is
from perframe.importers.onnx_messages import NeedsLibrary, is_a, parsed
from perframe.importers.onnx_walk import Contents
from perframe.importers.onnx_weights import Split, split
from perframe.importers.reads import current
from perframe.importers.shipped import models_like
from perframe.safety.records import dataclass

if TYPE_CHECKING:
    import onnx

MOST_NODES = 2000  # of a file that is read without the onnx package: with more, the package's import takes less time


@dataclass(frozen=True)
class OnnxFile:
    """A parsed file: a message of the onnx package, or one of ours.

    `name` is its name in messages. `weights` holds the large weights by the index of their initializer, which then has
    no data. `values` holds the names of the values of all its graphs.
    """

    proto: onnx.ModelProto
    name: str
    parts: Split
    folder: Path | None = None
    values: frozenset[str] = frozenset()

    @property
    def weights(self) -> Weights:
        """The large weights."""
        return self.parts.weights

    def by_library(self) -> OnnxFile:
        """Return the file as the onnx package reads it. Raises ModelError."""
        return _checked(replace(self, proto=_by_library(self.parts, self.name)))


def read(source: str | Path | bytes | IO[bytes] | onnx.ModelProto) -> OnnxFile:
    """Read and check a file. Raises ModelError; MissingFileError if there is no such file."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        name, folder, found = path.name, path.parent, _of_path(path)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        name, folder, found = "bytes", None, split(io.BytesIO(source), len(source))
    elif is_a(source, "ModelProto"):
        proto: Any = source
        return _checked(OnnxFile(proto, str(proto.graph.name or "model"), Split(b"", {}, 0, 0)))
    elif hasattr(source, "read"):
        name, folder, whole = str(getattr(source, "name", "file object")), None, source.read()
        if not isinstance(whole, bytes):
            raise ModelError(f"{name}: read() gave {type(whole).__name__} and not bytes: open the file with mode 'rb'")
        found = split(io.BytesIO(whole), len(whole))
    else:
        raise ModelError(
            f"cannot load a model from {type(source).__name__}: give a path, bytes, a file object or a ModelProto"
        )
    return _checked(OnnxFile(_parsed(found, name), name, found, folder))


def _checked(file: OnnxFile) -> OnnxFile:
    """Return the file with the weights of other files, and with its names. Raises ModelError."""
    try:
        contents = Contents(file.proto)
        values = frozenset(contents.names_of_values())
    except ModelError as error:
        raise ModelError(f"{file.name}: {error}") from None
    read_external_data(contents, file.name, file.folder, file.weights)
    return replace(file, values=values)


def _of_path(path: Path) -> Split:
    try:
        if path.is_dir():
            inside = sorted(found.name for found in path.glob("*.onnx") if found.is_file())[:5]
            raise MissingFileError(
                f"{str(path)!r} is a folder: give the path of the model's file, such as {', '.join(inside) or 'm.onnx'}"
            )
        if not path.exists():
            close, folder = models_like(str(path)), "" if path.is_absolute() else f" (looked in {str(Path.cwd())!r})"
            said = f"there is no model file {str(path)!r}{folder}{'; ' * bool(close)}{close}"
            raise MissingFileError(said.strip())
        if not path.is_file():
            raise ModelError(f"{str(path)!r} is not a file, but a device or a pipe")
        with path.open("rb") as file:
            if (noting := current()) is not None:
                noting.opened(file, path)
            return split(file, path.stat().st_size)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{str(path)[:200]!r} cannot be read: {error}") from None


def _parsed(file: Split, name: str) -> Any:
    """Return the file's message, of ours if its model is small and usual."""
    if 0 <= file.nodes <= MOST_NODES:
        try:
            proto = parsed(file.data)
            if proto.ir_version and proto.opset_import and proto.HasField("graph"):
                return proto
        except NeedsLibrary:
            pass
    return _by_library(file, name)


def _by_library(file: Split, name: str) -> onnx.ModelProto:
    import onnx  # imported late: it takes longer than loading a small model
    from google.protobuf.message import DecodeError

    data, proto = file.data, onnx.ModelProto()
    if not data:
        raise ModelError(refusal(name, "it is empty; copy or export it again"))
    what = what_it_is(data)
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise ModelError(refusal(name, what, f" ({len(data)} bytes do not parse)")) from None
    if not proto.ir_version or not proto.opset_import or not proto.HasField("graph"):
        raise ModelError(refusal(name, what, " (it has no graph, opset or IR version)"))
    return proto
