"""Each operator of LiteRT files beside LiteRT's own interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf

pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert, the peer of these tests")
pytest.importorskip("tflite", reason="needs the extra litert")

from importers.litert_files import File, interpreted
from perframe.importers.litert.operators import markdown, operators

Array = np.ndarray[Any, Any]
F, INT = "float32", "int32"


def words(text: str) -> list[str]:
    return text.split()


def real(*shape: int, low: float = -3, high: float = 3, seed: int = 1) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def whole(*shape: int, low: int = -9, high: int = 9, dtype: Any = np.int32, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape, endpoint=True).astype(dtype)


def flags(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).random(shape) < 0.5


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


class Fixed:
    """An input that is a constant of the file."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)


@dataclass
class Case:
    code: str
    inputs: Sequence[Any]
    kind: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    outputs: Sequence[str] = (F,)
    shapes: Sequence[Sequence[int]] = ()
    tolerance: float = 1e-5

    def __str__(self) -> str:
        shown = ",".join(f"{k}={v}" for k, v in self.options.items() if np.isscalar(v))
        return f"{self.code}-{'x'.join(map(str, getattr(self.inputs[0], 'shape', ())))}-{shown}"


def unary(code: str, kind: str = "", dtype: str = F, **domain: Any) -> Case:
    return Case(code, [real(2, 3, 5, 7, **domain)], kind, outputs=(dtype,))


def binary(code: str, a: Array, b: Array, kind: str = "", dtype: str = F, **options: Any) -> Case:
    return Case(code, [a, b], kind, options, (dtype,))


def reduce(code: str, x: Array, axes: Sequence[int], keep: bool, dtype: str = F) -> Case:
    return Case(code, [x, Fixed(ints(*axes))], "ReducerOptions", {"keepDims": keep}, (dtype,))


def conv(x: Array, w: Array, bias: bool = True, **options: Any) -> Case:
    kind = "DepthwiseConv2DOptions" if "depthMultiplier" in options else "Conv2DOptions"
    code = "DEPTHWISE_CONV_2D" if "depthMultiplier" in options else "CONV_2D"
    count = w.shape[3] if "depthMultiplier" in options else w.shape[0]
    given = {"strideH": 1, "strideW": 1, **options}
    inputs = [x, Fixed(w)] + ([Fixed(real(count, seed=5))] if bias else [])
    return Case(code, inputs, kind, given, tolerance=1e-4)


def pool(code: str, h: int, w: int, **options: Any) -> Case:
    given = {"filterHeight": h, "filterWidth": w, "strideH": 1, "strideW": 1, **options}
    return Case(code, [real(2, 7, 5, 3)], "Pool2DOptions", given)


X, Y = real(2, 3, 5, 7), real(2, 3, 5, 7, seed=2)
N, M = whole(2, 5, 3), whole(2, 5, 3, low=1, seed=2)
B, C = flags(2, 5), flags(2, 5, seed=2)
STRIDED = "StridedSliceOptions"

