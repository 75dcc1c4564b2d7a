"""Mutations of graphs: the inputs and outputs of nodes, which nodes there are, and their order."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from fuzz.mutations import NAMES, Random, Subject, mutation, pick

FORMULAS = ("Relu", "Sigmoid", "Neg", "Exp", "Tanh", "Abs", "HardSwish", "Identity", "Erf", "Sqrt", "Floor", "Gelu")
OTHERS = ("Transpose", "Flatten", "Shape", "Size", "Softmax", "ReduceMean", "ReduceMax", "NonZero", "Cast")


@mutation(3)
def rewired(subject: Subject, rng: Random) -> str:
    graph = pick(rng, [g for g in subject.graphs() if g.node])
    node = pick(rng, [n for n in graph.node if n.input]) if graph is not None else None
    if node is None:
        return ""
    at = int(rng.integers(len(node.input)))
    old = node.input[at]
    node.input[at] = pick(rng, [*subject.values(graph), ""])
    return f"{node.op_type} reads {node.input[at]} for {old}"


@mutation(3)
def inputs_of_node(subject: Subject, rng: Random) -> str:
    """One less or one more."""
    graph = pick(rng, [g for g in subject.graphs() if g.node])
    node = pick(rng, list(graph.node)) if graph is not None else None
    if node is None:
        return ""
    if node.input and rng.random() < 0.5:
        del node.input[int(rng.integers(len(node.input)))]
    else:
        node.input.append(pick(rng, [*subject.values(graph), ""]))
    return f"{node.op_type} has {len(node.input)}"


@mutation(1)
def outputs_of_node(subject: Subject, rng: Random) -> str:
    node = pick(rng, subject.nodes())
    if node is None:
        return ""
    how = int(rng.integers(3))
    if how == 0 and node.output:
        del node.output[-1]
    elif how == 1 and node.output:
        node.output[int(rng.integers(len(node.output)))] = ""
    else:
        node.output.append(f"more_{len(node.output)}")
    return f"{node.op_type} has {list(node.output)}"


@mutation(2)
def renamed(subject: Subject, rng: Random) -> str:
    """A value gets a name that another has, or that perframe might invent."""
    graph = pick(rng, [g for g in subject.graphs() if g.node])
    if graph is None:
        return ""
    values = subject.values(graph)
    old = pick(rng, values)
    new = pick(rng, (*NAMES, *values, f"{old}:1", f"{old}:last"))
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]
    if graph is subject.model.graph:
        for info in (*graph.input, *graph.output, *graph.initializer):
            info.name = new if info.name == old else info.name
        if old in subject.inputs:
            subject.inputs[new] = subject.inputs.pop(old)
    return f"{old} is {new}"


@mutation(2)
def nodes_otherwise(subject: Subject, rng: Random) -> str:
    """One less, one twice, or two in another order."""
    graph = pick(rng, [g for g in subject.graphs() if g.node])
    if graph is None:
        return ""
    nodes, at = list(graph.node), int(rng.integers(len(graph.node)))
    how = int(rng.integers(3))
    if how == 0:
        del nodes[at]
    elif how == 1:
        nodes.insert(at, nodes[at])
    else:
        nodes.insert(int(rng.integers(len(nodes))), nodes.pop(at))
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)
    return ("dropped", "doubled", "moved")[how]


@mutation(1)
def other_operator(subject: Subject, rng: Random) -> str:
    node = pick(rng, subject.nodes())
    if node is None:
        return ""
    old, node.op_type = node.op_type, pick(rng, subject.pool)
    return f"{old} is {node.op_type}"


@mutation(8)
def more_behind(subject: Subject, rng: Random) -> str:
    """Layers behind an output, or before an input, which passes may fuse or move."""
    graph = subject.model.graph
    info = pick(rng, [o for o in graph.output if o.type.HasField("tensor_type")])
    if info is None or not any(info.name in node.output for node in graph.node):
        return ""
    inside = f"inside_{len(graph.node)}"
    for node in graph.node:
        node.output[:] = [inside if name == info.name else name for name in node.output]
        node.input[:] = [inside if name == info.name else name for name in node.input]
    said, name = [], inside
    for count in range(int(rng.integers(1, 4))):
        op = str(pick(rng, FORMULAS if rng.random() < 0.7 else OTHERS))
        attributes = {"to": int(pick(rng, (1, 6, 7, 9, 10, 11)))} if op == "Cast" else {}
        binary = rng.random() < 0.3 and op in FORMULAS
        if binary:
            op, other = str(pick(rng, ("Add", "Mul", "Sub", "Max"))), pick(rng, (inside, name, *subject.inputs))
        made = f"{inside}_{count}"
        graph.node.append(helper.make_node(op, [name, other] if binary else [name], [made], **attributes))
        name = made
        said.append(op)
    graph.node[-1].output[0] = info.name
    info.CopyFrom(helper.make_tensor_value_info(info.name, TensorProto.UNDEFINED, None))
    info.type.tensor_type.elem_type = _guess(said, subject)
    if rng.random() < 0.3:
        graph.output.append(helper.make_tensor_value_info(inside, info.type.tensor_type.elem_type, None))
    return f"{info.name}: {' '.join(said)}"


def _guess(said: list[str], subject: Subject) -> int:
    """Guess an output's dtype: onnxruntime needs it in the file, though perframe infers its own."""
    return int(TensorProto.INT64 if said[-1] in ("Shape", "Size", "NonZero") else TensorProto.FLOAT)


