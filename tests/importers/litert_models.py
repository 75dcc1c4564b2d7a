"""Small models as LiteRT files, and inputs for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from importers.litert_files import Array, File, scales

F, INT = "float32", "int32"


def real(*shape: int, low: float = -3, high: float = 3, seed: int = 1) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def whole(*shape: int, dtype: Any = np.int8, seed: int = 1) -> Array:
    kind = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(max(kind.min, -999), min(kind.max, 999), shape).astype(dtype)


def network(file: File | None = None) -> tuple[bytes, Array]:
    """Convolutions, a depthwise one, an addition, a pool, a softmax."""
    file = file or File()
    graph = file.graph
    x = graph.input("image", (1, 8, 10, 3))
    pads = graph.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    padded = graph.op("PAD", [x, pads])
    given = {"strideH": 1, "strideW": 1, "padding": 1, "fusedActivationFunction": 3}
    a = graph.op(
        "CONV_2D", [padded, graph.constant(real(8, 3, 3, 3)), graph.constant(real(8))], given, kind="Conv2DOptions"
    )
    given = {"strideH": 1, "strideW": 1, "depthMultiplier": 1}
    b = graph.op(
        "DEPTHWISE_CONV_2D",
        [a, graph.constant(real(1, 3, 3, 8)), graph.constant(real(8))],
        given,
        kind="DepthwiseConv2DOptions",
    )
    c = graph.op("ADD", [a, b], {"fusedActivationFunction": 1}, kind="AddOptions")
    d = graph.op("MUL", [c, graph.constant(real(8, low=0.1, high=1))], kind="MulOptions")
    e = graph.op("MEAN", [d, graph.constant(np.array([1, 2], np.int32))], {"keepDims": False}, kind="ReducerOptions")
    y = graph.op(
        "FULLY_CONNECTED",
        [e, graph.constant(real(5, 8, low=-0.2, high=0.2)), graph.constant(real(5))],
        kind="FullyConnectedOptions",
    )
    return file.data(graph.op("SOFTMAX", [y], {"beta": 1.0}, kind="SoftmaxOptions")), real(1, 8, 10, 3)


def quantized(dtype: str = "int8", per_axis: bool = True) -> tuple[bytes, Array]:
    """A convolution, a depthwise one, a pool, an addition and a product of matrices, of quantized numbers."""
    file = File(
        versions={"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "ADD": 2, "MAX_POOL_2D": 2, "RESHAPE": 1}
    )
    graph, zero = file.graph, {"int8": 3, "uint8": 130, "int16": 0}[dtype]
    weights = "uint8" if dtype == "uint8" else "int8"
    at = scales(0.05, zero)
    x = graph.input("image", (1, 8, 10, 3), dtype, at)

    def product(
        code: str, given: int, shape: tuple[int, ...], axis: int, scale: float, to: Any, kind: str, **options: Any
    ) -> int:
        count = shape[axis]
        steps = np.linspace(0.01, 0.02, count) if per_axis else np.full(1, 0.01)
        w = graph.constant(whole(*shape, dtype=weights), scales(steps, 128 if weights == "uint8" else 0, axis))
        wide = np.int64 if dtype == "int16" else np.int32
        b = graph.constant(whole(count, dtype=np.int16).astype(wide), scales(steps * scale, 0, 0))
        given = [given, w, b]
        return graph.op(code, given, options, (dtype,), to, kind=kind)

    mid, out = scales(0.3, zero), scales(0.9, zero)
    a = product(
        "CONV_2D", x, (8, 3, 3, 3), 0, 0.05, mid, "Conv2DOptions", strideH=1, strideW=1, fusedActivationFunction=1
    )
    b = product(
        "DEPTHWISE_CONV_2D",
        a,
        (1, 3, 3, 8),
        3,
        0.3,
        out,
        "DepthwiseConv2DOptions",
        strideH=1,
        strideW=1,
        depthMultiplier=1,
    )
    c = graph.op("ADD", [a, b], {}, (dtype,), out, kind="AddOptions")
    d = graph.op(
        "MAX_POOL_2D",
        [c],
        {"filterHeight": 2, "filterWidth": 2, "strideH": 2, "strideW": 2, "padding": 1},
        (dtype,),
        out,
        kind="Pool2DOptions",
    )
    e = graph.op("RESHAPE", [d, graph.constant(np.array([1, 160], np.int32))], {}, (dtype,), out, kind="ReshapeOptions")
    steps = per_axis
    per_axis = False
    y = product("FULLY_CONNECTED", e, (5, 160), 0, 0.9, scales(60.0, zero), "FullyConnectedOptions")
    per_axis = steps
    return file.data(y), whole(1, 8, 10, 3, dtype=dtype)


def branch() -> bytes:
    file = File()
    graph, then, other = file.graph, file.subgraph(), file.subgraph()
    condition, x = graph.input("condition", (), "bool"), graph.input("x", (2, 3))
    then.outputs = [then.op("ABS", [then.input("x", (2, 3))])]
    other.outputs = [other.op("NEG", [other.input("x", (2, 3))])]
    options = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    made = graph.op("IF", [condition, x], options, shapes=[(2, 3)], kind="IfOptions")
    return file.data(graph.op("SQUARE", [made], shapes=[(2, 3)]))


def loop() -> bytes:
    file = File()
    graph, cond, body = file.graph, file.subgraph(), file.subgraph()
    i, x = graph.input("i", (), INT), graph.input("x", (2, 3))
    at, _ = cond.input("i", (), INT), cond.input("x", (2, 3))
    cond.outputs = [cond.op("LESS", [at, cond.constant(np.int32(5))], outputs=("bool",))]
    j, y = body.input("i", (), INT), body.input("x", (2, 3))
    step = body.op("ADD", [j, body.constant(np.int32(1))], {}, (INT,), kind="AddOptions")
    body.outputs = [step, body.op("MUL", [y, body.constant(np.float32(1.5))], {}, kind="MulOptions", shapes=[(2, 3)])]
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    made = graph.op("WHILE", [i, x], options, (INT, F), kind="WhileOptions", shapes=[(), (2, 3)])
    return file.data(*made)
