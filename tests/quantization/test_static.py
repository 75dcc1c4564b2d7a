"""Static quantisation: layers compute with bytes, on every backend as in onnxruntime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from PIL import Image

import perframe as pf
from models.faces import DETECTORS, overlap
from models.zoo import ZOO, given
from passes.graphs import graph, node, random
from perframe.backends import evaluator
from perframe.passes import prepare
from perframe.quantization.measuring import measure_errors
from quantization.networks import IMAGE, apart, as_onnx, peer, pictures, residual, weights

PHOTOS = ("astronaut.png", "coffee.png")


def prepared(model: pf.Model) -> Counter[str]:
    return Counter(layer.op for layer in prepare(model, evaluator(), "cpu").layers)


def step_of(model: pf.Model, value: str) -> float:
    """The scale of a value."""
    return float(next(x.input(1).constant for x in model.layers if x.name == f"{value}/QuantizeLinear"))


@pytest.fixture(scope="module")
def quantized() -> pf.Model:
    return pf.quantize(pf.load(residual()), calibration=pictures(4))


@pytest.mark.slow
def test_it_agrees_with_onnxruntime(quantized: pf.Model, backend: str, backend_context: Any) -> None:
    """A rounding may go the other way, and later layers carry that on."""
    (fed,) = pictures(1)
    found = pf.run(quantized, fed, backend=backend, ctx=backend_context)
    assert apart(found, peer(quantized, fed)) < 0.01
    assert apart(found, pf.run(residual(), fed)) < 0.05


def test_a_value_differs_by_one_step_at_most(backend: str, backend_context: Any) -> None:
    model = pf.load(
        graph(
            [node("Conv", "x k b", "a"), node("Relu", "a", "c"), node("Conv", "c v", "y")],
            IMAGE,
            {"k": weights(12, 8, 3, 3, seed=1), "b": random(12, seed=2), "v": weights(4, 12, 1, 1, seed=3)},
        )
    )
    made = pf.quantize(model, calibration=pictures(3))
    made.keep_outputs(["c"])
    (fed,) = pictures(1)
    found, wanted = pf.run(made, fed, backend=backend, ctx=backend_context)["c"], peer(made, fed)["c"]
    steps = np.abs(found - wanted) / step_of(made, "c")
    assert steps.max() < 1.01
    assert (steps > 0.5).mean() < 0.01


def test_all_layers_between_products_compute_with_bytes(quantized: pf.Model) -> None:
    """The input is quantised, and the output is real; nothing in between is."""
    found = prepared(quantized)
    assert not {"Conv", "Gemm", "MatMul", "DequantizeLinear", "Add", "Sigmoid"} & {*found}
    assert found["QuantizedConv"] == 6
    assert found["QuantizedAdd"] == found["QuantizedMean"] == found["QuantizeLinear"] == found["QuantizedMatMul"] == 1
    assert prepared(pf.load(as_onnx(quantized))) == found


def test_products_of_matrices_come_back_from_a_file(backend: str, backend_context: Any) -> None:
    proto = graph(
        [
            node("MatMul", "x v", "a"),
            node("Add", "a c", "b"),
            node("Gelu", "b", "d"),
            node("MatMul", "d w", "e"),
            node("Add", "e f", "y"),
        ],
        {"x": [2, 5, 24]},
        {"v": weights(24, 48, seed=1), "c": random(48, seed=2), "w": weights(48, 24, seed=3), "f": random(24, seed=4)},
    )
    made = pf.quantize(pf.load(proto), calibration=pictures(2, 2, 5, 24))
    again, (fed,) = pf.load(as_onnx(made)), pictures(1, 2, 5, 24)
    assert prepared(made) == prepared(again)
    assert prepared(made) == {"QuantizeLinear": 1, "QuantizedMatMul": 2, "LookUp": 1}
    for model in (made, again):
        found = pf.run(model, fed, backend=backend, ctx=backend_context)
        assert apart(found, peer(made, fed)) < 0.01
        assert apart(found, pf.run(proto, fed)) < 0.03


def test_values_keep_their_names(quantized: pf.Model) -> None:
    model = pf.load(residual())
    made = {name for layer in quantized.layers for name in layer.output_names}
    assert {name for layer in model.layers for name in layer.output_names} <= made
    found = pf.compare(quantized, pictures(1)[0], against=model)
    assert {"g", "h", "y"} <= {one.output for one in found}


def test_a_join_and_a_pool_keep_the_scale(quantized: pf.Model) -> None:
    assert step_of(quantized, "g") == step_of(quantized, "h") == step_of(quantized, "j") == step_of(quantized, "i")
    assert step_of(quantized, "g") != step_of(quantized, "x")


def test_an_output_that_is_also_read_stays_real() -> None:
    proto = graph(
        [node("Conv", "x k", "a"), node("Relu", "a", "y"), node("Conv", "y v", "z")],
        IMAGE,
        {"k": weights(12, 8, 3, 3, seed=1), "v": weights(4, 12, 1, 1, seed=3)},
        outputs="y z",
    )
    made, (fed,) = pf.quantize(pf.load(proto), calibration=pictures(2)), pictures(1)
    assert made.output_names == ["y", "z"]
    assert apart(pf.run(made, fed), peer(made, fed)) < 0.01
    assert len(np.unique(pf.run(made, fed)["y"])) > 256


def test_weights_that_two_products_share(backend: str, backend_context: Any) -> None:
    proto = graph(
        [node("Conv", "x k b", "a"), node("Relu", "a", "c"), node("Conv", "c k d", "y")],
        IMAGE,
        {"k": weights(8, 8, 3, 3, seed=1), "b": random(8, seed=2), "d": random(8, seed=3)},
    )
    made, (fed,) = pf.quantize(pf.load(proto), calibration=pictures(2)), pictures(1)
    found = pf.run(made, fed, backend=backend, ctx=backend_context)
    assert apart(found, peer(made, fed)) < 0.01
    assert apart(found, pf.run(proto, fed)) < 0.05


def test_a_bias_that_is_large_beside_its_weights() -> None:
    """It does not overflow: the column gets a coarser scale."""
    k = weights(12, 8, 3, 3, seed=1)
    k[5] = 1e-9
    bias = random(12, seed=2)
    bias[5] = 90
    proto = graph([node("Conv", "x k b", "a"), node("Relu", "a", "y")], IMAGE, {"k": k, "b": bias})
    made, (fed,) = pf.quantize(pf.load(proto), calibration=pictures(2)), pictures(1)
    found = pf.run(made, fed)["y"]
    np.testing.assert_allclose(found[:, 5], 90, 1e-3)
    assert apart({"y": found}, peer(made, fed)) < 1e-3


@pytest.mark.parametrize("activations", ["uint8", "int8"])
@pytest.mark.parametrize("method", ["min-max", "percentile", "mse"])
def test_methods_and_activations(method: str, activations: str) -> None:
    made = pf.quantize(pf.load(residual()), calibration=pictures(4), method=method, activations=activations)
    (fed,) = pictures(1)
    assert {str(x.dtype) for name, x in made.constants.items() if name.endswith("/zero")} == {activations}
    assert apart(pf.run(made, fed), pf.run(residual(), fed)) < 0.12
    assert apart(pf.run(made, fed), peer(made, fed)) < 0.02


def test_a_scale_for_each_column_is_better() -> None:
    columns = np.geomspace(1, 100, 12, dtype=np.float32)[:, None, None, None]
    model = pf.load(
        graph(
            [node("Conv", "x k", "a"), node("Relu", "a", "b"), node("Conv", "b v", "y")],
            IMAGE,
            {"k": weights(12, 8, 3, 3, seed=1) * columns, "v": weights(4, 12, 1, 1, seed=3)},
        )
    )

    def error(**options: Any) -> float:
        made = pf.quantize(model, calibration=pictures(2), **options)
        return next(one.own for one in measure_errors(model, made, pictures(2)).layers if one.output == "y")

    assert error() < 0.8 * error(per_tensor=True)


def test_excluded_layers_stay_real() -> None:
    made = pf.quantize(pf.load(residual()), calibration=pictures(1), exclude=["c", "f"])
    assert made.constants["k1"].dtype == np.float32
    found = prepared(made)
    assert found["Conv"] == found["Add"] == 1 and found["QuantizedConv"] == 5


def test_layers_that_hurt_are_left_out() -> None:
    """An outlier in one of the layers makes its steps coarse. That layer is found."""
    k = weights(8, 8, 1, 1, seed=4)
    proto = graph(
        [
            node("Conv", "x k0", "a"),
            node("Relu", "a", "b"),
            node("Conv", "b k1", "c"),
            node("Mul", "c columns", "d"),
            node("Conv", "d k2", "y"),
        ],
        IMAGE,
        {
            "k0": weights(8, 8, 3, 3, seed=1),
            "k1": k,
            "k2": weights(4, 8, 1, 1, seed=3) * np.array([0, 1, 1, 1, 1, 1, 1, 1], np.float32)[:, None, None],
            "columns": np.array([3000, 1, 1, 1, 1, 1, 1, 1], np.float32)[:, None, None],
        },
    )
    model = pf.load(proto)
    plain = measure_errors(model, pf.quantize(model, calibration=pictures(3)), pictures(3))
    assert plain.worst_output > 0.3
    made = pf.quantize(model, calibration=pictures(3), max_error=0.05)
    assert measure_errors(model, made, pictures(3)).worst_output <= 0.05
    assert 0 < prepared(made)["QuantizedConv"] < 3, "the layer that is at fault is left out, not all"


def test_no_layer_is_good_enough() -> None:
    with pytest.raises(pf.ModelError, match="max_error is 1e-06: allow more, or quantize the weights alone"):
        pf.quantize(pf.load(residual()), calibration=pictures(1), max_error=1e-6)


# --- calibration data ---


def with_value(value: float) -> dict[str, Any]:
    (made,) = pictures(1)
    made["x"][0, 0, 0, 0] = value
    return made


X = pictures(1)[0]["x"]
WRONG: dict[str, tuple[Any, str]] = {
    "none": ([], "there is no calibration data"),
    "one dict": ({"x": X}, "one for each run, not dict"),
    "a number": (3, "one for each run, not int"),
    "an unknown input": ([{"x": X, "z": X}], "run 1 of the calibration data has an unknown input 'z'; .* are 'x'"),
    "a missing input": ([{"x": X}, {}], "run 2 of the calibration data has no input 'x'"),
    "another shape": ([{"x": X[:, :3]}], r"input 'x' has the shape \(1, 3, 12, 10\), and the model wants \(1, 8"),
    "another rank": ([X[0]], r"input 'x' has the shape \(8, 12, 10\), and the model wants"),
    "another dtype": ([{"x": X.astype(np.float64)}], "has the dtype float64, and the model wants float32"),
    "nan": ([{"x": X}, with_value(np.nan)], "run 2 of the calibration data, input 'x' holds NaN or infinity"),
    "infinity": ([with_value(np.inf)], "run 1 of the calibration data, input 'x' holds NaN or infinity"),
    "too large": ([{"x": np.full_like(X, 3e38)}], "run 1 of the calibration data makes NaN or infinity in 'b'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_data(name: str) -> None:
    data, said = WRONG[name]
    with pytest.raises(pf.InputError, match=said):
        pf.quantize(pf.load(residual()), calibration=data)


def test_data_may_come_one_by_one_as_arrays() -> None:
    def generate() -> Iterator[Any]:
        for one in pictures(2):
            yield one["x"]

    made = pf.quantize(residual(), calibration=generate())
    assert step_of(made, "x") == step_of(pf.quantize(residual(), calibration=pictures(2)), "x")


def test_weights_are_int8_with_data() -> None:
    with pytest.raises(pf.InputError, match="with calibration data weights are int8, not int4"):
        pf.quantize(residual(), "int4", pictures(1))


def test_a_model_without_products() -> None:
    model = graph([node("Relu", "x", "y")], IMAGE)
    with pytest.raises(pf.ModelError, match="has no layer to compute with bytes"):
        pf.quantize(model, calibration=pictures(1))


def test_zeros_and_open_dims() -> None:
    proto = graph(
        [node("Conv", "x k", "a"), node("Relu", "a", "b"), node("Conv", "b k", "y")],
        {"x": ["n", 8, "height", "width"]},
        {"k": weights(8, 8, 3, 3, seed=1)},
    )
    made = pf.quantize(proto, calibration=[np.zeros((1, 8, 9, 9), np.float32), random(2, 8, 7, 11)])
    fed = {"x": random(3, 8, 8, 8)}
    assert apart(pf.run(made, fed), peer(made, fed)) < 0.01
    nothing = pf.quantize(proto, calibration=[np.zeros((1, 8, 9, 9), np.float32)])
    assert not pf.run(nothing, {"x": np.zeros((1, 8, 9, 9), np.float32)})["y"].any()


# --- real models ---

ENTRIES = {entry.name: entry for entry in ZOO}
REAL = {  # the error on photographs, and against onnxruntime, where roundings go another way in long chains
    "mnist-12": (0.05, 0.01),
    "ultraface_rfb_320": (0.02, 0.02),
    "selfie_segmentation": (0.15, 0.08),
    "light_resnet50": (0.06, 0.03),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_models(name: str, backend: str, backend_context: Any, shared: Path) -> None:
    entry, (most, against_peer) = ENTRIES[name], REAL[name]
    if not entry.small and backend != "cpu":
        pytest.skip("large")
    model = pf.load(entry.file)
    data = [{model.inputs[0].name: given(entry, photo)} for photo in PHOTOS]
    made = pf.quantize(model, calibration=data)
    found = pf.run(made, data[0], backend=backend, ctx=backend_context, strict=backend != "cpu")
    assert apart(found, pf.run(model, data[0])) < most
    assert apart(found, peer(made, data[0])) < against_peer


@pytest.mark.quick(cases=0)
def test_faces_are_found_where_they_were(shared: Path) -> None:
    detector = DETECTORS[1]
    model = pf.load(shared / "models" / f"{detector.name}.onnx")
    fed = {}
    for photo in PHOTOS:
        with Image.open(shared / "images" / photo) as image:
            pixels = np.asarray(image.convert("RGB").resize(detector.size, Image.Resampling.BILINEAR), np.float32)
        fed[photo] = {model.inputs[0].name: (pixels.transpose(2, 0, 1)[None] - 127) / 128}
    made = pf.quantize(model, calibration=fed.values())
    (wanted, score), (found, other) = (detector.decode(pf.run(one, fed[PHOTOS[0]])) for one in (model, made))
    assert min(score, other) > 0.9
    assert overlap(wanted, found) > 0.9
    assert all(detector.decode(pf.run(one, fed[PHOTOS[1]]))[1] < 0.5 for one in (model, made)), "no face in coffee"


@pytest.mark.slow
def test_resnet_is_bytes_throughout(shared: Path) -> None:
    model = pf.load(ENTRIES["light_resnet50"].file)
    made = pf.quantize(model, calibration=[random(1, 3, 224, 224)])
    found = prepared(made)
    assert [found[op] for op in ("QuantizedConv", "QuantizedAdd", "QuantizedMean", "QuantizedMatMul")] == [53, 16, 1, 1]
    assert not {"Conv", "DequantizeLinear", "AveragePool"} & {*found}


def test_onnx_checks_the_file() -> None:
    onnx.checker.check_model(onnx.load_from_string(as_onnx(pf.quantize(residual(), calibration=pictures(1)))), True)
