"""States of loops and scans: what their bodies are given, and what they declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perframe.importers.onnx_messages import Message, NeedsLibrary
from perframe.ir import Model
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.tensor import DataType

if TYPE_CHECKING:
    import onnx


def inputs_of_body(op: str, given: Sequence[PartialTensor | None], scanned: int) -> list[PartialTensor | None]:
    """Return the specs of a body's inputs. States may change shape; a scan gives its last `scanned` inputs by rows."""
    if op == "Loop":
        count, going = PartialTensor(DataType.INT64, DynamicTensorShape(())), PartialTensor(DataType.BOOL)
        return [count, going, *(None if s is None else s.with_shape(None) for s in given[2:])]
    states, rows = given[: len(given) - scanned], given[len(given) - scanned :]
    return [*states, *(None if s is None else s.with_shape(None) for s in rows)]


def loosened(graph: onnx.GraphProto, body: Model) -> onnx.GraphProto | None:
    """Return a loop's graph without the declared dims of states that the body gives back with another size, or None if
    there are none. Exporters declare the shape that a state has at first: a list that grows has no rows. Raises
    NeedsLibrary.
    """
    changed: dict[str, list[int] | None] = {}  # the axes of each state; None for another rank
    states = body.inputs[2 : len(graph.input)]
    for given, made in zip(states, body.outputs[1:], strict=False):
        if given.shape is None or made.shape is None:
            continue
        pairs = enumerate(zip(given.shape, made.shape, strict=False))
        axes = [axis for axis, dims in pairs if dims[0] != dims[1] and all(isinstance(dim, int) for dim in dims)]
        if len(given.shape) != len(made.shape):
            changed[given.name] = None
        elif axes:
            changed[given.name] = axes
    if not changed:
        return None
    if isinstance(graph, Message):
        raise NeedsLibrary
    other = type(graph)()
    other.CopyFrom(graph)
    for info in other.input:
        axes_or_all = changed.get(info.name, [])
        if axes_or_all is None:
            info.type.tensor_type.ClearField("shape")
        for axis in axes_or_all or ():
            info.type.tensor_type.shape.dim[axis].Clear()
    return other
