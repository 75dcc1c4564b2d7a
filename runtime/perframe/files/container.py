"""The container of a model file: a safetensors file (https://huggingface.co/docs/safetensors).

The file begins with the length of its header in 8 bytes. The header is JSON: the dtype, shape and range of bytes of
each tensor, and texts under `__metadata__`. The tensors follow without gaps. Spaces after the header align them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from perframe.errors import ModelError
from perframe.tensor.background import take_turns

MAX_HEADER = 100_000_000  # bytes; the library of safetensors reads no longer header
METADATA = "__metadata__"
ALIGNMENT = 64  # bytes: a line of the cache, and the widest vector
_LENGTH = 8  # bytes of the header's length


class TensorEntry(NamedTuple):
    """A tensor in the header, and its range of bytes after the header."""

    dtype: str
    shape: list[int]
    begin: int
    end: int


def composed(metadata: Mapping[str, str], entries: Mapping[str, TensorEntry]) -> bytes:
    """Return the beginning of a file, up to its first tensor. Raises ModelError if the header would be too long."""
    header: dict[str, Any] = {METADATA: metadata}
    for name, entry in entries.items():
        header[name] = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": [entry.begin, entry.end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(_LENGTH + len(text)) % ALIGNMENT)
    if len(text) > MAX_HEADER:
        raise ModelError(f"the header would take {len(text)} bytes, and safetensors allows {MAX_HEADER}")
    return len(text).to_bytes(_LENGTH, "little") + text


def looks_like(begin: bytes) -> bool:
    """Whether the first bytes of a file are those of a safetensors file."""
    return len(begin) > _LENGTH + 1 and begin[_LENGTH : _LENGTH + 2] == b'{"' and _header_bytes(begin) <= MAX_HEADER


def _header_bytes(begin: bytes | memoryview) -> int:
    return int.from_bytes(begin[:_LENGTH], "little")


def parsed(data: memoryview) -> tuple[dict[str, str], dict[str, TensorEntry], memoryview]:
    """Return the metadata, the tensors of the header, and the bytes of the tensors. Raises ModelError."""
    length = _header_bytes(data)
    if not 2 <= length <= min(MAX_HEADER, len(data) - _LENGTH):
        raise ModelError(f"its header should take {length} bytes, and the file has {len(data)}: it is truncated")
    header = parsed_json(bytes(data[_LENGTH : _LENGTH + length]), "its header")
    body = data[_LENGTH + length :]
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all([isinstance(text, str) for text in metadata.values()]):
        raise ModelError("the metadata of its header are not texts by name")
    entries = {name: _entry(name, said) for name, said in header.items()}
    at = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != at or entry.end < at:
            raise ModelError(f"tensor {name!r} lies from {entry.begin} to {entry.end}, and should begin at {at}")
        at = entry.end
    if at != len(body):
        raise ModelError(f"its tensors take {at} bytes, and {len(body)} follow its header: it is truncated or damaged")
    return metadata, entries, body


def _entry(name: str, said: Any) -> TensorEntry:
    take_turns()
    match said:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [begin, end], **others} if not others:
            if all([type(number) is int and 0 <= number < 1 << 63 for number in (*shape, begin, end)]):
                return TensorEntry(dtype, shape, begin, end)
    raise ModelError(f"tensor {name!r} has no dtype, shape and range of bytes: {said!r:.200}")


def parsed_json(text: bytes | str, what: str) -> dict[str, Any]:
    """Return a JSON object. Raises ModelError if it is none, nests too deeply, or has a name twice."""
    try:
        found = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_refuse)
    except RecursionError:
        raise ModelError(f"{what} nests too deeply") from None
    except ModelError as error:
        raise ModelError(f"{what} {error}") from None
    except ValueError as error:
        raise ModelError(f"{what} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ModelError(f"{what} is not a JSON object")
    return found


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    take_turns()
    found = dict(pairs)
    if len(found) != len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ModelError(f"has the name {name!r:.200} twice")
    return found


def _refuse(constant: str) -> Any:
    raise ModelError(f"has the number {constant}, which JSON does not know")
