"""Branches and loops. Their bodies are models; `captures` names what these read of the values around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perframe.layers.attributes import Flag, Natural
from perframe.layers.base import layer
from perframe.spec import Dim, DynamicTensorShape, PartialTensor


def _merged(a: DynamicTensorShape | None, b: DynamicTensorShape | None) -> DynamicTensorShape | None:
    """What two shapes have in common."""
    if a is None or b is None or len(a) != len(b):
        return None
    return DynamicTensorShape(x if x == y else None for x, y in zip(a, b, strict=True))


@layer(on_host=True, pure=False)
def If(
    condition: PartialTensor, *around: PartialTensor, bodies: Mapping[str, Any], captures: Sequence[str] = ()
) -> tuple[PartialTensor, ...]:
    first, second = (bodies[name].outputs for name in ("then_branch", "else_branch"))
    return tuple(PartialTensor(a.dtype, _merged(a.shape, b.shape)) for a, b in zip(first, second, strict=True))


If.body_for = lambda condition: "then_branch" if condition.reshape(-1)[0] else "else_branch"


@layer(on_host=True, pure=False)
def Loop(
    trips: PartialTensor | None = None,
    condition: PartialTensor | None = None,
    *carried: PartialTensor,
    bodies: Mapping[str, Any],
    captures: Sequence[str] = (),
) -> tuple[PartialTensor, ...]:
    outputs = bodies["body"].outputs[1:]
    states = len(carried) - len(captures)
    kept = [
        PartialTensor(value.dtype, _merged(value.shape, given.shape if given is not None else None))
        for value, given in zip(outputs[:states], carried[:states], strict=True)
    ]
    return (*kept, *(_stacked(value, 0) for value in outputs[states:]))


def _stacked(value: Any, axis: int) -> PartialTensor:
    if value.shape is None:
        return PartialTensor(value.dtype)
    dims: list[Dim] = list(value.shape)
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, None)
    return PartialTensor(value.dtype, DynamicTensorShape(dims))


@layer(on_host=True, pure=False)
def Scan(
    *inputs: PartialTensor,
    bodies: Mapping[str, Any],
    num_scan_inputs: Natural,
    captures: Sequence[str] = (),
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[Flag] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[Flag] | None = None,
    batched: Flag = 0,
) -> tuple[PartialTensor, ...]:
    outputs = bodies["body"].outputs
    states = len(inputs) - len(captures) - num_scan_inputs - batched
    axes = scan_output_axes or (0,) * (len(outputs) - states)
    if batched:
        return tuple(PartialTensor(value.dtype) for value in outputs)
    kept = [PartialTensor(value.dtype, value.shape) for value in outputs[:states]]
    return (*kept, *(_stacked(value, axis) for value, axis in zip(outputs[states:], axes, strict=True)))
