"""Arrays in an .npz file, under names that come from a model's file."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from perframe.safety.names import member_names


def write_npz(file: IO[bytes], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write arrays for `numpy.load`, by their names. `numpy.savez` would take some names as its own arguments.

    Names that lead out of a folder are changed. Texts are written as NumPy's own, which need no pickle.
    """
    members = member_names(arrays)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            values = array.astype(str) if array.dtype == object else np.asanyarray(array)
            with archive.open(f"{members[name]}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
