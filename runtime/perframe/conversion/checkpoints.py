"""The content of files of weights: names, shapes and dtypes, without values."""

from __future__ import annotations

import io
import math
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perframe.conversion.archives import zip_content
from perframe.conversion.pickles import Global, Persistent, PickleCall, Pickled, read_pickle
from perframe.errors import ConversionError, ModelError
from perframe.files.container import parsed

MAX_PICKLE = 64 << 20  # bytes
SHOWN = 20  # tensors in a message
DEEPEST = 8  # mappings within each other
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C  # of files that PyTorch wrote before its zip archives
_MAPPINGS = ("collections.OrderedDict", "collections.defaultdict", "builtins.dict", "__builtin__.dict")
_STORAGES = {  # names in pickles, and what everybody calls them
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file of weights."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} {'×'.join(map(str, self.shape)) or 'scalar'}"


def listing(tensors: Sequence[StoredTensor], most: int = SHOWN) -> str:
    """The tensors in a file of weights, as lines for a message."""
    numbers = sum(math.prod(tensor.shape) for tensor in tensors)
    lines = [f"It holds {len(tensors)} tensors with {numbers:,} numbers:"]
    lines += [f"  {tensor}" for tensor in tensors[:most]]
    if len(tensors) > most:
        lines.append(f"  and {len(tensors) - most} more")
    return "\n".join(lines)


def safetensors_content(path: Path) -> list[StoredTensor]:
    """The tensors in a safetensors file. Raises ConversionError if the file is cut or damaged."""
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        entries = parsed(data)[1]
    except (ModelError, OSError, ValueError) as error:
        raise ConversionError(f"{path}: it is a damaged safetensors file: {error}") from error
    return [StoredTensor(name, entry.dtype, tuple(entry.shape)) for name, entry in entries.items()]


def torch_pickle(path: Path, entry: str = "") -> Pickled:
    """The pickle in a PyTorch file: an entry of its zip archive, or without one the file before archives.

    Raises ConversionError.
    """
    if entry:
        return read_pickle(io.BytesIO(zip_content(path, entry, MAX_PICKLE)), path)
    with path.open("rb") as whole:
        file = io.BytesIO(whole.read(MAX_PICKLE))
    if read_pickle(file, path).value != LEGACY_MAGIC:
        raise ConversionError(f"{path}: it is a Python pickle that PyTorch did not write: save a network's state_dict")
    for _ in range(2):  # the version of the format, and the sizes of the writer's numbers
        read_pickle(file, path)
    return read_pickle(file, path)


def holds_module(value: Any) -> bool:
    """Whether what a pickle would build is a module, or a mapping with a module in it."""
    return any(
        isinstance(item, PickleCall) and isinstance(item.state, dict) and "_modules" in item.state
        for _, item in _leaves(value, "", set(), 0)
    )


def pickled_tensors(value: Any, path: object) -> list[StoredTensor]:
    """The tensors in the mappings that a pickle would build. Names in inner mappings begin with those of the outer."""
    found = [_tensor(item, name, path) for name, item in _leaves(value, "", set(), 0) if name]
    return [tensor for tensor in found if tensor is not None]


def _leaves(value: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[str, Any]]:
    """All that lies in mappings, by name. A mapping that lies in several places is looked at once."""
    items = _items(value)
    if items is None:
        yield name, value
    elif depth < DEEPEST and id(items) not in seen:
        seen.add(id(items))
        for key, item in items.items():
            yield from _leaves(item, f"{name}/{key}" if name else str(key), seen, depth + 1)


def _items(value: Any) -> dict[Any, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, PickleCall) and str(value.function) in _MAPPINGS:
        return value.items
    return None


def _tensor(value: Any, name: str, path: object) -> StoredTensor | None:
    """The tensor that a call of one of PyTorch's own functions would make; None for anything else."""
    function = value.function if isinstance(value, PickleCall) else None
    if not isinstance(function, Global) or function.module != "torch._utils" or not isinstance(value.arguments, tuple):
        return None
    arguments = value.arguments
    if function.name.startswith("_rebuild_parameter") and arguments:
        return _tensor(arguments[0], name, path)
    if not function.name.startswith("_rebuild_tensor") or len(arguments) < 3:
        return None
    storage, shape = arguments[0], arguments[2]
    if not isinstance(shape, tuple) or not all(type(size) is int and 0 <= size < 1 << 63 for size in shape):
        raise ConversionError(f"{path}: its tensor {name!r:.200} has an invalid shape: it is damaged")
    return StoredTensor(name, _dtype(storage, arguments), shape)


def _dtype(storage: Any, arguments: tuple[Any, ...]) -> str:
    if len(arguments) > 6 and isinstance(arguments[6], Global):
        return arguments[6].name
    if isinstance(storage, Persistent) and isinstance(storage.identity, tuple) and len(storage.identity) > 1:
        kind = storage.identity[1]
        if isinstance(kind, Global):
            return _STORAGES.get(kind.name.removesuffix("Storage"), kind.name)
    return "?"
