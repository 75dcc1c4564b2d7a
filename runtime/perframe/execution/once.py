"""One call that runs a model once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from perframe.backends import BackendName
from perframe.errors import InputError
from perframe.execution.inputs import Given
from perframe.execution.machine import downloaded
from perframe.execution.worker import Worker
from perframe.graphics import GLContext
from perframe.importers.loading import load
from perframe.ir import Model
from perframe.tensor import Array, BackendType, DataType


def run(
    model: Model | str | Path | bytes | IO[bytes] | Any,
    inputs: Mapping[str, Given] | Given,
    backend: BackendName = BackendType.CPU,
    strict: bool = False,
    ctx: GLContext | None = None,
    weights: str = DataType.FLOAT32,
    activations: str = DataType.FLOAT32,
    cast: bool = False,
) -> dict[str, Array]:
    """Run once, wait, and return the outputs by name, in the model's order.

    `inputs` maps names to arrays; for a model with one input it may be the array itself. `model` is a Model or anything
    that `load` takes. `weights`, `activations` and `cast` are those of a Worker.
    """
    if not isinstance(backend, str):
        raise InputError(
            f"the third argument of pf.run is a backend, and got {type(backend).__name__}: several inputs go into one "
            "dict by their names, as in {'x': array, 'y': array}"
        )
    loaded = model if isinstance(model, Model) else load(model)
    with Worker(loaded, backend, ctx, strict, weights=weights, activations=activations, cast=cast) as worker:
        worker.schedule(by_name(loaded, inputs, "pf.run"))
        return {name: downloaded(worker.peek_output(name), "pf.run()") for name in loaded.output_names}


def by_name(model: Model, inputs: Mapping[str, Given] | Given, caller: str) -> dict[str, Any]:
    """The inputs by name; the only input of a model may come without. Raises InputError."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    names = [value.name for value in model.inputs]
    if len(names) != 1:
        raise InputError(
            f"{caller} takes inputs by name, as in {{'x': array}}, and got {type(inputs).__name__}; "
            f"{model.name} has the inputs {', '.join(names) or '(none)'}"
        )
    return {names[0]: inputs}
