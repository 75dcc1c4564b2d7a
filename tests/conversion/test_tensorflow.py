"""Files of TensorFlow, Keras and TensorFlow.js become ONNX files that compute what TensorFlow computes.

CI has no TensorFlow: PERFRAME_TENSORFLOW_PYTHON names a Python that has it, with tf2onnx.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from perframe.conversion.converting import Conversion
from perframe.errors import ConversionError

Convert = Callable[..., Conversion]
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("saved", "saved_model", {}),
    ("exported/saved_model.pb", "saved_model", {}),
    ("frozen.pb", "graph", {}),
    ("model.ckpt.meta", "meta_graph", {}),
    ("model.keras", "keras", {}),
    ("model.h5", "hdf5", {}),
    ("tfjs_graph/model.json", "tfjs_graph", {}),
    ("tfjs_layers", "tfjs_layers", {}),
    ("model.h5", "hdf5", {"inputs": ["image:1x8x8x3"], "opset": 15}),
    ("frozen.pb", "graph", {"inputs": ["x:3x4"], "outputs": ["y"]}),
    ("lambda.keras", "keras", {"trust": True}),
]


@pytest.mark.parametrize(("name", "kind", "options"), KINDS)
def test_conversions_agree(by_tensorflow: Convert, name: str, kind: str, options: dict[str, Any]) -> None:
    made = by_tensorflow(name, **options)
    assert made.kind == kind and made.opset == options.get("opset", 18)
    assert made.agrees and len(made.errors) == 1 and made.errors[0].relative < 1e-5


def test_names_of_signatures_stay(by_tensorflow: Convert) -> None:
    for name, inputs, outputs in (
        ("tfjs_graph", ["x"], ["result"]),
        ("model.keras", ["image"], ["scores"]),
        ("model.ckpt.meta", ["x"], ["y"]),
    ):
        made = by_tensorflow(name)
        assert ([*made.inputs], [*made.outputs]) == (inputs, outputs)


def test_one_network_in_all_formats(by_tensorflow: Convert, tensorflow_files: Path) -> None:
    image = np.random.default_rng(0).standard_normal((1, 8, 8, 3)).astype(np.float32)
    wanted = next(iter(pf.run(tensorflow_files / "model.tflite", {"image": image}).values()))
    assert np.ptp(wanted) > 0.1
    for name in ("saved", "model.keras", "model.h5", "tfjs_layers"):
        model = pf.load(by_tensorflow(name).target)
        found = pf.run(model, {model.inputs[0].name: image})
        np.testing.assert_allclose(next(iter(found.values())), wanted, atol=1e-5)


def test_open_dims_get_names(by_tensorflow: Convert) -> None:
    made = by_tensorflow("model.keras", dynamic=["image:0=batch"])
    shape = onnx.load(made.target).graph.input[0].type.tensor_type.shape
    assert shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("lambda.keras", {}, "holds Python code.*--trust"),
        ("only.weights.h5", {}, r"weights and no network: \d+ tensors, .*float32"),
        ("model.ckpt.index", {}, r"give the \.meta file"),
        ("frozen.pb", {"outputs": ["z"]}, "its graph has no 'z'; its placeholders are x"),
        ("model.keras", {"inputs": ["picture:1x8x8x3"]}, "no input 'picture'; there are image"),
        ("model.keras", {"dynamic": ["image:1=height"]}, "dim 1 of 'image' is 8 in the file"),
    ],
)
def test_wrong_files_and_options(by_tensorflow: Convert, name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConversionError, match=said):
        by_tensorflow(name, **options)


@pytest.mark.parametrize(
    ("name", "builder", "options"),
    [
        ("root.index", "make", {}),
        ("trained-1.index", "make", {}),
        ("trained-1.data-00000-of-00001", "make", {"dynamic": {"image": {0: "batch"}}}),
        ("only.weights.h5", "make", {}),
        ("product.index", "make_module", {"inputs": ["x:2x4"]}),
        ("product.index", "make_with_inputs", {}),
        ("named.index", "make_with_inputs", {}),
    ],
)
def test_a_builder_gets_the_weights(
    by_tensorflow: Convert,
    tensorflow_files: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    builder: str,
    options: Any,
) -> None:
    monkeypatch.chdir(tensorflow_files)
    made = by_tensorflow(name, builder=f"networks:{builder}", **options)
    assert made.agrees and made.errors and made.kind == ("hdf5" if name.endswith("h5") else "tf_checkpoint")
    if builder == "make":  # and not those with which it was made
        image = np.random.default_rng(0).standard_normal((1, 8, 8, 3)).astype(np.float32)
        (found,) = pf.run(made.target, {"image": image}).values()
        (wanted,) = pf.run(by_tensorflow("model.keras", "whole.onnx").target, {"image": image}).values()
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    if name == "named.index":
        np.testing.assert_allclose(next(iter(pf.run(made.target, {"x": np.eye(2, 4, dtype=np.float32)}).values())), 1)


@pytest.mark.parametrize(
    ("name", "builder", "said"),
    [
        ("root.index", "make_wrong", "do not fit the network of --builder networks:make_wrong"),
        ("root.index", "make_less", "has 8 weights, and the network 2 variables"),
        ("only.weights.h5", "make_wrong", "do not fit the network of --builder networks:make_wrong"),
        ("named.index", "make_less", "it lacks .*, and has w beside"),
        ("root.index", "make_nothing", "returned str, not a Keras model or a tf.Module"),
        ("product.index", "make_module", "its inputs have no shapes: pass --input"),
    ],
)
def test_weights_must_fit_the_network(
    by_tensorflow: Convert, tensorflow_files: Path, monkeypatch: pytest.MonkeyPatch, name: str, builder: str, said: str
) -> None:
    monkeypatch.chdir(tensorflow_files)
    with pytest.raises(ConversionError, match=said):
        by_tensorflow(name, builder=f"networks:{builder}")


def test_the_weights_of_a_checkpoint_are_listed(by_tensorflow: Convert) -> None:
    """The index is read without TensorFlow."""
    with pytest.raises(
        ConversionError,
        match=r"--builder module:function\nIt holds 16 tensors with 300 numbers:\n  _operations/1/_kernel: float32 3",
    ):
        by_tensorflow("root.index")
