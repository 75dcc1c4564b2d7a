"""Recognition of perframe's own files by their first bytes, and their mapping into memory."""

from __future__ import annotations

import mmap
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from perframe.errors import InputError, ModelError
from perframe.files.container import ALIGNMENT, looks_like
from perframe.files.encryption import MAGIC, Key, decrypted, is_encrypted
from perframe.ir import Model

HEAD = 256  # bytes that tell what a file is
_SIGN = b'"perframe"'  # in the metadata, which come first
MOST_COPIED = 64 << 20  # bytes of a file


def is_model_file(begin: bytes) -> bool:
    """Whether a file with these first bytes is a safetensors file with a graph of ours."""
    return looks_like(begin) and _SIGN in begin


def is_own(begin: bytes) -> bool:
    """Whether a file with these first bytes, at least HEAD of them, is one of perframe's."""
    return is_encrypted(begin) or is_model_file(begin)


def read_file(path: Path, key: Key | None = None) -> Model | None:
    """Return the model in a file; None if the file is not one of perframe's, or cannot be read. Raises ModelError.

    The constants are views of a copy of the file, which stay what they are when others write into the file. A file of
    more than MOST_COPIED bytes is mapped instead, as long as the model lives. Windows then neither deletes nor replaces
    it; on other systems the model keeps the bytes of a file that is replaced, as `pf.save` does. Whoever writes into
    the file in place breaks the model: `check_file` tells it where a worker begins, or the model is saved.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(HEAD)
            if not is_own(head):
                _refuse_key(key, path.name)
                return None
            found = os.fstat(file.fileno())
            if found.st_size <= MOST_COPIED:
                data = copied(file, found.st_size)
            else:
                data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        return None  # the importer of ONNX files says why
    model = read_bytes(data, path.name, key)
    if model is not None and found.st_size > MOST_COPIED:
        model.check_file = partial(_check_unchanged, path.absolute(), _stamp(found))
    return model


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _check_unchanged(path: Path, before: tuple[int, ...]) -> None:
    """Raise ModelError if a mapped file was changed in place. One that was replaced or deleted keeps its bytes."""
    try:
        now = _stamp(path.stat())
    except OSError:
        return
    if now[:2] == before[:2] and now != before:
        raise ModelError(
            f"{path.name} was overwritten in place since it was loaded, and its weights with it: load it again. A "
            "file that is moved into its place, as pf.save does, is safe"
        )


def copied(file: Any, size: int) -> memoryview:
    """The first bytes of an open file, aligned as in a mapping."""
    whole = np.empty(size + ALIGNMENT, np.uint8)
    begin = -whole.ctypes.data % ALIGNMENT
    data = whole.data[begin : begin + size]
    file.seek(0)
    return data[: file.readinto(data)].toreadonly()


def read_bytes(data: memoryview, name: str, key: Key | None = None) -> Model | None:
    """Return the model in these bytes; None if they are not a file of perframe's. Raises ModelError."""
    head = bytes(data[:HEAD])
    if is_encrypted(head):
        data = decrypted(data, key, name)
    else:
        _refuse_key(key, name)
    if is_model_file(bytes(data[:HEAD])):
        from perframe.files.model_file import read  # imported late: files of other formats do not need it

        return read(data, name)
    if is_encrypted(head):
        raise ModelError(f"{name} is encrypted, and its content is not a perframe model")
    return None


def _refuse_key(key: Key | None, name: str) -> None:
    """Raise InputError if there is a key for a file that is not encrypted: somebody may have exchanged the file."""
    if key is not None:
        raise InputError(f"{name} is not encrypted: it does not begin with {MAGIC!r}. Load it without a key")
