"""Run a case on a backend, and compare what comes out with the case's reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from perframe.backends import BackendName, settle_kernels, waiting_for_kernels
from perframe.execution.machine import downloaded
from perframe.execution.once import run
from perframe.execution.planned_part import PlannedPart
from perframe.execution.worker import Worker
from perframe.importers.loading import load
from perframe.ir import Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.plan.refit import FittedPlan
from perframe.testing.cases import Array, Case

if TYPE_CHECKING:
    from perframe.graphics import GLContext


def check(case: Case, backend: BackendName, ctx: GLContext | None = None) -> None:
    """Run a case on a backend, and compare the outputs with the case's reference: values, dtypes and shapes.

    The layer's shape rule must say what comes out, and nothing wrong where dims of the inputs are unknown or have
    names. The layer also runs with open dims: on the CPU, and for a quarter of the cases on each GL backend. `ctx` is
    the GL context; by default the worker makes a headless one. Raises AssertionError for a difference.
    """
    proto = case.proto()
    expected = case.expected(proto)
    model = load(proto, optimize=False)
    model.preparations = None  # the kernels of a backend's own forms are tested too
    strict = backend != "cpu" and case.on_gl
    with waiting_for_kernels():
        actual = run(model, case.fed, backend=backend, strict=strict, ctx=ctx)
    assert list(actual) == case.output_names, f"the outputs are {list(actual)}, {case.output_names} expected"
    loose = 1 if backend == "cpu" else 10  # shaders may contract and reorder
    for (name, value), want in zip(actual.items(), expected, strict=True):
        assert value.dtype == want.dtype, f"{name} is {value.dtype}, {want.dtype} expected"
        _compare(name, value, want, case, loose)
    check_inference(model, case, actual, loose)
    if backend == "cpu" or (strict and _is_chosen(case, backend)):
        check_open_dims(model, case, expected, backend, ctx)


def _is_chosen(case: Case, backend: BackendName) -> bool:
    """Choose every fourth case for a GL backend, and other ones for the other backend: plans take long there."""
    return crc32(case.name.encode()) % 4 == (backend == "gpu_pixel")


def _compare(name: str, value: Array, want: Array, case: Case, loose: int = 1) -> None:
    assert value.shape == want.shape, f"{name} is {value.shape}, {want.shape} expected"
    if want.dtype.name == "bfloat16":  # NumPy compares its own floats
        value, want = value.astype(np.float32), want.astype(np.float32)
    if want.dtype.kind in "fc":
        np.testing.assert_allclose(value, want, case.rtol * loose, case.atol * loose, err_msg=name)
    else:
        np.testing.assert_array_equal(value, want, err_msg=name)


def check_open_dims(
    model: Model, case: Case, expected: Sequence[Array], backend: BackendName = "cpu", ctx: GLContext | None = None
) -> None:
    """Run with dims that are unknown before the run: first by a plan, then by the plan's template.

    The sizes of every plan must be followed, and the template must serve the sizes that it was made from. Code may use
    a size as an int only where it says so.
    """
    opened = model.copy()
    for value in opened.inputs:
        value.declared = value.spec.with_shape(_open(value.shape))
    with waiting_for_kernels(), Worker(opened, backend, ctx) as worker:
        loose = 1 if backend == "cpu" else 10
        _compare_run(worker, case, expected, loose)
        for part in trace(worker):
            lost = sorted(set(part.losses))
            assert not lost, f"a size is used as an int, and needs `specialized` if that must be: {', '.join(lost)}"
            part.evict_all()
        _compare_run(worker, case, expected, loose)
        for part in worker.parts.planned_parts():
            plan = part.latest_plan
            assert plan is not None, "the part has not run"
            may_fit = part.follows(part.latest_sizes) and plan.program is not None
            assert isinstance(plan, FittedPlan) == may_fit, f"the plan is a {type(plan).__name__}"


def trace(worker: Worker) -> list[PlannedPart]:
    """Trace what the worker planned, and compile all kernels, now. Raises the error of a layer that cannot be followed.

    Return the parts that have plans.
    """
    parts = list(worker.parts.planned_parts())
    for part in parts:
        part.trace_now()
    settle_kernels()
    return parts


def _open(shape: DynamicTensorShape | None) -> DynamicTensorShape | None:
    return None if shape is None else DynamicTensorShape([None] * len(shape))


def _compare_run(worker: Worker, case: Case, expected: Sequence[Array], loose: int) -> None:
    worker.schedule(case.fed)
    for name, want in zip(worker.model.output_names, expected, strict=True):
        _compare(f"with open dims {name}", downloaded(worker.peek_output(name)), want, case, loose)


def check_inference(model: Model, case: Case, actual: Mapping[str, Array], loose: int = 1) -> None:
    """Check that `infer` is right about the outputs, also where dims or ranks of the inputs are unknown.

    Shapes, dtypes and integers must be equal. Floats may differ as much as the case allows.
    """
    known = {value: PartialTensor.of(case.fed[value.name]) for value in model.inputs}
    dims = {value: PartialTensor(value.dtype, _open(value.shape)) for value in model.inputs}
    ranks = {value: PartialTensor(value.dtype, None) for value in model.inputs}
    exact = _specs(model, known)
    for name, value in actual.items():
        assert exact[name].shape == value.shape, f"infer says {name} is {exact[name]}, and it is {value.shape}"
        assert exact[name].dtype == value.dtype.name, f"infer says {name} is {exact[name]}, and it is {value.dtype}"
        claimed = exact[name].value
        if claimed is not None and claimed.dtype.kind == "f":
            np.testing.assert_allclose(claimed, value, case.rtol * loose, case.atol * loose)
        elif claimed is not None:
            np.testing.assert_array_equal(claimed, value)
    sizes = {f"{name}_{axis}": size for name, value in case.fed.items() for axis, size in enumerate(value.shape)}
    names = {
        value: PartialTensor(value.dtype, value.shape and DynamicTensorShape(_names(value.name, value.shape)))
        for value in model.inputs
    }
    for inputs in (dims, ranks, names):
        made = _specs(model, inputs)
        for name, value in actual.items():
            spec = made[name]
            assert spec.dtype == value.dtype.name, f"infer says {name} is {spec.dtype} if it knows less"
            if spec.shape is not None:
                shape = spec.shape.with_dims(sizes)
                assert shape.accepts(value.shape), f"infer says {name} is {spec}, and it is {value.shape}"


def _specs(model: Model, known: Mapping[Value, PartialTensor]) -> dict[str, PartialTensor]:
    return {value.name: spec for value, spec in model.specs(known).items()}


def _names(name: str, shape: DynamicTensorShape) -> list[str]:
    return [f"{name}_{axis}" for axis in range(len(shape))]
