"""Small graphs of the project's own, in which layers meet as fusing them, branches and open dims need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fuzz.seeds import Given, Seed

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Builder:
    """Writes a graph node by node."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name, self.rng = name, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.infos: list[onnx.ValueInfoProto] = []
        self.given: Given = {}

    def input(self, name: str, value: Any, dims: Any = None) -> str:
        """An input of this value, declared with these dims."""
        array = np.asarray(value)
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.infos.append(helper.make_tensor_value_info(name, kind, list(array.shape) if dims is None else dims))
        self.given[name] = array
        return name

    def normal(self, *shape: int) -> Any:
        """Random numbers."""
        return self.rng.normal(size=shape).astype(np.float32)

    def constant(self, value: Any, dtype: Any = None) -> str:
        """An initializer."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def number(self, value: float) -> str:
        """A float as an initializer."""
        return self.constant(value, np.float32)

    def ints(self, *values: int) -> str:
        """A row of whole numbers as an initializer."""
        return self.constant(values, np.int64)

    def weights(self, *shape: int) -> str:
        """Random weights."""
        return self.constant(self.normal(*shape) * 0.5, np.float32)

    def __call__(self, op: str, *inputs: str, count: int = 1, domain: str = "", **attributes: Any) -> Any:
        """A node; returns its output's name, or its outputs'."""
        outputs = [f"v{len(self.nodes)}_{index}" for index in range(count)]
        self.nodes.append(helper.make_node(op, inputs, outputs, f"n{len(self.nodes)}", domain=domain, **attributes))
        return outputs[0] if count == 1 else outputs

    def seed(self, *outputs: str, opset: int = 18, functions: Any = ()) -> Seed:
        """The finished model; its outputs are floats."""
        infos = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, self.name, self.infos, infos, self.constants)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
        model = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)
        return Seed(self.name, model.SerializeToString(), self.given, own=True)


def graphs() -> Iterator[Seed]:
    """All of them."""
    yield from (convolutions(), depthwise(), attention(), recurrent(), quantized(), shapes(), branches(), loop())
    yield from (scan(), sequences(), functions(), detection(), gathering())


def convolutions() -> Seed:
    g = Builder("convolutions")
    x = g.input("x", g.normal(1, 4, 9, 8), ["n", 4, "h", "w"])
    y = g("Relu", g("Conv", x, g.weights(8, 4, 3, 3), g.weights(8), pads=[1, 1, 1, 1]))
    statistics = [g.constant(g.normal(8) ** 2) for _ in range(4)]
    y = g("BatchNormalization", g("Conv", y, g.weights(8, 8, 1, 1)), *statistics)
    z = g("Add", y, g("Conv", x, g.weights(8, 4, 1, 1)))
    z = g("MaxPool", g("HardSwish", z), kernel_shape=[2, 2], strides=[2, 2])
    z = g("ConvTranspose", z, g.weights(8, 4, 2, 2), strides=[2, 2])
    return g.seed(z, g("GlobalAveragePool", z))


def depthwise() -> Seed:
    g = Builder("depthwise", 1)
    x = g.input("x", g.normal(1, 6, 6, 3))
    y = g("Pad", g("Transpose", x, perm=[0, 3, 1, 2]), g.ints(0, 0, 0, 0, 0, 0, 1, 1))
    y = g("Conv", y, g.weights(3, 1, 3, 3), group=3, strides=[2, 2])
    y = g("Clip", y, g.number(0), g.number(6))
    y = g("Mul", y, g("Sigmoid", g("Conv", g("GlobalAveragePool", y), g.weights(3, 3, 1, 1))))
    y = g("Resize", y, "", g.constant([1, 1, 2, 2], np.float32), mode="linear")
    return g.seed(g("Transpose", y, perm=[0, 2, 3, 1]))


def attention() -> Seed:
    g = Builder("attention", 2)
    x = g.input("x", g.normal(2, 5, 8), ["b", "t", 8])
    h = g("LayerNormalization", x, g.weights(8), g.weights(8))
    heads = []
    for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        made = g("Add", g("MatMul", h, g.weights(8, 8)), g.weights(8))
        heads.append(g("Transpose", g("Reshape", made, g.ints(0, 0, 2, 4)), perm=perm))
    scores = g("Softmax", g("Div", g("MatMul", heads[0], heads[1]), g.number(2)), axis=-1)
    mixed = g("Transpose", g("MatMul", scores, heads[2]), perm=[0, 2, 1, 3])
    y = g("Add", x, g("Reshape", mixed, g.ints(0, 0, 8)))
    return g.seed(g("Mul", y, g("Erf", y)))


def recurrent() -> Seed:
    g = Builder("recurrent", 3)
    x = g.input("x", g.normal(4, 2, 3))
    y, h, _ = g("LSTM", x, g.weights(1, 20, 3), g.weights(1, 20, 5), g.weights(1, 40), count=3, hidden_size=5)
    rows = g("Squeeze", y, g.ints(1))
    z, _ = g("GRU", rows, g.weights(1, 12, 5), g.weights(1, 12, 4), count=2, hidden_size=4)
    return g.seed(z, h)


def quantized() -> Seed:
    g = Builder("quantized", 4)
    x = g.input("x", g.normal(1, 3, 6, 6))
    scale, zero = g.number(0.0513), g.constant(120, np.uint8)  # an odd scale: little lies between two steps

    def coarse(value: str) -> str:
        return str(g("DequantizeLinear", g("QuantizeLinear", value, scale, zero), scale, zero))

    numbers = g.constant(g.rng.integers(-9, 9, (4, 3, 3, 3)), np.int8)
    w = g("DequantizeLinear", numbers, g.number(0.0217), g.constant(0, np.int8))
    y = coarse(g("Relu", g("Conv", coarse(x), w)))
    return g.seed(coarse(g("Add", y, y)))


def shapes() -> Seed:
    g = Builder("shapes", 5)
    x = g.input("x", g.normal(2, 3, 4), ["a", "b", 4])
    dims = g("Shape", x)
    rows = g("Mul", g("Gather", dims, g.constant(0, np.int64)), g.constant(2, np.int64))
    rest = g("Slice", dims, g.ints(1), g.ints(3))
    wide = g("Expand", x, g("Concat", g.ints(2, 1), rest, axis=0))
    flat = g("Reshape", wide, g.ints(-1, 4))
    ids = g("Range", g.constant(0, np.int64), rows, g.constant(1, np.int64))
    zeros = g("ConstantOfShape", g("Concat", g("Unsqueeze", rows, g.ints(0)), g.ints(2), axis=0))
    y = g("Concat", g("Gather", flat, ids), zeros, axis=1)
    back = g("Slice", y, g.ints(3), g.ints(0), g.ints(0), g.ints(-1))
    return g.seed(g("Tile", y, g.ints(1, 2)), back)


def _info(name: str, kind: int = FLOAT, shape: Any = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _body(nodes: list[onnx.NodeProto], given: list[Any], outputs: list[Any]) -> onnx.GraphProto:
    return helper.make_graph(nodes, "body", given, outputs)


def branches() -> Seed:
    g = Builder("branches", 6)
    x, c = g.input("x", g.normal(3, 4)), g.input("c", np.array(True))
    then = _body([helper.make_node("Neg", [x], ["t"])], [], [_info("t")])
    inner = _body([helper.make_node("Exp", [x], ["e"])], [], [_info("e")])
    other = _body([helper.make_node("If", [c], ["f"], then_branch=inner, else_branch=then)], [], [_info("f")])
    return g.seed(g("Add", g("If", c, then_branch=then, else_branch=other), x))


def loop() -> Seed:
    g = Builder("loop", 7)
    n, x = g.input("n", np.array(3)), g.input("x", g.normal(2, 3))
    nodes = [
        helper.make_node("Identity", ["going"], ["on"]),
        helper.make_node("Mul", ["state", x], ["next"]),
        helper.make_node("ReduceSum", ["next"], ["row"], keepdims=0),
    ]
    given = [_info("i", INT64, []), _info("going", BOOL, []), _info("state", FLOAT, [2, 3])]
    body = _body(nodes, given, [_info("on", BOOL, []), _info("next", FLOAT, [2, 3]), _info("row", FLOAT, [])])
    last, rows = g("Loop", n, "", x, count=2, body=body)
    return g.seed(g("Tanh", last), rows)


def scan() -> Seed:
    g = Builder("scan", 8)
    state, x = g.input("s", g.normal(3)), g.input("x", g.normal(4, 3), ["t", 3])
    nodes = [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Neg", ["c"], ["d"])]
    a, b, c, d = (_info(name, FLOAT, [3]) for name in "abcd")
    return g.seed(*g("Scan", state, x, count=2, body=_body(nodes, [a, b], [c, d]), num_scan_inputs=1))


def sequences() -> Seed:
    g = Builder("sequences", 9)
    x = g.input("x", g.normal(5, 4))
    pieces = g("SplitToSequence", x, g.ints(2, 3), axis=0)
    made = g("SequenceMap", pieces, body=_body([helper.make_node("Relu", ["e"], ["f"])], [_info("e")], [_info("f")]))
    made = g("SequenceInsert", made, g("SequenceAt", pieces, g.constant(0, np.int64)))
    return g.seed(g("ConcatFromSequence", made, axis=0))


def functions() -> Seed:
    g = Builder("functions", 10)
    x = g.input("x", g.normal(2, 6))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    scaled = helper.make_node("LeakyRelu", ["m"], ["b"])
    scaled.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope")
    nodes = [helper.make_node("Neg", ["a"], ["m"]), scaled]
    inner = helper.make_function("local", "Inner", ["a"], ["b"], nodes, opsets, ["slope"])
    calls = [
        helper.make_node("Inner", ["a"], ["m"], domain="local", slope=0.25),
        helper.make_node("Inner", ["m"], ["b"], domain="local", slope=2.0),
    ]
    outer = helper.make_function("local", "Outer", ["a"], ["b"], calls, opsets)
    y = g("Add", g("Outer", x, domain="local"), g("Inner", x, domain="local", slope=1.5))
    return g.seed(y, functions=[inner, outer])


def detection() -> Seed:
    g = Builder("detection", 11)
    corners = np.sort(g.rng.random((1, 12, 2, 2)).astype(np.float32), 2).reshape(1, 12, 4)
    boxes, scores = g.input("boxes", corners), g.input("scores", g.rng.random((1, 2, 12)).astype(np.float32))
    kept = g(
        "NonMaxSuppression", boxes, scores, g.ints(5), g.constant([0.5], np.float32), g.constant([0.1], np.float32)
    )
    rows = g("Gather", kept, g.ints(2), axis=1)
    values, _ = g("TopK", g("Reshape", scores, g.ints(2, 12)), g.ints(3), count=2)
    found = g("NonZero", g("Greater", scores, g.number(0.5)))
    return g.seed(g("Cast", found, to=FLOAT), g("Cast", rows, to=FLOAT), values)


def gathering() -> Seed:
    g = Builder("gathering", 12)
    x, at = g.input("x", g.normal(5, 4)), g.input("at", np.int64([[0, 4], [2, -1]]))
    index = g("Expand", g.constant([[[0]], [[1]]], np.int64), g.ints(2, 2, 4))
    y = g("GatherElements", g("Gather", x, at), index, axis=1)
    z = g("ScatterND", x, g.constant([[1], [3]], np.int64), g.constant(np.zeros((2, 4)), np.float32))
    places, ones = g.constant([[0, 1, 2, 0]], np.int64), g.constant(np.ones((1, 4)), np.float32)
    z = g("ScatterElements", z, places, ones, axis=0, reduction="add")
    return g.seed(y, z, g("GatherND", x, g.constant([[0, 1], [4, 3]], np.int64)))
