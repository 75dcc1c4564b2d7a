"""Weights in other files. Only files in the model's own folder, or below it, are ever opened.

A model may come from anywhere, and the content of each file that it names becomes a constant that others can read.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from numpy.typing import NDArray

from perframe.errors import ModelError
from perframe.importers.onnx_walk import Contents
from perframe.importers.onnx_weights import ITEM_BYTES, read_array
from perframe.importers.reads import current

if TYPE_CHECKING:
    import onnx

Weights = dict[int, NDArray[Any]]

EXTERNAL = 1  # ONNX's number of a tensor's place, if it is another file
_KEYS = ("location", "offset", "length")
# the open call does not follow a symbolic link that appeared after the check, and does not wait for a pipe
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_external_data(contents: Contents, name: str, folder: Path | None, weights: Weights) -> None:
    """Read weights in other files: into `weights` by the index of their initializer, or else into the tensor.

    Raises ModelError.
    """
    own = len(contents.proto.graph.initializer)
    for index, tensor in enumerate(contents.tensors()):
        if tensor.data_location != EXTERNAL:
            continue
        where = f"{name}: tensor {tensor.name!r}"
        if folder is None:
            raise ModelError(f"{where} lies in another file: load the model by its path, so that its folder is known")
        entries = _entries(tensor, where)
        try:
            with _opened(folder, entries["location"], where) as file:
                array = weights.get(index)  # of a file that is parsed a second time
                if array is None:
                    array = _read(file, tensor, entries, where, index < own)
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a cycle of links
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"{where} cannot be read from {entries['location'][:200]!r}: {error}") from None
        if array is not None:
            weights[index] = array
        tensor.ClearField("data_location")
        tensor.ClearField("external_data")


def _entries(tensor: onnx.TensorProto, where: str) -> Mapping[str, str]:
    entries: dict[str, str] = {}
    for entry in tensor.external_data:
        if entry.key in _KEYS and entry.key in entries:
            raise ModelError(f"{where} has two of {entry.key!r} for its external data")
        if not isinstance(entry.value, str):
            raise ModelError(f"{where}: {entry.key!r} of its external data is not text")
        entries[entry.key] = entry.value
    if not entries.get("location"):
        raise ModelError(f"{where} lies in another file, and does not say in which")
    return entries


@contextmanager
def _opened(folder: Path, location: str, where: str) -> Iterator[IO[bytes]]:
    """Open a file beside the model. Raises ModelError if it is not a file, or may lie in another folder."""
    if "\0" in location:
        raise ModelError(f"{where} wants {location[:200]!r}, which cannot be the name of a file")
    home = folder.resolve()
    target = (home / location).resolve()
    if target == home or not target.is_relative_to(home):
        raise ModelError(
            f"{where} points outside the model's folder: {location[:200]!r}. Where that is a link, "
            "put the file itself beside the model"
        )
    if not target.is_file():
        raise ModelError(f"{where} wants {location[:200]!r}, which is not a file beside the model")
    with os.fdopen(os.open(target, _FLAGS), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ModelError(f"{where} wants {location[:200]!r}, which is not a file")
        if found.st_nlink > 1:
            raise ModelError(
                f"{where} wants {location[:200]!r}, which has a second name that may lie outside the model's folder (a "
                "hard link): put a copy in its place"
            )
        if (noting := current()) is not None:
            noting.opened(file, target)
        yield file


def _read(
    file: IO[bytes], tensor: onnx.TensorProto, entries: Mapping[str, str], where: str, apart: bool
) -> NDArray[Any] | None:
    """Read a tensor's values: return an array, or set the tensor's raw data and return None.

    The size of the values is first compared with the file. Raises ModelError if the file is too short.
    """
    size = os.fstat(file.fileno()).st_size
    offset = _number(entries, "offset", where) or 0
    length = _number(entries, "length", where)
    item = ITEM_BYTES.get(tensor.data_type)
    if any(dim < 0 for dim in tensor.dims):
        raise ModelError(f"{where} has a negative dim: {list(tensor.dims)}")
    if item is not None:
        wanted = math.prod(tensor.dims[:64]) * item
        if length is not None and length != wanted:
            raise ModelError(f"{where} of dims {list(tensor.dims)} takes {wanted} bytes, and its length is {length}")
        length = wanted
    elif length is None:
        length = max(size - offset, 0)
    if offset + length > size:
        raise ModelError(
            f"{where} wants {length} bytes from {offset} of {entries['location'][:200]!r}, which has {size}: the file "
            "is truncated, or of another model"
        )
    if apart:
        array = read_array(file, offset, length, tensor.data_type, tensor.dims)
        if array is not None:
            return array
    file.seek(offset)
    tensor.raw_data = file.read(length)
    return None


def _number(entries: Mapping[str, str], key: str, where: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ModelError(f"{where}: {key!r} of its external data must be an integer from 0, and is {text[:80]!r}")
    return int(text)
