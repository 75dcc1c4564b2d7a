"""Arrays in an .npz file, under names that come from a model's file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from perframe.safety.names import member_names

_NAMES = "perframe names"


def write_npz(file: IO[bytes], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write arrays for `numpy.load`, by their names. `numpy.savez` would take some names as its own arguments.

    Names that lead out of a folder are changed. Texts are written as NumPy's own, which need no pickle.
    """
    _write(file, arrays, member_names(arrays))


def write_feed(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write arrays for `read_feed`, which finds them by their names, whatever these are."""
    names = np.frombuffer(json.dumps(list(arrays)).encode(), np.uint8)
    numbered = {str(index): array for index, array in enumerate(arrays.values())} | {_NAMES: names}
    with path.open("wb") as file:
        _write(file, numbered, {name: name for name in numbered})


def read_feed(path: Path | str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays that `write_feed` wrote, or those of an .npz file that somebody else wrote."""
    with np.load(path) as found:
        if _NAMES not in found.files:
            return dict(found)
        names = json.loads(found[_NAMES].tobytes())
        return {name: found[str(index)] for index, name in enumerate(names)}


def _write(file: IO[bytes], arrays: Mapping[str, np.ndarray[Any, Any]], members: Mapping[str, str]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            values = array.astype(str) if array.dtype == object else np.asanyarray(array)
            with archive.open(f"{members[name]}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
