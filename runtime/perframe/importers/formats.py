"""Recognition of a file's format by its first bytes, and advice about a file that cannot be loaded."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

HEAD = 64  # bytes that tell a format

_TORCH = "export the network with torch.onnx.export(model, inputs, 'model.onnx'), or see `perframe convert --help`"
_UNITY = "export the network again in Unity with Sentis 1.4 or later, or load the ONNX file that it was made from"
_BINARY_FORMATTER = b"\0\1\0\0\0\xff\xff\xff\xff\1\0\0\0\0\0\0\0"
_SIGNS: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"version https://git-lfs", "a pointer of Git LFS", "fetch the file that it stands for: git lfs pull"),
    (0, b"PK\x03\x04", "a zip archive, as PyTorch writes its checkpoints", _TORCH),
    (0, b"\x80\x02", "a Python pickle, as PyTorch wrote its checkpoints", _TORCH),
    (0, b"\x80\x03", "a Python pickle", _TORCH),
    (0, b"\x80\x04", "a Python pickle", _TORCH),
    (0, b"\x80\x05", "a Python pickle", _TORCH),
    (0, b"\x89HDF\r\n", "an HDF5 file, as Keras writes its models", "convert it with `perframe convert`"),
    (4, b"TFL3", "the beginning of a LiteRT (TensorFlow Lite) model", "copy or convert it again"),
    (4, b"ORTM", "a model in onnxruntime's own format", "take the .onnx file that it was made of"),
    (0, b"GGUF", "a GGUF file", "export the network to ONNX"),
    (8, b'{"', "a safetensors file, which has weights and no network", "see `perframe convert --help`"),
    (8, _BINARY_FORMATTER, "a .sentis file of Sentis 1.0 to 1.3, which Unity too has given up", _UNITY),
    (0, b"\x1f\x8b", "compressed with gzip", "unpack it first"),
    (0, b"\x89PNG", "a PNG picture", "give the model's file"),
    (0, b"\xff\xd8\xff", "a JPEG picture", "give the model's file"),
)
_FORMATS = {".tflite": "LiteRT", ".sentis": "Sentis", ".perframe": "perframe"}  # but ONNX, by their suffixes
UNKNOWN = "it is truncated or of another format; copy or export it again"


def what_it_is(data: bytes) -> str:
    """Return a sentence about data that does not parse as ONNX: its likely format, and what to do."""
    for at, sign, what, then in _SIGNS:
        if data[at : at + len(sign)] == sign:
            return f"it is {what}: {then}"
    begin = data[:256].lstrip()
    if begin[:1] == b"<":
        return "it is a page of HTML or XML, as a failed download leaves: fetch the model itself"
    if begin and all(9 <= byte < 127 for byte in begin):
        return "it is text, and models are binary; fetch or export the model again"
    return UNKNOWN


def refusal(name: str, what: str, why: str = "") -> str:
    """The message for a file that is not ONNX, by its name. `what` is a sentence of `what_it_is`, and `why` the reason
    that it is not ONNX.
    """
    suffix = Path(name).suffix.lower()
    if suffix in _FORMATS:
        is_old = f"a {suffix} file" in what
        return f"{name}: {'' if is_old else f'not a {_FORMATS[suffix]} file, despite its name: '}{what}"
    if suffix and suffix != ".onnx":
        return f"{name}: not a file that load() reads (.onnx, {', '.join(_FORMATS)}): {what}"
    return f"{name}: not {'a complete' if what == UNKNOWN else 'an'} ONNX file{why}: {what}"


def is_litert(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a LiteRT (TensorFlow Lite) model."""
    return head[4:8] == b"TFL3"


def is_sentis(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a .sentis file of Sentis 1.4 or later.

    Such files have no sign. Their first 64 bytes hold the size of the first part, the place of its root table, the
    table's own vtable, and the version of the format.
    """
    if len(head) < HEAD:
        return False
    size, root = struct.unpack_from("<iI", head)
    table = 4 + root
    if not 0 < root <= HEAD - 12 or size < HEAD - 4:
        return False
    vtable = table - struct.unpack_from("<i", head, table)[0]
    if not 8 <= vtable <= HEAD - 8:
        return False
    length, _, version, plan = struct.unpack_from("<4H", head, vtable)
    if not 8 <= length <= 16 or not plan or not 4 <= version <= HEAD - 4 - table:
        return False
    (number,) = struct.unpack_from("<I", head, table + version)
    return bool(0 < number < 256)


def named_bytes(source: Any, wanted: Callable[[bytes], bool]) -> tuple[bytes, str] | Any:
    """Return the bytes of a source and its name, if its first bytes are those that are wanted; else the source.

    A source is a path, bytes or a file object. A file object can be read once only: one with its content replaces it.
    A path that cannot be read is returned too, for whoever explains this.
    """
    if isinstance(source, (str, Path)):
        path = Path(source)
        try:
            if not path.is_file():  # a pipe would wait for its writer
                return source
            with path.open("rb") as file:
                head = file.read(HEAD)
                return (head + file.read(), path.name) if wanted(head) else source
        except (OSError, ValueError):  # ValueError: a NUL in the path
            return source
    if isinstance(source, (bytes, bytearray, memoryview)):
        return (bytes(source), "bytes") if wanted(bytes(source[:HEAD])) else source
    if not hasattr(source, "read"):
        return source
    whole, name = source.read(), str(getattr(source, "name", "file object"))
    if isinstance(whole, bytes) and wanted(whole[:HEAD]):
        return whole, name
    return _Read(whole, name)


class _Read(io.RawIOBase):
    """A file object whose content was read already."""

    def __init__(self, content: Any, name: str) -> None:
        self.content, self.name = content, name

    def read(self, size: int = -1) -> Any:
        """Return the whole content."""
        return self.content
