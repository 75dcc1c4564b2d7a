"""Comparison of a new file with the framework that its model comes from, on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perframe.backends import waiting_for_kernels
from perframe.errors import ConversionError
from perframe.execution.layer_check import distances, largest_of
from perframe.execution.once import run
from perframe.ir import Model, Value
from perframe.tensor import Array, DataType

TOLERANCE = 1e-3  # of the largest value of an output
HALVES = 2e-2  # for outputs in float16
OPEN = 2  # the size of an open dim


@dataclass(frozen=True)
class OutputError:
    """The largest error of an output: `apart` as a number, and `relative` to the largest value of the output."""

    output: str
    shape: tuple[int, ...]
    apart: float
    relative: float
    agrees: bool


def verify_values(model: Model, path: Path) -> list[OutputError]:
    """Run a model on the inputs in a file, and compare with the outputs there. Raises ConversionError."""
    try:
        with np.load(path, allow_pickle=False) as file:
            values = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise ConversionError(f"the values of the framework cannot be read: {error}") from error
    given = [values[f"input {at}"] for at in range(sum(name.startswith("input ") for name in values))]
    wanted = [values[f"output {at}"] for at in range(len(values) - len(given))]
    if len(given) != len(model.inputs):
        # an exporter drops an input that no output needs
        raise ConversionError(f"{model.name} has {len(model.inputs)} inputs, and the network {len(given)}")
    return compared(model, {value.name: array for value, array in zip(model.inputs, given, strict=True)}, wanted)


def verify_loaded(source: Model, made: Model, seed: int = 0) -> list[OutputError]:
    """Run two models on the same random inputs, and compare."""
    random = np.random.default_rng(seed)
    arrays = {value.name: _random(value, random) for value in source.inputs}
    outputs = run(source, arrays)
    given = {value.name: array for value, array in zip(made.inputs, arrays.values(), strict=True)}
    return compared(made, given, [outputs[name] for name in source.output_names])


def _random(value: Value, random: np.random.Generator) -> Array:
    dims = [] if value.shape is None else [*value.shape]
    shape = [dim if isinstance(dim, int) else OPEN for dim in dims]
    dtype = DataType(value.dtype)
    if dtype is DataType.STRING:
        raise ConversionError(f"the input {value.name!r} has texts: leave out --verify")
    found = random.standard_normal(shape) if dtype.is_float else random.integers(0, 2, shape)
    return np.asarray(found, dtype.numpy)


def compared(model: Model, inputs: Mapping[str, Array], wanted: Sequence[Array]) -> list[OutputError]:
    """Compare a model's outputs with those that are wanted, in their order. Raises ConversionError if their number
    differs.
    """
    with waiting_for_kernels():
        found = run(model, dict(inputs))
    if len(found) != len(wanted):
        raise ConversionError(f"{model.name} has {len(found)} outputs, and the network {len(wanted)}")
    return [_error(name, np.asarray(one), other) for (name, one), other in zip(found.items(), wanted, strict=True)]


def _error(name: str, found: Array, wanted: Array) -> OutputError:
    if found.shape != wanted.shape:
        return OutputError(name, found.shape, np.inf, np.inf, False)
    one, other = found.astype(np.complex128), wanted.astype(np.complex128)
    apart, largest = float(np.max(distances(one, other), initial=0)), largest_of(other)
    relative = apart / largest if largest else (np.inf if apart else 0.0)
    limit = HALVES if wanted.dtype == np.float16 else TOLERANCE if wanted.dtype.kind in "fc" else 0.0
    return OutputError(name, found.shape, apart, relative, relative <= limit)
