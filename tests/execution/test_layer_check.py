"""Layers are compared with their definitions: by hand, in every run if the environment says so, and by a command."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

import perframe as pf
from perframe.backends.cpu import reference
from perframe.backends.cpu.families import norm as cpu_norm
from perframe.command_line.cli import app
from small import load, node
from support import unavailable

X = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def model() -> pf.Model:
    w = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Softmax", "p", "y"),
    ]
    return load(nodes, {"x": ["n", 3, 8, 8]}, constants={"w": w})


@pytest.fixture
def wrong_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    """A softmax whose definition differs from its kernels."""
    compute = reference.family_of

    class Wrong:
        lower = staticmethod(cpu_norm.lower)

        @staticmethod
        def compute(*given: Any) -> list[Any]:
            (value,) = cpu_norm.compute(*given)
            value = value.reshape(2, 4, 4, 4).copy()
            value[1, 2, 3, 0] += 0.25
            return [value]

    monkeypatch.setattr(reference, "family_of", lambda layer: Wrong if layer.op == "Softmax" else compute(layer))


def test_each_layer_is_compared(model: pf.Model, backend: str, backend_context: Any) -> None:
    found = pf.compare(model, {"x": X}, backend, backend_context)
    convolution = "Conv" if backend == "cpu" else "BlockConv"
    assert {one.op for one in found} >= {convolution, "MaxPool", "Softmax"}
    assert all(one.agrees and one.relative < 1e-4 for one in found)


def test_the_first_layer_that_differs_is_named(
    model: pf.Model, backend: str, backend_context: Any, wrong_softmax: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (wrong,) = [one for one in pf.compare(model, {"x": X}, backend, backend_context) if not one.agrees]
    at, shape = ((1, 2, 3, 0), (2, 4, 4, 4)) if backend == "cpu" else ((1, 0, 2, 3, 0), (2, 1, 4, 4, 4))
    assert (wrong.layer, wrong.at, wrong.shape) == ("y", at, shape)
    assert wrong.output == ("y:last" if backend == "cpu" else "y:blocks")
    assert wrong.apart == pytest.approx(0.25, abs=1e-5)
    monkeypatch.setenv("PERFRAME_CHECK", "1")
    with (
        pf.Worker(model, backend, backend_context) as worker,
        pytest.raises(
            pf.BackendError,
            match=rf"on {backend} layer 'y' \(Softmax\): '{wrong.output}' float32 .* at {re.escape(str(at))}",
        ),
    ):
        worker.schedule(X)


def test_every_run_is_compared_where_the_environment_says_so(
    model: pf.Model, backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = pf.run(model, {"x": X}, backend, ctx=backend_context)["y"]
    monkeypatch.setenv("PERFRAME_CHECK", "1")
    with pf.Worker(model, backend, backend_context) as worker:
        for _ in range(2):
            np.testing.assert_allclose(worker.schedule(X).peek_output().download_to_array(), expected, 1e-4, 1e-6)
        assert len(list(worker.schedule_iterable(X[:1]))) >= 3
        np.testing.assert_allclose(worker.peek_output().download_to_array(), expected[:1], 1e-4, 1e-6)


def test_bodies_are_compared(backend: str, backend_context: Any) -> None:
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Identity", "go", "on"), node("Add", "s x", "t"), node("Mul", "t t", "row")],
        "body",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("s", TensorProto.FLOAT, [3])],
        [info(name, TensorProto.BOOL if name == "on" else TensorProto.FLOAT, None) for name in ("on", "t", "row")],
    )
    loop = load([node("Loop", "trips  x", "y rows", body=body)], {"x": [3]}, "y rows", {"trips": np.array(4)})
    found = pf.compare(loop, {"x": np.ones(3, np.float32)}, backend, backend_context)
    assert [one.op for one in found].count("Mul") == 4 and all(one.agrees for one in found)


def test_a_pool_with_its_channels_last_has_the_right_definition(model: pf.Model) -> None:
    """Its family returns the values of all planes as one flat array."""
    (pool,) = [one for one in pf.compare(model, {"x": X}) if one.op == "MaxPool"]
    assert pool.shape == (2, 4, 4, 4) and pool.apart == 0


def test_the_command(shared: Any, tmp_path: Any, wrong_softmax: None) -> None:
    path = str(shared / "models" / "mnist-12.onnx")
    done = CliRunner().invoke(app, ["compare", path])
    assert done.exit_code == 0 and "0 further from their definitions" in done.output.replace("\n", " ")
    done = CliRunner().invoke(app, ["compare", path, "--json"])
    assert {one["op"] for one in json.loads(done.output)} >= {"Conv", "MaxPool"}
    if not (shared / "models" / "selfie_segmentation.onnx").is_file():
        unavailable("no model with more layers")
    assert CliRunner().invoke(app, ["compare", path, "--backend", "abacus"]).exit_code == 2
