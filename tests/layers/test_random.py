"""Random numbers: their distribution, the same again with a seed and others without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import perframe as pf

FLOATS = {TensorProto.FLOAT: "float32", TensorProto.FLOAT16: "float16", TensorProto.DOUBLE: "float64"}


def model(op: str, shape: tuple[int, ...] | None = None, kind: int = TensorProto.FLOAT, **attributes: Any) -> Any:
    given = [] if shape is None else [helper.make_tensor_value_info("x", kind, shape)]
    node = helper.make_node(op, [value.name for value in given], ["y"], **attributes)
    graph = helper.make_graph([node], op, given, [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)])
    graph.output[0].ClearField("type")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def draw(proto: Any, backend: str, ctx: Any, *inputs: Any) -> Any:
    return pf.run(proto, dict(zip("x", inputs, strict=False)), backend=backend, ctx=ctx)["y"]


@pytest.mark.parametrize("kind", FLOATS)
def test_normal(kind: int, backend: str, backend_context: Any) -> None:
    proto = model("RandomNormal", shape=None, dtype=kind, mean=3.0, scale=2.0, seed=7.0)
    proto.graph.node[0].attribute.append(helper.make_attribute("shape", [50, 80]))
    made = draw(proto, backend, backend_context)
    assert made.shape == (50, 80) and made.dtype == FLOATS[kind]
    assert abs(made.astype(np.float64).mean() - 3) < 0.15 and abs(made.astype(np.float64).std() - 2) < 0.15


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniformLike"])
@pytest.mark.parametrize("kind", [None, *FLOATS])
def test_like(op: str, kind: int | None, backend: str, backend_context: Any) -> None:
    attributes = {} if kind is None else {"dtype": kind}
    made = draw(model(op, (3, 5), **attributes), backend, backend_context, np.zeros((3, 5), np.float32))
    assert made.shape == (3, 5) and made.dtype == FLOATS.get(kind, "float32")


def test_uniform(backend: str, backend_context: Any) -> None:
    made = draw(model("RandomUniformLike", (4000,), low=-2.0, high=6.0), backend, backend_context, np.zeros(4000, "f"))
    assert made.min() >= -2 and made.max() <= 6 and abs(made.mean() - 2) < 0.3


def test_a_seed_draws_the_same_again(backend: str, backend_context: Any) -> None:
    x = np.zeros(9, np.float32)
    for attributes, equal in (({"seed": 1.5}, True), ({}, False)):
        with pf.Worker(pf.load(model("RandomNormalLike", (9,), **attributes)), backend, backend_context) as worker:
            first, second = (worker.schedule(x).peek_output().download_to_array() for _ in range(2))
        assert np.array_equal(first, second) == equal


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT32])
def test_bernoulli(kind: int, backend: str, backend_context: Any) -> None:
    chance = np.repeat(np.array([0, 0.2, 1], np.float32), 2000)
    made = draw(model("Bernoulli", (6000,), dtype=kind, seed=3.0), backend, backend_context, chance)
    assert made.dtype == {1: "float32", 9: "bool", 6: "int32"}[kind]
    never, seldom, always = made.reshape(3, 2000).astype(np.float32).mean(1)
    assert never == 0 and always == 1 and abs(seldom - 0.2) < 0.05


@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.INT64])
def test_multinomial(kind: int, backend: str, backend_context: Any) -> None:
    chances = np.array([[0.1, 0.6, 0.3], [0, 1, 0]], np.float32)
    with np.errstate(divide="ignore"):
        logarithms = np.log(chances) + 2
    proto = model("Multinomial", (2, 3), dtype=kind, sample_size=4000, seed=2.0)
    made = draw(proto, backend, backend_context, logarithms)
    assert made.shape == (2, 4000) and made.dtype == {6: "int32", 7: "int64"}[kind]
    for row, chance in zip(made, chances, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 4000, chance, atol=0.05)