CASES = [
    *(unary(code) for code in words("ABS CEIL ELU EXP FLOOR HARD_SWISH LOGISTIC NEG RELU RELU6 RELU_N1_TO_1 ROUND")),
    *(unary(code) for code in words("SIGN SIN COS TANH RELU_0_TO_1 SQUARE ZEROS_LIKE")),
    *(unary(code, low=0.1, high=9) for code in words("LOG RSQRT SQRT")),
    Case("GELU", [X], "GeluOptions", {"approximate": True}, tolerance=1e-4),
    Case("GELU", [X], "GeluOptions", {"approximate": False}, tolerance=1e-4),
    Case("LEAKY_RELU", [X], "LeakyReluOptions", {"alpha": 0.3}),
    Case("PRELU", [X, Fixed(real(1, 1, 7, seed=4))]),
    Case("LOGICAL_NOT", [B], outputs=("bool",)),
    binary("ADD", X, Y, "AddOptions", fusedActivationFunction=1),
    binary("ADD", X, real(7), "AddOptions", fusedActivationFunction=3),
    binary("ADD", N, M, "AddOptions", INT),
    binary("SUB", X, real(2, 1, 5, 1), "SubOptions", fusedActivationFunction=2),
    binary("MUL", X, Y, "MulOptions"),
    binary("DIV", X, real(2, 3, 5, 7, low=1, high=4), "DivOptions"),
    binary("DIV", N, M, "DivOptions", INT),
    binary("MAXIMUM", X, Y),
    binary("MINIMUM", N, M, dtype=INT),
    binary("POW", real(3, 5, low=0.1), real(3, 5)),
    binary("SQUARED_DIFFERENCE", X, Y),
    binary("FLOOR_DIV", X, Y),
    binary("FLOOR_DIV", N, M, dtype=INT),
    binary("FLOOR_MOD", N, M, dtype=INT),
    binary("FLOOR_MOD", X, real(2, 3, 5, 7, low=1, high=4)),
    binary(
        "ATAN2",
        np.append(X.reshape(-1), [0, 0, 0, 1, -1]).astype(F),
        np.append(Y.reshape(-1), [0, 1, -1, 0, 0]).astype(F),
    ),
    *(
        binary(code, N, whole(2, 5, 3, seed=3), dtype="bool")
        for code in words("EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL")
    ),
    binary("LESS", X, Y, dtype="bool"),
    binary("LOGICAL_AND", B, C, dtype="bool"),
    binary("LOGICAL_OR", B, C, dtype="bool"),
    binary("BITWISE_XOR", N, M, dtype=INT),
    binary("RIGHT_SHIFT", whole(2, 5, low=0, high=99), whole(2, 5, low=0, high=5), dtype=INT),
    Case("ADD_N", [X, Y, X]),
    Case("SELECT", [flags(2), X, Y]),
    Case("SELECT", [flags(2, 3, 5, 7), X, Y]),
    Case("SELECT_V2", [flags(3, 1, 7), X, Y]),
    Case("CAST", [X], "CastOptions", {"inDataType": 0, "outDataType": 2}, (INT,)),
    Case("CAST", [N], "CastOptions", {"inDataType": 2, "outDataType": 0}),
    Case("FAKE_QUANT", [X], "FakeQuantOptions", {"min": -1.9, "max": 2.1, "numBits": 8}),
    # reductions
    *(
        reduce(code, X, (1, 2), keep)
        for code in words("MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD")
        for keep in (True, False)
    ),
    reduce("MEAN", real(3, 5), (-1,), False),
    reduce("SUM", N, (0,), False, INT),
    reduce("REDUCE_ANY", B, (1,), True, "bool"),
    reduce("REDUCE_ALL", B, (0, 1), False, "bool"),
    Case("ARG_MAX", [X, Fixed(ints(-1))], "ArgMaxOptions", {"outputType": 4}, ("int64",)),
    Case("ARG_MIN", [X, Fixed(ints(1))], "ArgMinOptions", {"outputType": 2}, (INT,)),
    Case("TOPK_V2", [X, Fixed(np.int32(3))], "TopKV2Options", outputs=(F, INT)),
    Case("CUMSUM", [X, Fixed(ints(1))], "CumsumOptions", {"exclusive": True, "reverse": True}),
    Case("SOFTMAX", [real(3, 7)], "SoftmaxOptions", {"beta": 1.5}),
    Case("LOG_SOFTMAX", [real(3, 7)]),
    Case("L2_NORMALIZATION", [X], "L2NormOptions"),
    Case(
        "LOCAL_RESPONSE_NORMALIZATION",
        [X],
        "LocalResponseNormalizationOptions",
        {"radius": 2, "bias": 1.5, "alpha": 0.2, "beta": 0.75},
    ),
    # windows
    conv(real(2, 7, 5, 3), real(4, 3, 3, 3, seed=2)),
    conv(real(2, 8, 11, 3), real(5, 3, 2, 3, seed=2), padding=0, strideH=2, strideW=3, fusedActivationFunction=3),
    conv(real(1, 9, 11, 3), real(5, 3, 3, 3, seed=2), padding=1, dilationHFactor=2, dilationWFactor=3),
    conv(real(2, 5, 7, 6), real(4, 3, 3, 3, seed=2)),
    conv(real(2, 1, 1, 3), real(4, 1, 1, 3, seed=2)),
    conv(real(2, 7, 5, 3), real(1, 3, 3, 3, seed=2), depthMultiplier=1, fusedActivationFunction=1),
    conv(real(1, 7, 5, 3), real(1, 3, 3, 6, seed=2), depthMultiplier=2, padding=1, strideH=2, strideW=2),
    Case(
        "CONV_3D",
        [real(1, 5, 7, 5, 3), Fixed(real(2, 3, 2, 3, 4, seed=2)), Fixed(real(4))],
        "Conv3DOptions",
        {"strideD": 1, "strideH": 2, "strideW": 1},
        tolerance=1e-4,
    ),
    Case(
        "TRANSPOSE_CONV",
        [Fixed(ints(1, 8, 10, 4)), Fixed(real(4, 3, 3, 3)), real(1, 4, 5, 3)],
        "TransposeConvOptions",
        {"padding": 0, "strideH": 2, "strideW": 2},
        tolerance=1e-4,
    ),
    Case(
        "TRANSPOSE_CONV",
        [Fixed(ints(2, 9, 16, 4)), Fixed(real(4, 3, 2, 3)), real(2, 4, 5, 3)],
        "TransposeConvOptions",
        {"padding": 1, "strideH": 2, "strideW": 3},
        tolerance=1e-4,
    ),
    Case(
        "CONV_3D_TRANSPOSE",
        [Fixed(ints(1, 6, 8, 10, 4)), Fixed(real(3, 3, 2, 4, 3)), real(1, 3, 4, 5, 3)],
        "Conv3DOptions",
        {"padding": 0, "strideD": 2, "strideH": 2, "strideW": 2},
        tolerance=1e-4,
    ),
    Case("BITCAST", [whole(2, 5)], "BitcastOptions"),
    pool("AVERAGE_POOL_2D", 3, 2),
    pool("AVERAGE_POOL_2D", 2, 2, padding=1, strideH=2, strideW=2, fusedActivationFunction=1),
    pool("MAX_POOL_2D", 3, 3, strideH=2),
    pool("L2_POOL_2D", 3, 2, padding=1),
    Case(
        "FULLY_CONNECTED",
        [real(3, 7), Fixed(real(5, 7, seed=2)), Fixed(real(5))],
        "FullyConnectedOptions",
        {"fusedActivationFunction": 1},
    ),
    Case("FULLY_CONNECTED", [real(3, 1, 7), Fixed(real(5, 7, seed=2))], "FullyConnectedOptions", {"keepNumDims": True}),
    Case("FULLY_CONNECTED", [real(2, 2, 3), Fixed(real(5, 6, seed=2)), Fixed(real(5))], "FullyConnectedOptions"),
    Case("BATCH_MATMUL", [real(2, 3, 5, 7), real(1, 3, 7, 4)], "BatchMatMulOptions", tolerance=1e-4),
    Case(
        "BATCH_MATMUL",
        [real(2, 7, 5), real(2, 4, 7)],
        "BatchMatMulOptions",
        {"adjX": True, "adjY": True},
        tolerance=1e-4,
    ),
    # moves
    Case("RESHAPE", [X, Fixed(ints(2, -1))], "ReshapeOptions"),
    Case("TRANSPOSE", [X, Fixed(ints(0, 3, 1, 2))]),
    Case("SQUEEZE", [real(1, 3, 1, 5)], "SqueezeOptions", {"squeezeDims": [2]}),
    Case("EXPAND_DIMS", [real(3, 5), Fixed(ints(-1))]),
    Case("PACK", [real(3, 5), real(3, 5, seed=2)], "PackOptions", {"axis": 1, "valuesCount": 2}),
    Case("UNPACK", [real(3, 2, 5)], "UnpackOptions", {"axis": 1, "num": 2}, (F, F)),
    Case("CONCATENATION", [X, real(2, 3, 5, 2)], "ConcatenationOptions", {"axis": -1}),
    Case("SPLIT", [Fixed(np.int32(1)), real(2, 6, 5)], "SplitOptions", {"numSplits": 3}, (F, F, F)),
    Case(
        "SPLIT_V",
        [real(2, 7, 5), Fixed(ints(2, -1, 1)), Fixed(np.int32(1))],
        "SplitVOptions",
        {"numSplits": 3},
        (F, F, F),
    ),
    Case("SLICE", [X, Fixed(ints(0, 1, 0, 2)), Fixed(ints(1, 2, -1, 3))]),
    Case("STRIDED_SLICE", [X, Fixed(ints(0, 1, 4, 0)), Fixed(ints(2, 3, 0, 7)), Fixed(ints(1, 1, -2, 3))], STRIDED),
    Case(
        "STRIDED_SLICE",
        [X, Fixed(ints(1, 0)), Fixed(ints(2, 2)), Fixed(ints(1, 1))],
        STRIDED,
        {"shrinkAxisMask": 1, "endMask": 2},
    ),
    Case(
        "STRIDED_SLICE",
        [X, Fixed(ints(0, 0, 1)), Fixed(ints(0, 0, 4)), Fixed(ints(1, 1, 2))],
        STRIDED,
        {"ellipsisMask": 1, "newAxisMask": 2},
    ),
    Case("STRIDED_SLICE", [real(7), Fixed(ints(-1)), Fixed(ints(0)), Fixed(ints(1))], STRIDED, {"shrinkAxisMask": 1}),
    Case("TILE", [real(2, 3), Fixed(ints(3, 2))]),
    Case("BROADCAST_TO", [real(3, 1), Fixed(ints(2, 3, 5))]),
    Case("PAD", [X, Fixed(np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32))]),
    Case("PADV2", [X, Fixed(np.array([[0, 1], [1, 2], [0, 1], [0, 0]], np.int32)), Fixed(np.float32([1.5]))]),
    Case(
        "MIRROR_PAD", [X, Fixed(np.array([[0, 1], [1, 2], [2, 1], [0, 0]], np.int32))], "MirrorPadOptions", {"mode": 0}
    ),
    Case(
        "MIRROR_PAD", [X, Fixed(np.array([[0, 1], [1, 2], [2, 1], [0, 0]], np.int32))], "MirrorPadOptions", {"mode": 1}
    ),
    Case("SPACE_TO_DEPTH", [real(2, 4, 6, 3)], "SpaceToDepthOptions", {"blockSize": 2}),
    Case("DEPTH_TO_SPACE", [real(2, 3, 2, 12)], "DepthToSpaceOptions", {"blockSize": 2}),
    Case("SPACE_TO_BATCH_ND", [real(2, 5, 6, 3), Fixed(ints(3, 2)), Fixed(np.array([[1, 0], [0, 2]], np.int32))]),
    Case("BATCH_TO_SPACE_ND", [real(12, 2, 3, 3), Fixed(ints(3, 2)), Fixed(np.array([[1, 0], [0, 2]], np.int32))]),
    Case("REVERSE_V2", [X, Fixed(ints(1))]),
    Case("REVERSE_SEQUENCE", [real(3, 5, 2), ints(1, 5, 2)], "ReverseSequenceOptions", {"seqDim": 1, "batchDim": 0}),
    Case("FILL", [Fixed(ints(2, 3)), np.float32(1.5)]),
    Case("SHAPE", [X], "ShapeOptions", {"outType": 2}, (INT,)),
    Case("RANK", [X], outputs=(INT,)),
    Case("RANGE", [Fixed(np.float32(1)), Fixed(np.float32(6)), Fixed(np.float32(1.5))]),
    Case("BROADCAST_ARGS", [Fixed(ints(3, 1)), Fixed(ints(2, 1, 5))], outputs=(INT,)),
    Case("RESIZE_BILINEAR", [real(2, 3, 5, 3), Fixed(ints(7, 9))], "ResizeBilinearOptions"),
    Case("RESIZE_BILINEAR", [real(2, 3, 5, 3), Fixed(ints(7, 9))], "ResizeBilinearOptions", {"halfPixelCenters": True}),
    Case("RESIZE_BILINEAR", [real(2, 7, 5, 3), Fixed(ints(3, 9))], "ResizeBilinearOptions", {"alignCorners": True}),
    Case("RESIZE_NEAREST_NEIGHBOR", [real(2, 3, 5, 3), Fixed(ints(7, 9))], "ResizeNearestNeighborOptions"),
    Case(
        "RESIZE_NEAREST_NEIGHBOR",
        [real(2, 3, 5, 3), Fixed(ints(7, 9))],
        "ResizeNearestNeighborOptions",
        {"halfPixelCenters": True},
    ),
    Case(
        "RESIZE_NEAREST_NEIGHBOR",
        [real(2, 7, 5, 3), Fixed(ints(4, 9))],
        "ResizeNearestNeighborOptions",
        {"alignCorners": True},
    ),
    # indices
    Case("GATHER", [X, Fixed(ints(2, 0, 1))], "GatherOptions", {"axis": 1}),
    Case("GATHER", [real(3, 4, 5), whole(3, 2, low=0, high=4)], "GatherOptions", {"axis": 2, "batchDims": 1}),
    Case("GATHER_ND", [X, Fixed(np.array([[0, 2], [1, 0]], np.int32))]),
    Case("EMBEDDING_LOOKUP", [ints(2, 0, 2), Fixed(real(3, 5))]),
    Case("SCATTER_ND", [Fixed(np.array([[1], [3], [1]], np.int32)), real(3, 2), Fixed(ints(5, 2))]),
    Case(
        "SPARSE_TO_DENSE", [Fixed(ints(1, 4)), Fixed(ints(6)), real(2), Fixed(np.float32(-1))], "SparseToDenseOptions"
    ),
    Case("DYNAMIC_UPDATE_SLICE", [real(5, 4), real(2, 3, seed=2), ints(4, 1)]),
    Case(
        "ONE_HOT",
        [ints(1, 4, 0, -1), Fixed(np.int32(3)), Fixed(np.float32(2)), Fixed(np.float32(-1))],
        "OneHotOptions",
        {"axis": -1},
    ),
    Case(
        "ONE_HOT",
        [whole(2, 3, low=0, high=3), Fixed(np.int32(4)), Fixed(np.float32(2)), Fixed(np.float32(-1))],
        "OneHotOptions",
        {"axis": 1},
    ),
    Case("WHERE", [B], outputs=("int64",)),
    Case("UNIQUE", [ints(3, 1, 3, 2, 1)], "UniqueOptions", {"idxOutType": 2}, (INT, INT)),
    Case("BUCKETIZE", [real(3, 5)], "BucketizeOptions", {"boundaries": np.float32([-1, 0, 1])}, (INT,)),
    Case("SEGMENT_SUM", [real(5, 3), Fixed(ints(0, 0, 1, 2, 2))]),
    *(
        Case(f"UNSORTED_SEGMENT_{kind}", [real(5, 3), ints(2, 0, 2, -1, 0), Fixed(np.int32(4))])
        for kind in words("SUM PROD MAX MIN")
    ),
    Case("MATRIX_DIAG", [real(2, 3)]),
    Case("MATRIX_SET_DIAG", [real(2, 3, 4), real(2, 3, seed=2)]),
]