@mutation(2)
def in_a_branch(subject: Subject, rng: Random) -> str:
    """All nodes move into both bodies of an If."""
    graph = subject.model.graph
    if not graph.node or "which" in subject.inputs:
        return ""
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    del graph.node[:]
    bodies = [helper.make_graph(nodes, f"body{i}", [], [*graph.output]) for i in range(2)]
    names = [info.name for info in graph.output]
    graph.node.append(helper.make_node("If", ["which"], names, then_branch=bodies[0], else_branch=bodies[1]))
    graph.input.append(helper.make_tensor_value_info("which", TensorProto.BOOL, []))
    subject.inputs["which"] = np.array(rng.random() < 0.5)
    return f"{len(nodes)} nodes"


@mutation(2)
def in_a_loop(subject: Subject, rng: Random) -> str:
    """All nodes move into a loop that collects their outputs."""
    graph = subject.model.graph
    outputs = [o for o in graph.output if o.type.HasField("tensor_type")]
    if not graph.node or "trips" in subject.inputs or len(outputs) != len(graph.output):
        return ""
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    given = [helper.make_tensor_value_info("turn", TensorProto.INT64, [])]
    given.append(helper.make_tensor_value_info("going", TensorProto.BOOL, []))
    nodes.append(helper.make_node("Identity", ["going"], ["goes_on"]))
    made = [helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []), *outputs]
    names = [f"all_{info.name}" for info in outputs]
    kinds = [info.type.tensor_type.elem_type for info in outputs]
    body = helper.make_graph(nodes, "body", given, made)
    del graph.node[:], graph.output[:]
    graph.node.append(helper.make_node("Loop", ["trips", ""], names, body=body))
    graph.output.extend(helper.make_tensor_value_info(n, k, None) for n, k in zip(names, kinds, strict=True))
    graph.input.append(helper.make_tensor_value_info("trips", TensorProto.INT64, []))
    subject.inputs["trips"] = np.array(pick(rng, (0, 1, 2, 3, -1)), np.int64)
    return f"{subject.inputs['trips']} times"


@mutation(2)
def in_a_function(subject: Subject, rng: Random) -> str:
    """All nodes move into a function, which is called with or without a name."""
    graph, domain = subject.model.graph, "fuzz"
    if not graph.node or any(function.domain == domain for function in subject.model.functions):
        return ""
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    inputs = [*dict.fromkeys(info.name for info in (*graph.input, *graph.initializer))]
    outputs = [info.name for info in graph.output]
    subject.model.functions.append(
        helper.make_function(domain, "F", inputs, outputs, nodes, list(subject.model.opset_import))
    )
    del graph.node[:]
    graph.node.append(helper.make_node("F", inputs, outputs, domain=domain, name=pick(rng, ("", "call", "/"))))
    subject.model.opset_import.append(helper.make_opsetid(domain, 1))
    return f"{len(nodes)} nodes"


@mutation(1)
def other_opset(subject: Subject, rng: Random) -> str:
    entry = pick(rng, list(subject.model.opset_import))
    if entry is None:
        return ""
    entry.version = int(pick(rng, (0, 1, 6, 7, 9, 10, 11, 12, 13, 16, 17, 18, 20, 21, 22, 23, 24, 99, 2**40)))
    return f"{entry.domain} {entry.version}"


@mutation(1)
def damaged(subject: Subject, rng: Random) -> str:
    """Bytes of the file are others, less, or more."""
    data = bytearray(subject.model.SerializeToString())
    if not data:
        return ""
    how = int(rng.integers(4))
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(data)))
        if how == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif how == 1:
            data[at] = int(rng.integers(256))
        elif how == 2:
            del data[at : at + int(rng.integers(1, 9))]
        else:
            data[at:at] = bytes(rng.integers(0, 256, int(rng.integers(1, 9)), np.uint8))
        if not data:
            break
    subject.data = bytes(data)
    return ("bits", "bytes", "less", "more")[how]
