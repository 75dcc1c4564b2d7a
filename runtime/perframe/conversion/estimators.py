"""Pickles of scikit-learn: what they import, without running them.

joblib writes the numbers of each array behind the object that stands for it, in the middle of the pickle, and may
compress the whole file. Its format: joblib/numpy_pickle.py of https://github.com/joblib/joblib.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import math
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from perframe.conversion.pickles import PickleCall, Pickled, read_pickle
from perframe.errors import ConversionError

MAX_ESTIMATOR = 2 << 30  # bytes, unpacked
PACKED: dict[bytes, Callable[[Path], Any]] = {  # by the first bytes
    b"\x1f\x8b": lambda path: gzip.open(path),  # noqa: SIM115  # the caller closes it
    b"BZh": lambda path: bz2.open(path),  # noqa: SIM115
    b"\xfd7zXZ": lambda path: lzma.open(path),  # noqa: SIM115
    b"]\x00\x00": lambda path: lzma.open(path),  # noqa: SIM115
}
ZLIB = (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")
LZ4 = b"\x04\x22\x4d\x18"
_WRAPPER = "joblib.numpy_pickle.NumpyArrayWrapper"
_OLD = ("joblib.numpy_pickle.NDArrayWrapper", "joblib.numpy_pickle.ZNDArrayWrapper")
_DTYPE = re.compile(r"[a-zA-Z?](\d*)")


def is_packed(head: bytes) -> bool:
    """Whether these are the first bytes of a compressed file."""
    return head.startswith((*PACKED, *ZLIB, LZ4))


def estimator_pickle(path: Path) -> Pickled | None:
    """The first pickle in a file, compressed or not; None for a compressed file of something else. Raises
    ConversionError.
    """
    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith(LZ4):
        raise ConversionError(f"{path} is compressed by LZ4: save it with joblib.dump(..., compress=('zlib', 3))")
    if not is_packed(head):
        with path.open("rb") as file:
            return _read(file, path)
    data = _unpacked(path, head)
    return _read(io.BytesIO(data), path) if data[:1] == b"\x80" else None


def is_estimator(found: Pickled) -> bool:
    """Whether the pickle would build something with objects of scikit-learn."""
    return any(name.startswith("sklearn.") for name in found.names)


def _unpacked(path: Path, head: bytes) -> bytes:
    try:
        if head.startswith(ZLIB):
            reader = zlib.decompressobj()
            data = reader.decompress(path.read_bytes(), MAX_ESTIMATOR + 1)
            if not reader.eof and len(data) <= MAX_ESTIMATOR:
                raise EOFError("its end is missing")
        else:
            opened = next(made for begin, made in PACKED.items() if head.startswith(begin))
            with opened(path) as file:
                data = file.read(MAX_ESTIMATOR + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, MemoryError) as error:
        raise ConversionError(f"{path} is compressed, and damaged: {error}: copy it again") from error
    if len(data) > MAX_ESTIMATOR:
        raise ConversionError(f"{path} would unpack to more than {MAX_ESTIMATOR:,} bytes: do not trust this file")
    return data


def _read(file: IO[bytes], path: Path) -> Pickled:
    names: dict[str, None] = {}

    def skip(made: Any) -> None:
        """Go over the array behind a joblib object that stands for one."""
        function = str(made.function) if isinstance(made, PickleCall) else ""
        if function in _OLD:
            raise ConversionError(f"{path} is of a joblib before 0.10: load it there, and save it by a newer one")
        if function != _WRAPPER or not isinstance(made.state, dict):
            return
        shape, dtype = made.state.get("shape"), made.state.get("dtype")
        size = _item_size(dtype)
        if not isinstance(shape, tuple) or not all(type(dim) is int and 0 <= dim < 1 << 40 for dim in shape):
            raise ValueError("an array without a shape")
        if size is None:  # of objects, which are in another pickle
            names.update(dict.fromkeys(_read(file, path).names))
            return
        if made.state.get("numpy_array_alignment_bytes"):
            (padding,) = file.read(1)
            file.seek(padding, io.SEEK_CUR)
        begin = file.tell()
        file.seek(0, io.SEEK_END)
        if begin + size * math.prod(shape) > file.tell():
            raise ValueError("an array that is cut")
        file.seek(begin + size * math.prod(shape))

    found = read_pickle(file, path, skip)
    return Pickled(found.value, [*dict.fromkeys([*found.names, *names])])


def _item_size(dtype: Any) -> int | None:
    """The bytes of an item of a pickled NumPy dtype; None for objects."""
    text = dtype.arguments[0] if isinstance(dtype, PickleCall) and isinstance(dtype.arguments, tuple) else ""
    found = _DTYPE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError("an array without a dtype")
    if text[0] == "O":
        return None
    state = dtype.state
    if isinstance(state, tuple) and len(state) > 5 and type(state[5]) is int and state[5] > 0:
        return int(state[5])  # of texts and records
    return int(found[1] or 1)
