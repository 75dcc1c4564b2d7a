"""Branches and loops. Their bodies are models; `captures` names the values of the outer graph that the bodies read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag, Natural
from perframe.ir.declaration import layer
from perframe.ir.geometry import Ints
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class Branching:
    """One of the bodies runs; the condition decides."""


@dataclass(frozen=True)
class Looping:
    """The body runs while its condition holds, at most as often as the trip count says."""


@dataclass(frozen=True)
class Scanning:
    """The body runs for each slice of the scanned inputs, which come last. Its first inputs and outputs are states.

    Input k is cut along `axes[k]`, and its last slice comes first with `backward[k]`. Slices of an output are joined
    along one of `output_axes`, in reverse with `output_backward`. With `batched` all of this is done for each batch;
    the first input holds the lengths of the batches.
    """

    axes: Ints
    backward: tuple[bool, ...]
    output_axes: Ints
    output_backward: tuple[bool, ...]
    batched: bool


def _merged(a: DynamicTensorShape | None, b: DynamicTensorShape | None) -> DynamicTensorShape | None:
    """Return the dims that two shapes have in common; the others are unknown."""
    if a is None or b is None or len(a) != len(b):
        return None
    return DynamicTensorShape(x if x == y else None for x, y in zip(a, b, strict=True))


def _check_body(body: Any, captures: Sequence[str], inputs: int, least_outputs: int) -> None:
    """Raise InferenceError if a body does not have this many inputs of its own, or has too few outputs."""
    own = sum(value.name not in captures for value in body.inputs)
    if own != inputs:
        raise InferenceError(f"its body has {own} input(s), and gets {inputs}")
    if len(body.outputs) < least_outputs:
        raise InferenceError(f"its body has {len(body.outputs)} output(s), and needs {least_outputs}")


def _check_state(given: PartialTensor | None, into: Any, made: Any) -> None:
    """Raise InferenceError if a state does not keep its type: before a run of the body, in it and after it."""
    dtypes = [value.dtype for value in (given, into, made) if value is not None]
    if len(set(dtypes)) != 1:
        raise InferenceError(f"state {into.name!r} is of different types: {', '.join(map(str, dtypes))}")


@layer(on_host=True, pure=False)
def If(
    condition: PartialTensor, *around: PartialTensor, bodies: Mapping[str, Any], captures: Sequence[str] = ()
) -> tuple[PartialTensor, ...]:
    if condition.dtype is not DataType.BOOL or (condition.shape is not None and condition.shape.size not in (1, None)):
        raise InferenceError(f"the condition of a branch must be one bool, and is {condition}")
    branches = [bodies[name] for name in ("then_branch", "else_branch")]
    for body in branches:
        _check_body(body, captures, 0, 0)
    first, second = (body.outputs for body in branches)
    if [value.dtype for value in first] != [value.dtype for value in second]:
        raise InferenceError("its branches have outputs of different types")
    return tuple(
        PartialTensor(a.dtype, _merged(a.shape, b.shape), kind=a.kind) for a, b in zip(first, second, strict=True)
    )


@If.form
def _if(inputs: Sequence[Any], outputs: Sequence[Any], **attributes: Any) -> Branching:
    return Branching()


If.body_for = lambda condition: "then_branch" if condition.reshape(-1)[0] else "else_branch"


@layer(on_host=True, pure=False)
def Loop(
    trips: PartialTensor | None = None,
    condition: PartialTensor | None = None,
    *carried: PartialTensor,
    bodies: Mapping[str, Any],
    captures: Sequence[str] = (),
) -> tuple[PartialTensor, ...]:
    for value, dtype in ((trips, DataType.INT64), (condition, DataType.BOOL)):
        if value is not None and (value.dtype is not dtype or (value.shape is not None and value.shape.size == 0)):
            raise InferenceError(f"a loop takes an int64 trip count and a bool condition, and one of them is {value}")
    body, states = bodies["body"], len(carried) - len(captures)
    _check_body(body, captures, 2 + states, 1 + states)
    if body.outputs[0].dtype is not DataType.BOOL:
        raise InferenceError(f"its body's first output is its condition and must be bool, and is {body.outputs[0]}")
    own = [value for value in body.inputs if value.name not in captures]
    for given, into, made in zip(carried[:states], own[2:], body.outputs[1:], strict=False):
        _check_state(given, into, made)
    outputs = body.outputs[1:]
    kept = [
        PartialTensor(value.dtype, _merged(value.shape, given.shape if given is not None else None), kind=value.kind)
        for value, given in zip(outputs[:states], carried[:states], strict=True)
    ]
    return (*kept, *(_stacked(value, 0) for value in outputs[states:]))


@Loop.form
def _loop(inputs: Sequence[Any], outputs: Sequence[Any], **attributes: Any) -> Looping:
    return Looping()


def _stacked(value: Any, axis: int) -> PartialTensor:
    if value.kind != "tensor":
        raise InferenceError(f"a body's output {value.name!r} is collected, and is not a tensor")
    if value.shape is None:
        return PartialTensor(value.dtype)
    dims: list[Dim] = list(value.shape)
    if not -len(dims) - 1 <= axis <= len(dims):
        raise InferenceError(f"axis {axis} is outside the tensor that collects {value}")
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, None)
    return PartialTensor(value.dtype, DynamicTensorShape(dims))


@layer(on_host=True, pure=False)
def Scan(
    *inputs: PartialTensor | None,
    bodies: Mapping[str, Any],
    num_scan_inputs: Natural,
    captures: Sequence[str] = (),
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[Flag] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[Flag] | None = None,
    batched: Flag = 0,
) -> tuple[PartialTensor, ...]:
    body, own_inputs = bodies["body"], inputs[batched : len(inputs) - len(captures)]  # batched: lengths come first
    given = [value for value in own_inputs if value is not None]
    if len(given) != len(own_inputs):
        raise InferenceError("none of its states and scanned inputs may be absent")
    states = len(given) - num_scan_inputs
    if num_scan_inputs < 1 or states < 0:
        raise InferenceError(f"num_scan_inputs={num_scan_inputs} does not fit {len(given)} input(s)")
    _check_body(body, captures, len(given), states)
    own = [value for value in body.inputs if value.name not in captures]
    for state, into, made in zip(given[:states], own, body.outputs, strict=False):
        _check_state(state, into, made)
    outputs = body.outputs
    collected = len(outputs) - states
    for what, listed, count in (
        ("scan_input_axes", scan_input_axes, num_scan_inputs),
        ("scan_input_directions", scan_input_directions, num_scan_inputs),
        ("scan_output_axes", scan_output_axes, collected),
        ("scan_output_directions", scan_output_directions, collected),
    ):
        if listed and len(listed) != count:
            raise InferenceError(f"{what} has {len(listed)} entries, and {count} are needed")
        if listed and what.endswith("directions") and not set(listed) <= {0, 1}:
            raise InferenceError(f"{what}={tuple(listed)}: 0 is forward, 1 is backward")
    for value, axis in zip(given[states:], scan_input_axes or (0,) * num_scan_inputs, strict=True):
        rank = None if value.shape is None else len(value.shape) - batched
        if rank is not None and not -rank <= axis < rank:
            raise InferenceError(f"{value} has no axis {axis} to be cut along")
    axes = scan_output_axes or (0,) * collected
    rows = [_stacked(value, axis) for value, axis in zip(outputs[states:], axes, strict=True)]
    if batched:
        return tuple(PartialTensor(value.dtype) for value in outputs)
    kept = [PartialTensor(value.dtype, value.shape) for value in outputs[:states]]
    return (*kept, *rows)


@Scan.form
def _scan(
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    *,
    bodies: Mapping[str, Any],
    num_scan_inputs: int,
    captures: Sequence[str],
    scan_input_axes: Sequence[int] | None,
    scan_input_directions: Sequence[int] | None,
    scan_output_axes: Sequence[int] | None,
    scan_output_directions: Sequence[int] | None,
    batched: int,
) -> Scanning:
    states = len(inputs) - len(captures) - batched - num_scan_inputs
    collected = len(bodies["body"].outputs) - states
    return Scanning(
        tuple(scan_input_axes or (0,) * num_scan_inputs),
        tuple(map(bool, scan_input_directions or (0,) * num_scan_inputs)),
        tuple(scan_output_axes or (0,) * collected),
        tuple(map(bool, scan_output_directions or (0,) * collected)),
        bool(batched),
    )
