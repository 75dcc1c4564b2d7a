"""Products with packed weights: every backend agrees with the dequantized weights and with onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, helper, numpy_helper

import perframe as pf
from passes.graphs import graph, node, random
from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels import sizes
from perframe.errors import InferenceError
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.layers.packed import PANEL, PackedMatMul, packed, unpacked
from perframe.tensor import DataType
from perframe.testing.checks import trace

ROWS = [(1,), (3,), (2, 3), (4,), (5,), (17,), (0,), (1, 1), (40,)]  # the dims of x before its depth


def matmul_n_bits(
    depth: int, columns: int, block: int, bits: int = 4, zeros: bool = False, bias: bool = False, accuracy: int = 0
) -> ModelProto:
    """A model of one MatMulNBits."""
    draw = np.random.default_rng(depth)
    blocks = -(-depth // block)
    constants = {
        "w": draw.integers(0, 256, (columns, blocks, block * bits // 8), dtype=np.uint8),
        "s": (draw.random(columns * blocks) - 0.5).astype(np.float32),
    }
    if zeros:
        constants["z"] = draw.integers(0, 256, columns * -(-blocks * bits // 8), dtype=np.uint8)
    if bias:
        constants["b"] = draw.random(columns).astype(np.float32)
    names = ["x", "w", "s", "z" if zeros else "", "", "b" if bias else ""]
    attributes = {"bits": bits, "block_size": block, "K": depth, "N": columns, "accuracy_level": accuracy}
    made = helper.make_graph(
        [helper.make_node("MatMulNBits", names, ["y"], "node", domain="com.microsoft", **attributes)],
        "small",
        [helper.make_tensor_value_info("x", 1, None)],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=10)


CASES = {
    "whole panels": (64, 32, 32),
    "zero points": (96, 48, 32, 4, True, True),
    "a prime number of columns": (64, 37, 16, 4, True),
    "a depth of no whole word": (101, 33, 32, 4, True, True),
    "a block longer than the depth": (70, 20, 128, 4, True),
    "one column": (96, 1, 32),
    "more blocks than a word has codes": (16 * 19, 24, 16, 4, True),
    "bytes": (99, 37, 16, 8, True, True),
    "two bits": (35, 31, 16, 2, True),
    "a deep product": (1030, 20, 32),
}


@pytest.mark.parametrize("name", CASES)
def test_against_onnxruntime(name: str, backend: str, backend_context: Any) -> None:
    """For one row, a few and many, in one worker: plans for new sizes are fitted."""
    proto = matmul_n_bits(*CASES[name])
    depth, columns = CASES[name][:2]
    peer = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    with pf.Worker(proto, backend, backend_context, strict=True) as worker:
        worker.warmup(np.zeros((1, depth), np.float32))
        for rows in ROWS:
            x = random(*rows, depth, seed=len(rows))
            want = peer.run(None, {"x": x})[0] if x.size else np.zeros((*rows, columns), np.float32)
            found = worker.schedule(x).peek_output().download_to_array()
            assert found.shape == want.shape
            np.testing.assert_allclose(found, want, 1e-4, 1e-5 * np.abs(want).max(initial=1))


def test_sizes_are_followed() -> None:
    """A template serves few rows, and another one many: no new number of rows is planned."""
    proto = matmul_n_bits(96, 40, 32, zeros=True)
    for name in ("arithmetic", "arithmetic.write"):
        jit.kernel(name)
    with pf.Worker(proto) as worker:
        for rows in (3, 40, 2, 4, 5, 9, 130):
            x = random(rows, 96, seed=rows)
            found = worker.schedule(x).peek_output().download_to_array()
            np.testing.assert_allclose(found, pf.run(proto, {"x": x})["y"], 1e-5, 1e-5)
            parts = trace(worker)
        (part,) = parts
        assert not part.losses
        templates = part._templates  # type: ignore[attr-defined]
        assert templates._uses >= 5 and len(templates._known) == 2


@pytest.mark.parametrize("kind", ["int8", "uint8", "int4"])
@pytest.mark.parametrize("rows", [1, 3, 17])
def test_not_a_number_and_infinity(kind: str, rows: int, backend: str, backend_context: Any) -> None:
    """As in NumPy's product of the dequantized weights, in which an infinity meets zeros too."""
    values = random(40, 24, seed=1)
    values[3] = values[:, 5] = 0
    model = pf.quantize(pf.load(graph([node("MatMul", "x w", "y")], {"x": ["n", 40]}, {"w": values})), kind)
    weights = pf.run(model, {"x": np.eye(40, dtype=np.float32)}, backend="cpu")["y"]
    for at, number in ((3, np.inf), (7, -np.inf), (39, np.nan)):
        x = random(rows, 40, seed=2)
        x[0, at] = number
        with np.errstate(invalid="ignore"):
            want = x @ weights
        found = pf.run(model, {"x": x}, backend=backend, ctx=backend_context)["y"]
        np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
        np.testing.assert_allclose(found, want, 1e-4, 1e-4)