def built(case: Case) -> tuple[bytes, list[Array]]:
    file = File(versions={"BROADCAST_TO": 2})
    graph, fed, given = file.graph, [], []
    for index, value in enumerate(case.inputs):
        if isinstance(value, Fixed):
            given.append(graph.constant(value.value))
        else:
            fed.append(np.asarray(value))
            given.append(graph.input(f"x{index}", fed[-1].shape, fed[-1].dtype))
    made = graph.op(case.code, given, case.options, case.outputs, kind=case.kind, shapes=case.shapes)
    return file.data(*(made if isinstance(made, list) else [made])), fed


def check(data: bytes, fed: Sequence[Array], tolerance: float, backend: str = "cpu", ctx: Any = None) -> None:
    expected = interpreted(data, fed)
    model = pf.load(data)
    names = [value.name for value in model.inputs]
    made = list(pf.run(model, dict(zip(names, fed, strict=True)), backend=backend).values())
    assert len(made) == len(expected)
    for got, want in zip(made, expected, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, tolerance, tolerance)


def test_the_documentation_lists_the_operators() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "litert-operators.md"
    assert page.read_text() == markdown(operators()), "perframe operators --format litert --markdown"
    assert {case.code for case in CASES} <= {row.name for row in operators() if row.supported}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case: Case) -> None:
    check(*built(case), case.tolerance)
