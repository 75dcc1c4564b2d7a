"""The machine on which the parts of a model run, and the values that they pass on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perframe.backends import (
    evaluation_of,
    evaluator,
    expect_kernels,
    host_runner,
    job_scheduler,
    open_backend,
    waiting_for_kernels,
)
from perframe.backends.precision import Precision
from perframe.backends.protocol import Backend
from perframe.errors import InputError
from perframe.execution.layer_check import LayerCheck, limit_of
from perframe.graphics import GLContext
from perframe.importers.loading import load
from perframe.ir import Evaluate, Model
from perframe.passes.layout.lay_out_states import StateLayout
from perframe.passes.prepared import prepared
from perframe.safety.records import dataclass
from perframe.tensor import BackendType, Tensor, checks
from perframe.tensor.frames import WITHIN_A_MODEL, current_frame

Values = dict[str, Any]  # Tensors and arrays; lists for sequences, None for empty optionals


@dataclass(frozen=True)
class Machine:
    """The surroundings of parts: a backend, the CPU beside it, and the functions that compute arrays on the host."""

    backend: Backend
    host: Backend
    evaluate: Evaluate
    evaluation: Callable[[Any, Sequence[Any]], Callable[[Sequence[Any]], list[Any]]]  # for all inputs of these shapes
    run_on_host: Callable[[Any, Sequence[Any]], list[Any]]
    prepare: Callable[[Model, Sequence[StateLayout]], Model]  # a model as the backend's kernels want it
    in_job: Callable[[Callable[[], None]], Any]  # begins a job
    strict: bool
    check: LayerCheck | None = None  # receives each model and all values of its run; with a check, runs keep all values


def open_machine(
    backend_type: BackendType, ctx: GLContext | None, precision: Precision, strict: bool, check: LayerCheck | None
) -> Machine:
    """Open a backend, and the CPU beside it. Raises BackendError."""
    with waiting_for_kernels(check is not None or checks.enabled()):
        backend = open_backend(backend_type, ctx, precision)
        host = backend if backend_type is BackendType.CPU else open_backend(BackendType.CPU)
    if host is backend:
        expect_kernels()
    evaluate = evaluator()
    if check is None and checks.enabled():
        check = LayerCheck(evaluate, backend_type, True, limit_of(precision))

    def prepare(model: Model, layouts: Sequence[StateLayout]) -> Model:
        return prepared(model, evaluate, backend_type, layouts)

    return Machine(backend, host, evaluate, evaluation_of(), host_runner(), prepare, job_scheduler(), strict, check)


def downloaded(value: Any, by: str = "") -> Any:
    """Return a value as an array (or a list of arrays, or None). Waits for a pending value: for the call `by`, or for a
    layer of the model that reads it on the host.
    """
    if isinstance(value, list):
        return [downloaded(item, by) for item in value]
    if not isinstance(value, Tensor):
        return value
    if value.backend_type is not BackendType.CPU:
        if by:
            current_frame().blocking(by)
        else:
            current_frame().blocking(f"a layer that reads {value.name!r} on the host", WITHIN_A_MODEL)
    return value.data_on_backend.download(value.shape, value.dtype)


def as_output(name: str, value: Any) -> Any:
    """Turn an array from the host into a tensor. Tensors and empty optionals stay unchanged. The arrays of a sequence
    are copied, since they may be inputs.
    """
    if type(value) is Tensor:
        return value  # a frame waits
    if isinstance(value, list):
        return copied(value)
    if not isinstance(value, np.ndarray):
        return value
    tensor = Tensor(value)
    tensor.name = name
    return tensor


def copied(value: Any) -> Any:
    """Copy an array, or a list of arrays. Other values stay unchanged."""
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def loaded(source: Any) -> Model:
    """Return a model, or load what `load` takes. Raises InputError for anything else."""
    if isinstance(source, Model):
        return source
    takes = isinstance(source, str | Path | bytes) or hasattr(source, "read") or hasattr(source, "SerializeToString")
    if not takes:
        raise InputError(f"a Worker runs a Model, and got {type(source).__name__}: Worker(pf.load(...))")
    return load(source)