def test_an_epilogue(backend: str, backend_context: Any) -> None:
    nodes = [node("Gemm", "x w b", "g", transB=1), node("Tanh", "g", "t"), node("Relu", "t", "y")]
    model = pf.load(graph(nodes, {"x": ["n", 64]}, {"w": random(40, 64, seed=1), "b": random(40, seed=2)}))
    small = pf.quantize(model, "int4")
    for rows in (1, 7):
        x = random(rows, 64, seed=3)
        given = pf.run(small, {"x": np.eye(64, dtype=np.float32)}, backend="cpu")  # compiles, and must not be wrong
        assert given["y"].min() == 0
        (found,) = pf.run(small, {"x": x}, backend=backend, ctx=backend_context).values()
        (want,) = pf.run(pf.load(small_as_floats(small)), {"x": x}, backend="cpu").values()
        np.testing.assert_allclose(found, want, 1e-4, 1e-5)


def small_as_floats(model: pf.Model) -> ModelProto:
    """The model with its weights dequantized by NumPy."""
    codes, scale = (model.constants[f"w/{name}"].astype(np.float32) for name in ("int4", "scale"))
    nodes = [node("Gemm", "x w b", "g", transB=1), node("Tanh", "g", "t"), node("Relu", "t", "y")]
    weights = codes * np.repeat(scale, 32, 1)
    return graph(nodes, {"x": ["n", 64]}, {"w": weights, "b": random(40, seed=2)})


@pytest.mark.parametrize(("bits", "most"), [(4, 0.65), (8, 1.16)])
def test_weights_stay_small_in_memory(bits: int, most: float, backend: str, backend_context: Any) -> None:
    """With zero points too. No float32 twin of the weights stays."""
    depth, columns = 256, 128
    with pf.Worker(matmul_n_bits(depth, columns, 32, bits, zeros=True), backend, backend_context) as worker:
        for rows in (1, 40):
            worker.schedule(random(rows, depth)).peek_output().download_to_array()
        (use,) = worker.memory_use
    assert use.constants <= most * depth * columns
    assert use.read == use.constants and not use.packed


@given(st.integers(1, 70), st.integers(1, 40), st.sampled_from([4, 8]), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_codes_come_back(count: int, columns: int, bits: int, seed: int) -> None:
    ends = -(1 << bits - 1), (1 << bits - 1)
    codes = np.random.default_rng(seed).integers(*ends, (count, columns)).astype(np.int8)
    words = packed(codes, bits)
    assert words.shape == (-(-columns // PANEL), -(-count * bits // 32), PANEL)
    np.testing.assert_array_equal(unpacked(words, count, bits)[:, :columns], codes)


WRONG = {
    "words": ({"words": (2, 7, 16)}, "take words as int32"),
    "the words' dtype": ({"words": DataType.FLOAT32}, "take words as int32"),
    "scales": ({"scales": (2, 3, 16)}, "take scales as float32"),
    "zeros": ({"zeros": (2, 2, 16)}, "take zeros as int32"),
    "bias": ({"bias": (21,)}, "take bias as float32"),
    "x": ({"x": (3, 63)}, "cannot be multiplied with weights of 64 rows"),
    "bits": ({"bits": 5}, "have 4 or 8 bits"),
    "blocks": ({"block": 12}, "blocks of whole words, not 4 and 12"),
}


@pytest.mark.parametrize("name", WRONG)
def test_operands_that_do_not_fit(name: str) -> None:
    """A kernel would read beyond their ends."""
    shapes = {"x": (3, 64), "words": (2, 8, 16), "scales": (2, 2, 16), "zeros": (2, 1, 16), "bias": (20,)}
    dtypes = {key: DataType.INT32 if key in ("words", "zeros") else DataType.FLOAT32 for key in shapes}
    attributes = {"depth": 64, "columns": 20, "bits": 4, "block": 32}
    changes, said = WRONG[name]

    def inferred() -> Any:
        given = [PartialTensor(dtypes[key], DynamicTensorShape(shape)) for key, shape in shapes.items()]
        return PackedMatMul.outputs_for(given, attributes)

    assert tuple(inferred()[0].shape) == (3, 20)
    for key, value in changes.items():
        target = dtypes if isinstance(value, DataType) else shapes if key in shapes else attributes
        target[key] = value
    with pytest.raises(InferenceError, match=said):
        inferred()


def test_kernels_know_the_panels() -> None:
    assert sizes.PACKED_PANEL == PANEL
