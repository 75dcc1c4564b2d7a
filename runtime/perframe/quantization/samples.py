"""Calibration data: inputs of some runs, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.ir import Array, Model, Value

Sample = dict[str, Array]


def checked(model: Model, calibration: Iterable[Mapping[str, Any] | Any]) -> Iterator[Sample]:
    """Yield the inputs of each run, as arrays by name. An array alone is that of the only input.

    Raises InputError that names the run and the input for a wrong name, dtype, shape, or NaN, and if there is no data.
    """
    if isinstance(calibration, Mapping) or not isinstance(calibration, Iterable):
        raise InputError(
            "calibration data is an iterable of dicts of arrays by the inputs' names, one for each run, not "
            f"{type(calibration).__name__}"
        )
    number = 0
    for number, given in enumerate(calibration, 1):
        where = f"run {number} of the calibration data"
        if not isinstance(given, Mapping):
            if len(model.inputs) != 1:
                names = ", ".join(value.name for value in model.inputs)
                raise InputError(f"{where} is {type(given).__name__}, and the model's inputs need names: {names}")
            given = {model.inputs[0].name: given}
        yield _sample(model, given, where)
    if not number:
        raise InputError("there is no calibration data: static quantization needs the inputs of some typical runs")


def _sample(model: Model, given: Mapping[str, Any], where: str) -> Sample:
    wanted = {value.name: value for value in model.inputs}
    unknown, missing = [*given.keys() - wanted.keys()], [*wanted.keys() - given.keys()]
    if unknown or missing:
        raise InputError(
            f"{where} has {'no' if missing else 'an unknown'} input {(missing or unknown)[0]!r}; the model's inputs "
            f"are {', '.join(map(repr, wanted))}"
        )
    return {name: _array(value, given[name], f"{where}, input {name!r}") for name, value in wanted.items()}


def _array(wanted: Value, given: Any, where: str) -> Array:
    array = np.asarray(given)
    if array.dtype != wanted.dtype.numpy:
        raise InputError(f"{where} has the dtype {array.dtype}, and the model wants {wanted.dtype}: convert it")
    shape = wanted.shape
    if shape is not None and (
        len(shape) != array.ndim
        or any(isinstance(dim, int) and dim != size for dim, size in zip(shape, array.shape, strict=True))
    ):
        raise InputError(f"{where} has the shape {array.shape}, and the model wants {shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"{where} holds NaN or infinity: leave this run out, or fix its values")
    return array
