"""Finds the pass that makes a model compute something else, by letting fewer and fewer passes change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from perframe.backends import BackendName, backend_type, waiting_for_kernels
from perframe.backends.precision import FULL, Precision
from perframe.errors import PerframeError
from perframe.execution.layer_check import apart
from perframe.execution.worker import Worker
from perframe.graphics import GLContext
from perframe.ir import Array, Layer, Model
from perframe.passes import preparations
from perframe.tensor import BackendType, Tensor

SHOWN = 4  # of the layers that a pass made


class Loading(Protocol):
    """Loads a model with a number of runs of passes, or with none."""

    def __call__(self, *, optimize: bool = True, stop_after: int | None = None) -> Model:
        """Load it."""


@dataclass(frozen=True)
class Culprit:
    """The pass from which on a model computes something else.

    `number` counts the runs of passes that changed the model, this one included, and `backend` is empty for a pass at
    load; else the pass prepares models for this backend. `layers` are those that the run made or changed.
    """

    name: str
    number: int
    backend: str
    layers: tuple[str, ...]

    def __str__(self) -> str:
        made = ", ".join(self.layers[:SHOWN]) + (" …" if len(self.layers) > SHOWN else "")
        if self.backend:
            return f"the pass {self.name!r}, which prepares models for {self.backend}, is at fault; it made {made}"
        before = (
            f"--stop-after {self.number - 1} is right" if self.number > 1 else "no pass before it changes the model"
        )
        return f"the pass {self.name!r} is at fault (change {self.number}; {before}); it made {made}"


def culprit(
    load: Loading, inputs: Mapping[str, Any], wanted: Mapping[str, Array], backend: BackendName = BackendType.CPU
) -> Culprit | None:
    """Return the pass from which on the outputs are not `wanted` any more, within rounding.

    None if the outputs are right with all passes, or wrong without any. Loads and runs the model some ten times. Raises
    the PassError of a pass that fails.
    """
    backend = backend_type(backend)

    def fails(model: Model) -> bool:
        try:
            found = outputs_of(model, inputs, backend)
        except PerframeError:
            return True
        return not all(_agrees(name, found[name], wanted[name]) for name in found if name in wanted)

    def at_load(runs: int) -> Model:
        model = load(stop_after=runs)
        model.preparations = 0
        return model

    if fails(load(optimize=False)):
        return None
    model = load()
    total = max((run.number for run in model.report.passes), default=0) if model.report is not None else 0
    if total and fails(at_load(total)):
        number = _first(total, lambda runs: fails(at_load(runs)))
        after, before = load(stop_after=number), load(stop_after=number - 1)
        name = next(run.name for run in after.report.passes if run.number == number) if after.report else "?"
        return Culprit(name, number, "", _new_layers(before, after))
    if not fails(model):
        return None
    names = preparations(model, backend)

    def prepared(runs: int) -> Model:
        made = load()
        made.preparations = runs
        return made

    number = _first(len(names), lambda runs: fails(prepared(runs)))
    return Culprit(names[number - 1], number, str(backend), ())


def outputs_of(
    model: Model,
    inputs: Mapping[str, Any],
    backend: BackendName,
    ctx: GLContext | None = None,
    precision: Precision = FULL,
) -> dict[str, Array]:
    """Run a model once as a user runs it, and return its outputs that are tensors, by name."""
    with waiting_for_kernels(), Worker(model, backend, ctx, **asdict(precision)) as worker:
        worker.schedule(dict(inputs))
        values = {name: worker.peek_output(name) for name in model.output_names}
        return {name: value.download_to_array() for name, value in values.items() if isinstance(value, Tensor)}


def _agrees(name: str, found: Array, wanted: Array) -> bool:
    if found.shape != wanted.shape or found.dtype.kind != wanted.dtype.kind:
        return False
    return apart(Layer("Identity", name, [name], [name]), name, found, wanted.astype(found.dtype)).agrees


def _first(most: int, fails: Callable[[int], bool]) -> int:
    """The first number from 1 to `most` that fails, if all later ones do; `most` does."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


def _new_layers(before: Model, after: Model) -> tuple[str, ...]:
    """The layers that a run of a pass made or changed."""

    def said(layer: Layer) -> tuple[Any, ...]:
        return layer.name, layer.op, tuple(layer.input_names), tuple(layer.output_names), layer.epilogue

    known = {said(layer) for layer in before.layers}
    return tuple(f"{layer.name} ({layer.op})" for layer in after.layers if said(layer) not in known)
