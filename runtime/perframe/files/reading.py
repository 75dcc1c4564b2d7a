"""Recognition of perframe's own files by their first bytes, and their mapping into memory."""

from __future__ import annotations

import mmap
from pathlib import Path

from perframe.errors import InputError, ModelError
from perframe.files.encryption import MAGIC, Key, decrypted, is_encrypted
from perframe.files.model_file import is_model_file, read
from perframe.model import Model

HEAD = 256  # bytes that tell what a file is


def is_own(begin: bytes) -> bool:
    """Whether a file with these first bytes, at least HEAD of them, is one of perframe's."""
    return is_encrypted(begin) or is_model_file(begin)


def read_file(path: Path, key: Key | None = None) -> Model | None:
    """Return the model in a file; None if the file is not one of perframe's, or cannot be read. Raises ModelError.

    The constants are views of the file, which is mapped. A mapping keeps a descriptor open as long as the model lives.
    Windows then neither deletes nor replaces the file; other systems do, and the model keeps the old bytes. Whoever
    writes into the file in place, or cuts it, breaks the model: `pf.save` replaces files.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(HEAD)
            if not is_own(head):
                _refuse_key(key, path.name)
                return None
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        return None  # the importer of ONNX files says why
    return read_bytes(data, path.name, key)


def read_bytes(data: memoryview, name: str, key: Key | None = None) -> Model | None:
    """Return the model in these bytes; None if they are not a file of perframe's. Raises ModelError."""
    head = bytes(data[:HEAD])
    if not is_encrypted(head):
        _refuse_key(key, name)
        return read(data, name) if is_model_file(head) else None
    data = decrypted(data, key, name)
    if not is_model_file(bytes(data[:HEAD])):
        raise ModelError(f"{name} is encrypted, and what is in it is no model of perframe's")
    return read(data, name)


def _refuse_key(key: Key | None, name: str) -> None:
    """Raise InputError if there is a key for a file that is not encrypted: somebody may have exchanged the file."""
    if key is not None:
        raise InputError(f"{name} is not encrypted: it does not begin with {MAGIC!r}. Load it without a key")
