"""The inputs of typical runs, which a command line names: pictures, arrays, or a function that yields them."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from perframe.command_line.sources import ModelInput, Normalization, picture_array
from perframe.errors import InputError
from perframe.ir import Model
from perframe.media.picture import PICTURES
from perframe.tensor import Array

ARRAYS = (".npy", ".npz")
KINDS = f"a folder of pictures, a file ({', '.join((*PICTURES, *ARRAYS))}), or module:function"


def calibration_data(source: str, model: Model, normalization: Normalization, runs: int | None = None) -> Iterable[Any]:
    """Return the inputs of runs, of the first `runs` if it is given. Pictures are read when they are needed.

    `source` is a folder of pictures, a picture, an .npz with an array for each input, an .npy, or "module:function" in
    the working folder or an installed package. Arrays hold one run, or many along their first axis. Raises InputError.
    """
    path = Path(source)
    found: Iterable[Any]
    if path.is_dir():
        pictures = sorted(file for file in path.iterdir() if file.suffix.lower() in PICTURES)
        if not pictures:
            raise InputError(f"the folder {source} holds no pictures: {', '.join(PICTURES)}")
        found = _Pictures(pictures, _only_input(model, "pictures"), normalization)
    elif path.suffix.lower() in PICTURES and path.is_file():
        found = _Pictures([path], _only_input(model, "pictures"), normalization)
    elif path.suffix.lower() in ARRAYS and path.is_file():
        found = _runs(path, model)
    elif ":" in source and not path.exists():
        found = _called(source)
    else:
        raise InputError(f"there is no calibration data {source!r}: it is {KINDS}")
    return found if runs is None else list(islice(found, runs))


def _only_input(model: Model, what: str) -> ModelInput:
    if len(model.inputs) != 1:
        names = ", ".join(value.name for value in model.inputs)
        raise InputError(f"{what} are data of one input, and {model.name} has {names}: use an .npz, or module:function")
    return model.inputs[0]


@dataclass(frozen=True)
class _Pictures:
    """Pictures as arrays. They can be read again and again."""

    files: Sequence[Path]
    wanted: ModelInput
    normalization: Normalization

    def __iter__(self) -> Iterator[Array]:
        known = [dim if isinstance(dim, int) else None for dim in self.wanted.shape or ()]
        for file in self.files:
            yield picture_array(file, self.wanted, known, self.normalization)


def _runs(path: Path, model: Model) -> list[dict[str, Array]]:
    """The runs in a file of arrays."""
    try:
        loaded = np.load(path)
        arrays = {name: loaded[name] for name in loaded.files} if path.suffix.lower() == ".npz" else {"": loaded}
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if "" in arrays:
        arrays = {_only_input(model, "the values of an .npy").name: arrays[""]}
    wanted = {value.name: value for value in model.inputs}
    unknown = [name for name in arrays if name not in wanted]
    if unknown or len(arrays) < len(wanted):
        raise InputError(f"{path} holds {', '.join(arrays) or 'nothing'}, and the inputs are {', '.join(wanted)}")
    split = {name: _split(array, wanted[name]) for name, array in arrays.items()}
    counts = {name: len(runs) for name, runs in split.items()}
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InputError(f"{path} holds different numbers of runs for the inputs: {listed}")
    return [dict(zip(split, arrays_of_run, strict=True)) for arrays_of_run in zip(*split.values(), strict=True)]


def _split(array: Array, wanted: ModelInput) -> Sequence[Array]:
    """The arrays of the runs: along a first axis of their own, or in batches of the size that the input wants."""
    dims = None if wanted.shape is None else list(wanted.shape)
    if dims is None:
        return [array]
    if array.ndim == len(dims) + 1:
        return [*array]
    batch = dims[0] if dims and array.ndim == len(dims) else None
    if isinstance(batch, int) and batch and len(array) != batch and len(array) % batch == 0:
        return np.split(array, len(array) // batch)
    return [array]


def _called(source: str) -> Iterable[Any]:
    """The inputs that a function returns or yields."""
    module, _, name = source.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"calibration data {source!r}: {error}; it is {KINDS}") from error
    finally:
        sys.path.pop(0)
    if not callable(function):
        raise InputError(f"calibration data {source!r} is {type(function).__name__}, not a function")
    found = function()
    if not isinstance(found, Iterable):
        what = type(found).__name__
        raise InputError(f"calibration data {source!r} returns {what}: yield a dict of arrays for each run")
    return found
