"""Weights in fewer bits: small on disk, equal in onnxruntime, on every backend."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import graph, node, random
from perframe.files.reading import read_file
from quantization.networks import apart, as_onnx, peer, pictures, residual, weights

ERRORS = {"float16": 1e-3, "uint8": 0.02, "int8": 0.02, "int4": 0.15}
BITS = {"float16": 16, "uint8": 8, "int8": 8, "int4": 4}
IMAGE, ROWS, TEXT = {"x": [1, 6, 9, 7]}, {"x": [5, 40]}, {"x": [4, 2, 20]}
RECURRENT = {"W": weights(1, 48, 20, seed=1), "R": weights(1, 48, 12, seed=2)}
LAYERS: dict[str, tuple[Mapping[str, Any], onnx.NodeProto, Mapping[str, Any]]] = {
    "Conv": (IMAGE, node("Conv", "x w", "y"), {"w": weights(12, 6, 3, 3, seed=1)}),
    "Conv of groups": (IMAGE, node("Conv", "x w", "y", group=2), {"w": weights(16, 3, 3, 3, seed=1)}),
    "ConvTranspose": (IMAGE, node("ConvTranspose", "x w", "y", strides=[2, 2]), {"w": weights(6, 8, 3, 3, seed=1)}),
    "MatMul": (ROWS, node("MatMul", "x w", "y"), {"w": weights(40, 24, seed=1)}),
    "MatMul on the left": ({"x": [40, 5]}, node("MatMul", "w x", "y"), {"w": weights(24, 40, seed=1)}),
    "Gemm": (ROWS, node("Gemm", "x w", "y"), {"w": weights(40, 24, seed=1)}),
    "Gemm, transposed": (ROWS, node("Gemm", "x w", "y", transB=1), {"w": weights(24, 40, seed=1)}),
    "GRU": (
        TEXT,
        node("GRU", "x W R", "y", hidden_size=12),
        {"W": RECURRENT["W"][:, :36], "R": RECURRENT["R"][:, :36]},
    ),
    "LSTM": (TEXT, node("LSTM", "x W R", "y", hidden_size=12), RECURRENT),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("kind", ERRORS)
def test_layers_compute_with_smaller_weights(name: str, kind: str, backend: str, backend_context: Any) -> None:
    inputs, made, constants = LAYERS[name]
    model = pf.load(graph([made], inputs, constants))
    (shape,) = inputs.values()
    fed = {"x": random(*shape, seed=5)}
    quantized = pf.quantize(model, kind)
    assert not [key for key in constants if key in quantized.constants]
    found = pf.run(quantized, fed, backend=backend, ctx=backend_context)
    assert apart(found, peer(quantized, fed)) < 1e-5
    assert 0 < apart(found, pf.run(model, fed)) < ERRORS[kind]


@pytest.mark.parametrize("kind", ERRORS)
def test_a_table_of_embeddings(kind: str, backend: str, backend_context: Any) -> None:
    table = random(50, 40, seed=1)
    model = pf.load(graph([node("Gather", "t x", "y")], {"x": [7]}, {"t": table}, dtype="int64"))
    fed = {"x": np.arange(7)}
    quantized = pf.quantize(model, kind)
    found = pf.run(quantized, fed, backend=backend, ctx=backend_context)
    assert apart(found, peer(quantized, fed)) < 1e-6
    assert 0 < apart(found, {"y": table[:7]}) < ERRORS[kind]


@pytest.mark.parametrize("suffix", [".perframe", ".onnx"])
@pytest.mark.parametrize("kind", ERRORS)
def test_a_file_is_as_small_as_its_numbers(kind: str, suffix: str, tmp_path: Path) -> None:
    """Within two hundredths, and after a second load and save too."""
    rows, columns = 800, 400
    bias = random(columns, seed=2)
    model = pf.load(
        graph([node("Gemm", "x w b", "y")], {"x": [1, rows]}, {"w": weights(rows, columns, seed=1), "b": bias})
    )
    scales = {"float16": 0, "uint8": columns * 5, "int8": columns * 4, "int4": rows // 32 * columns * 4}
    ideal = rows * columns * BITS[kind] / 8 + scales[kind] + bias.nbytes
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    pf.save(pf.quantize(model, kind), first)
    pf.save(pf.load(first), second)
    for path in (first, second):
        assert ideal <= path.stat().st_size < ideal * 1.02
    fed = {"x": random(1, rows, seed=3)}
    assert apart(pf.run(second, fed), pf.run(pf.quantize(model, kind), fed)) < 1e-6


def test_biases_norms_and_small_weights_stay() -> None:
    model = pf.load(residual())
    made = pf.quantize(model)
    dequantized = {layer.input(0).name for layer in made.layers if layer.op == "DequantizeLinear"}
    kept = {name for name, value in made.constants.items() if value.dtype == np.float32 and name in model.constants}
    assert {"b0", "k1", "k3", "w6"} <= kept, "of fewer than 256 numbers"
    assert {made.constants[name].size for name in dequantized} == {1152, 256, 384}
    assert all(made.constants[name] is model.constants[name] for name in kept)


def test_the_given_model_stays_as_it_is() -> None:
    model = pf.load(residual(), optimize=False)
    before = [(layer.op, *layer.input_names, *layer.output_names) for layer in model.layers]
    constants = dict(model.constants)
    pf.quantize(model)
    pf.quantize(model, calibration=pictures(1))
    assert before == [(layer.op, *layer.input_names, *layer.output_names) for layer in model.layers]
    assert constants.keys() == model.constants.keys()
    assert all(model.constants[name] is value for name, value in constants.items())


def test_numbers_that_fit_stay_exact() -> None:
    """Blocks of whole numbers times a power of two are what int4 can hold."""
    whole = np.random.default_rng(1).integers(-7, 8, (64, 16)).astype(np.float32)
    whole[::32] = 7  # the largest number of each block
    exact = whole * np.repeat(np.array([1, 2], np.float32), 32)[:, None]
    model = pf.quantize(pf.load(graph([node("MatMul", "x w", "y")], {"x": [64, 64]}, {"w": exact})), "int4")
    np.testing.assert_array_equal(pf.run(model, {"x": np.eye(64, dtype=np.float32)})["y"], exact)
    assert model.constants["w/int4"].dtype.name == "int4"


def test_blocks_have_the_size_that_is_asked_for() -> None:
    model = pf.load(graph([node("MatMul", "x w", "y")], {"x": [1, 100]}, {"w": weights(100, 8, seed=1)}))
    made = pf.quantize(model, "int4", block_size=16)
    assert made.constants["w/scale"].shape == (7, 8), "the last block has four rows"
    fed = {"x": random(1, 100)}
    assert apart(pf.run(made, fed), peer(made, fed)) < 1e-5
    whole = pf.quantize(model, "int4", block_size=(1 << 31) - 1)
    assert whole.constants["w/scale"].shape == (1, 8), "a block is not longer than a column"
    assert apart(pf.run(whole, fed), peer(whole, fed)) < 1e-5


def test_one_scale_for_a_tensor() -> None:
    made = pf.quantize(pf.load(residual()), per_tensor=True)
    assert {layer.input(1).constant.shape for layer in made.layers if layer.op == "DequantizeLinear"} == {()}
    columns = pf.quantize(pf.load(residual()))
    (fed,) = pictures(1)
    wanted = pf.run(residual(), fed)
    assert apart(pf.run(columns, fed), wanted) < apart(pf.run(made, fed), wanted) < 0.05


def test_weights_in_bodies() -> None:
    body = onnx.helper.make_graph(
        [node("MatMul", "x w", "z")],
        "body",
        [],
        [onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [1, 30])],
        [onnx.numpy_helper.from_array(weights(20, 30, seed=1), "w")],
    )
    choice = onnx.helper.make_node("If", ["c"], ["y"], "choice", then_branch=body, else_branch=body)
    inputs = {"c": ("bool", []), "x": ("float32", [1, 20])}
    kinds = {"bool": onnx.TensorProto.BOOL, "float32": onnx.TensorProto.FLOAT}
    values = [onnx.helper.make_tensor_value_info(name, kinds[kind], shape) for name, (kind, shape) in inputs.items()]
    made = onnx.helper.make_graph([choice], "small", values, [onnx.ValueInfoProto(name="y")])
    proto = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    proto.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 30]))
    fed = {"c": np.array(True), "x": random(1, 20)}
    quantized = pf.quantize(pf.load(proto))
    assert 0 < apart(pf.run(quantized, fed), pf.run(proto, fed)) < 0.02
    assert apart(pf.run(as_onnx(quantized), fed), pf.run(quantized, fed)) < 1e-6


def test_a_file_loads_with_its_small_weights(tmp_path: Path) -> None:
    pf.save(pf.quantize(pf.load(residual()), "float16"), tmp_path / "m.onnx")
    loaded = pf.load(tmp_path / "m.onnx")
    assert sum(value.dtype == np.float16 for value in loaded.constants.values()) == 4
    pf.save(loaded, tmp_path / "m.perframe")
    assert read_file(tmp_path / "m.perframe", None) is not None


# --- what is refused ---


def broken(value: float) -> pf.Model:
    w = weights(40, 24, seed=1)
    w[3, 4] = value
    return pf.load(graph([node("MatMul", "x w", "y")], ROWS, {"w": w}))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown kind": ({"weights": "int3"}, "weights can be float16, uint8, int8, int4, not 'int3'"),
    "an unknown layer": ({"exclude": ["ya"]}, "no layer 'ya' to exclude: `perframe inspect` lists its layers"),
    "a text of names": ({"exclude": "y"}, r"such as \['y'\], not a text"),
    "an empty block": ({"block_size": 0}, "block_size is an integer from 1, not 0"),
    "an error without data": ({"max_error": 0.1}, "max_error needs calibration data"),
    "an unknown activation": ({"activations": "int4"}, "activations can be uint8 or int8"),
    "an unknown method": ({"method": "best"}, "one of min-max, percentile, mse, not 'best'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    arguments, said = WRONG[name]
    with pytest.raises(pf.InputError, match=said):
        pf.quantize(broken(0), **arguments)


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (np.nan, "int8", "layer 'y' .MatMul.: its weights 'w' hold NaN or infinity"),
        (np.inf, "int4", "its weights 'w' hold NaN or infinity"),
        (1e6, "float16", r"its weights 'w' reach 1e\+06, and float16 ends at 65504"),
    ],
)
def test_weights_that_cannot_be_held(value: float, kind: str, said: str) -> None:
    with pytest.raises(pf.ModelError, match=said):
        pf.quantize(broken(value), kind)


@pytest.mark.parametrize("kind", ERRORS)
def test_a_quantized_model_is_not_quantized_again(kind: str) -> None:
    once = pf.quantize(broken(0), kind)
    for model in (once, as_onnx(once)):
        with pytest.raises(pf.ModelError, match=r"is quantized already: .*; quantize the (float )?model "):
            pf.quantize(model)


def test_a_model_without_weights() -> None:
    with pytest.raises(pf.ModelError, match="has no weights of float32 to quantize"):
        pf.quantize(pf.load(graph([node("Relu", "x", "y")], ROWS)))
    with pytest.raises(pf.ModelError, match="has no weights of float32 to quantize"):
        pf.quantize(broken(0), exclude=["y"])
