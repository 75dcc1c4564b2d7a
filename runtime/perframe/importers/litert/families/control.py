"""Branches, loops and calls: their bodies are other graphs of the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perframe.errors import ModelError
from perframe.importers.builder import Builder
from perframe.importers.litert.node import LiteRTNode
from perframe.importers.litert.table import operator, rows
from perframe.ir import Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.tensor import DataType


def body_of(node: LiteRTNode, inner: Builder, outputs: Sequence[Value], own: Sequence[Value] = ()) -> Model:
    """Return a body of these outputs. Its inputs are its own, and the values of outer graphs that it reads."""
    made: list[Value] = []
    for value in outputs:  # each output is the result of a layer of the body, and only once
        made += inner.layer("Identity", "output", [value], 1, f"{value.name}:out", {})
    for value in made:
        value.declared = value.spec.with_shape(value.spec.shape)
    return Model([*own, *inner.captures.values()], made, inner.layers, name=f"{node.like}, a body")


def captures_of(node: LiteRTNode, bodies: Sequence[Builder]) -> tuple[list[Value], tuple[str, ...]]:
    """Return the outer values that bodies read, and their names."""
    captured = dict.fromkeys(value for body in bodies for value in body.captures)
    found = [node.builder.local(value) for value in captured]
    return found, tuple(value.name for value in found)


@operator("IF")
def _if(node: LiteRTNode) -> list[Value]:
    given = [node.raw(index) for index in range(1, len(node.operation.inputs))]
    inner = {name: Builder(node.builder) for name in ("then_branch", "else_branch")}
    bodies = {}
    for name, option in (("then_branch", "ThenSubgraphIndex"), ("else_branch", "ElseSubgraphIndex")):
        outputs = node.inline(int(node.option(option)), given, inner[name])
        bodies[name] = body_of(node, inner[name], outputs)
    captures, names = captures_of(node, list(inner.values()))
    return node.several(len(node.operation.outputs), "If", node.raw(0), *captures, bodies=bodies, captures=names)


@operator("WHILE", "STABLEHLO_WHILE")
def _while(node: LiteRTNode) -> list[Value]:
    """A loop whose body computes the next states, and then the condition. The first condition stands before it."""
    condition, body = (int(node.option(f"{name}SubgraphIndex")) for name in ("Cond", "Body"))
    given = [node.raw(index) for index in range(len(node.operation.inputs))]
    inner = Builder(node.builder)
    count = inner.input("iteration", DataType.INT64, DynamicTensorShape(()))
    going = inner.input("going", DataType.BOOL, None)
    graph = node.tensors.file.graphs[body]
    if len(graph.inputs) != len(given):
        raise ModelError(f"a loop carries {len(given)} states, and its body takes {len(graph.inputs)}")
    states = []
    for index, value in zip(graph.inputs, given, strict=True):
        spec = value.spec
        shape = None if spec.shape is None else _loosened(spec, graph.tensors[index].shape)
        states.append(inner.input("state", spec.dtype, shape))
    first = node.inline(condition, given)[0]
    made = node.inline(body, states, inner)
    again = node.inline(condition, made, inner)[0]
    model = body_of(node, inner, [again, *made], [count, going, *states])
    captures, names = captures_of(node, [inner])
    shape = first.spec.shape
    if shape is not None and len(shape):
        first = node("Reshape", first, node.constant((), np.int64))
    states = [*given, *captures]
    return node.several(len(given), "Loop", None, first, *states, bodies={"body": model}, captures=names)


def _loosened(spec: PartialTensor, declared: Sequence[int | None]) -> DynamicTensorShape | None:
    """Return the dims of a state that the file declares too: it may have others in later runs of the body."""
    if spec.shape is None or len(spec.shape) != len(declared):
        return None
    return DynamicTensorShape(one if one == other else None for one, other in zip(spec.shape, declared, strict=True))


def _call(node: LiteRTNode, option: str) -> list[Value]:
    """Import the graph that an option names. A composite's graph computes it from simpler operators."""
    given = [node.raw(index) for index in range(len(node.operation.inputs))]
    return node.inline(int(node.option(option)), given)


rows({"CALL": "Subgraph", "STABLEHLO_COMPOSITE": "DecompositionSubgraphIndex"}, _call, __name__)


@operator("CALL_ONCE")
def _call_once(node: LiteRTNode) -> list[Value]:
    """A graph that prepares variables. Those operators are not supported, so there is nothing to prepare."""
    return []
