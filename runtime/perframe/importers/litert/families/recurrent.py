"""Recurrent layers. A state that the file keeps between two runs begins with zeros in each run."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.importers.builder import Builder
from perframe.importers.litert.families.control import body_of, captures_of
from perframe.importers.litert.node import ACTIVATIONS, TANH, LiteRTNode
from perframe.importers.litert.table import operator
from perframe.ir import Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType

NAMES = {0: ("Affine", 1.0), 1: ("Relu", None), TANH: ("Tanh", None), 6: ("Sigmoid", None)}
LAYER_NORMALIZATION = (20, 21, 22, 23)
SATURATED = 9.1  # from here on tanh is 1 in float32


def _joined(node: LiteRTNode, names: list[Value]) -> Value:
    """Return the weights of the gates, one below the other, for one direction."""
    whole = names[0] if len(names) == 1 else node("Concat", *names, axis=0)
    return node("Unsqueeze", whole, node.ints(0))


@operator("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _sequence_lstm(node: LiteRTNode) -> Value:
    _refuse_normalization(node)
    return _lstm(node, node.x(0), bool(node.option("TimeMajor")), 0, False)


def _refuse_normalization(node: LiteRTNode) -> None:
    if any(node.has(index) for index in LAYER_NORMALIZATION):
        raise NotImplementedError("layer normalization within an LSTM is not supported")


@operator("BIDIRECTIONAL_SEQUENCE_LSTM")
def _both_lstm(node: LiteRTNode) -> list[Value] | Value:
    """The weights of the backward direction lie 17 inputs behind those of the forward one."""
    if any(node.has(index) for index in range(39, 48)):
        raise NotImplementedError("auxiliary inputs are not supported")
    major = bool(node.option("TimeMajor"))
    forward = _lstm(node, node.x(0), major, 0, False)
    backward = _lstm(node, node.x(0), major, 17, True)
    return node("Concat", forward, backward, axis=-1) if node.option("MergeOutputs") else [forward, backward]


def _lstm(node: LiteRTNode, x: Value, time_major: bool, offset: int, backward: bool) -> Value:
    """ONNX lists the gates as input, output, forget, cell; the file as input, forget, cell, output."""
    if node.has(16 + offset):
        raise NotImplementedError("a projection within an LSTM is not supported")
    order = (0, 3, 1, 2)
    if node.has(1 + offset):
        w, r, b = ([node.x(base + gate + offset) for gate in order] for base in (1, 5, 12))
    else:  # the input gate is what the forget gate leaves: 1 - sigmoid(x) = sigmoid(-x)
        w, r, b = ([node.x(base + gate + offset) for gate in order[1:]] for base in (1, 5, 12))
        for gates in (w, r, b):
            gates.insert(0, node("Neg", gates[1]))
    (hidden,) = node.sizes(r[0], 1)
    bias = node("Concat", *b, node.constant(np.zeros(4 * hidden, np.float32), np.float32), axis=0)
    peepholes = [node.x(index + offset) for index in (9, 11, 10) if node.has(index + offset)]
    if peepholes and len(peepholes) < 3:
        raise NotImplementedError("peepholes without one for the input gate are not supported")
    p = _joined(node, peepholes) if peepholes else None
    weights = _joined(node, w), _joined(node, r), node("Unsqueeze", bias, node.ints(0)), p
    given = x if time_major else node("Transpose", x, perm=(1, 0, 2))
    steps, clip = node.shape(given)[0], float(node.option("CellClip", 0.0) or 0.0)
    tanh = node.option("FusedActivationFunction") == TANH
    if clip > 0 and not tanh:
        raise NotImplementedError("clipped cells with another activation than Tanh are not supported")
    if clip > 0 and not (isinstance(steps, int) and steps <= clip):  # a cell grows by at most 1 a step
        made = _by_steps(node, given, weights, hidden, clip, backward)
    else:
        attributes = {**_activations(node), "direction": "reverse" if backward else "forward"}
        made = node.several(3, "LSTM", given, *weights[:3], None, None, None, p, hidden_size=hidden, **attributes)[0]
        made = node("Squeeze", made, node.ints(1))
    return made if time_major else node("Transpose", made, perm=(1, 0, 2))


def _activations(node: LiteRTNode) -> dict[str, Any]:
    kind = node.option("FusedActivationFunction")
    name, alpha = NAMES.get(kind, ("", None))
    if not name:
        raise NotImplementedError(f"the activation {kind} is not supported")
    if alpha is None:
        return {"activations": ("Sigmoid", name, name)}
    names = ("Sigmoid", name, name)
    return {"activations": names, "activation_alpha": (0.0, alpha, alpha), "activation_beta": (0.0, 0.0, 0.0)}


def _by_steps(
    node: LiteRTNode, x: Value, weights: tuple[Value | None, ...], hidden: int, clip: float, backward: bool
) -> Value:
    """Scan the steps, and clip the cells after each.

    An output is gate * tanh(cell). It is the same before and after a clip at 10 or so, where tanh is 1 in float32.
    """
    if weights[3] or clip < SATURATED:
        raise NotImplementedError(f"cells that are clipped at {clip}, or have peepholes too, are not supported")
    batch = node("Shape", x, start=1, end=2)
    zeros = node("ConstantOfShape", node("Concat", node.ints(1), batch, node.ints(hidden), axis=0))
    inner = Builder(node.builder)
    shape = node.shape(x)[1:]
    state = DynamicTensorShape((1, shape[0], hidden))
    h, c = (inner.input(name, DataType.FLOAT32, state) for name in ("output", "cell"))
    row = inner.input("step", DataType.FLOAT32, DynamicTensorShape(shape))

    def add(op: str, *inputs: Value | None, count: int = 1, **attributes: Any) -> list[Value]:
        return inner.layer(op, node.like, list(inputs), count, node.like, attributes)

    (sequence,) = add("Unsqueeze", row, inner.constant([0], np.int64))
    _, made, cell = add(
        "LSTM", sequence, *weights[:3], None, h, c, count=3, hidden_size=hidden, activations=("Sigmoid", "Tanh", "Tanh")
    )
    (cell,) = add("Clip", cell, *(inner.constant(limit, np.float32) for limit in (-clip, clip)))
    (rows,) = add("Squeeze", made, inner.constant([0], np.int64))
    model = body_of(node, inner, [made, cell, rows], [h, c, row])
    captures, names = captures_of(node, [inner])
    direction = (int(backward),)
    attributes = {"scan_input_directions": direction, "scan_output_directions": direction, "num_scan_inputs": 1}
    found = node.several(3, "Scan", zeros, zeros, x, *captures, bodies={"body": model}, captures=names, **attributes)
    return found[2]


@operator("LSTM")
def _lstm_step(node: LiteRTNode) -> Value:
    """One step, from states of zeros. Its inputs are those of a sequence."""
    if node.option("KernelType") or len(node.operation.outputs) != 1:
        raise NotImplementedError("an LSTM with five inputs and four outputs (a basic kernel) is not supported")
    _refuse_normalization(node)
    made = _lstm(node, node("Unsqueeze", node.x(0), node.ints(0)), True, 0, False)
    return node("Squeeze", made, node.ints(0))


@operator("UNIDIRECTIONAL_SEQUENCE_RNN")
def _sequence_rnn(node: LiteRTNode) -> Value:
    return _rnn(node, node.x(0), bool(node.option("TimeMajor")), (1, 2, 3), False)


@operator("BIDIRECTIONAL_SEQUENCE_RNN")
def _both_rnn(node: LiteRTNode) -> list[Value] | Value:
    if any(node.has(index) for index in range(9, 12)):
        raise NotImplementedError("auxiliary inputs are not supported")
    major = bool(node.option("TimeMajor"))
    forward = _rnn(node, node.x(0), major, (1, 2, 3), False)
    backward = _rnn(node, node.x(0), major, (5, 6, 7), True)
    return node("Concat", forward, backward, axis=-1) if node.option("MergeOutputs") else [forward, backward]


@operator("RNN")
def _rnn_step(node: LiteRTNode) -> Value:
    """One step, from a state of zeros."""
    made = _rnn(node, node("Unsqueeze", node.x(0), node.ints(0)), True, (1, 2, 3), False)
    return node("Squeeze", made, node.ints(0))


def _rnn(node: LiteRTNode, x: Value, time_major: bool, indices: tuple[int, int, int], backward: bool) -> Value:
    """The activation follows the layer in a file, and lies within the recurrence."""
    w, r, b = (node.x(index) for index in indices)
    (hidden,) = node.sizes(r, 1)
    kind = node.option("FusedActivationFunction")
    name, alpha = NAMES.get(kind, ("", None))
    if not name or (kind in ACTIVATIONS and kind != 1):
        raise NotImplementedError(f"the activation {kind} is not supported")
    extra = {} if alpha is None else {"activation_alpha": (alpha,), "activation_beta": (0.0,)}
    bias = node("Concat", b, node.constant(np.zeros(hidden, np.float32), np.float32), axis=0)
    given = x if time_major else node("Transpose", x, perm=(1, 0, 2))
    made = node.several(
        2,
        "RNN",
        given,
        _joined(node, [w]),
        _joined(node, [r]),
        node("Unsqueeze", bias, node.ints(0)),
        hidden_size=hidden,
        activations=(name,),
        direction="reverse" if backward else "forward",
        **extra,
    )[0]
    made = node("Squeeze", made, node.ints(1))
    return made if time_major else node("Transpose", made, perm=(1, 0, 2))


@operator("SVDF")
def _svdf(node: LiteRTNode) -> Value:
    """One step of a filter of low rank, from a memory of zeros: only the newest entry of the memory counts."""
    x, features, time = node.x(0), node.x(1), node.x(2)
    rank = int(node.option("Rank"))
    filters, memory = node.sizes(time, 0, 1)
    if rank < 1 or filters % rank:
        raise ValueError(f"{filters} filters of rank {rank}")
    newest = node("Gather", time, node.constant(memory - 1, np.int64), axis=1)
    made = node("Mul", node("Gemm", x, features, transB=1), newest)
    parts = node("Reshape", made, node.ints(-1, filters // rank, rank))
    made = node("ReduceSum", parts, node.ints(2), keepdims=0)
    return node.activated(node("Add", made, node.x(3)) if node.has(3) else made)
