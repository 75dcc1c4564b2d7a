"""Random numbers: their distribution; a seed gives the same ones in every run and on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import perframe as pf
from perframe.backends.cpu.families.random import threefry

FLOATS = {TensorProto.FLOAT: "float32", TensorProto.FLOAT16: "float16", TensorProto.DOUBLE: "float64"}
LIKE = ("RandomNormalLike", "RandomUniformLike")


def model(op: str, shape: tuple[int, ...] | None = None, kind: int = TensorProto.FLOAT, **attributes: Any) -> Any:
    given = [] if shape is None else [helper.make_tensor_value_info("x", kind, shape)]
    size = attributes.pop("size", None)
    node = helper.make_node(op, [value.name for value in given], ["y"], **attributes)
    if size is not None:
        node.attribute.append(helper.make_attribute("shape", size))
    graph = helper.make_graph([node], op, given, [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)])
    graph.output[0].ClearField("type")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def draw(proto: Any, backend: str, ctx: Any, *inputs: Any, strict: bool = True) -> Any:
    return pf.run(proto, dict(zip("x", inputs, strict=False)), backend=backend, ctx=ctx, strict=strict)["y"]


def test_the_generator_is_threefry() -> None:
    """The test vectors that its authors publish (Random123, kat_vectors)."""
    for counter, key, words in (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ):
        made = threefry(key, *(np.array([word], np.uint32) for word in counter))
        assert tuple(int(word[0]) for word in made) == words


@pytest.mark.parametrize("kind", FLOATS)
def test_normal(kind: int, backend: str, backend_context: Any) -> None:
    proto = model("RandomNormal", size=[50, 80], dtype=kind, mean=3.0, scale=2.0, seed=7.0)
    made = draw(proto, backend, backend_context, strict=kind == TensorProto.FLOAT)
    assert made.shape == (50, 80) and made.dtype == FLOATS[kind]
    assert abs(made.astype(np.float64).mean() - 3) < 0.15 and abs(made.astype(np.float64).std() - 2) < 0.15


def test_normal_numbers_fall_as_the_bell_says(backend: str, backend_context: Any) -> None:
    made = draw(model("RandomNormal", size=[100_000], seed=1.0), backend, backend_context)
    for limit, share in ((0.5, 0.38292), (1, 0.68269), (2, 0.9545), (3, 0.9973)):
        assert abs((np.abs(made) < limit).mean() - share) < 0.005
    assert abs((made > 0).mean() - 0.5) < 0.005 and abs(np.corrcoef(made[:-1], made[1:])[0, 1]) < 0.01


@pytest.mark.parametrize("op", LIKE)
@pytest.mark.parametrize("kind", [None, *FLOATS])
def test_like(op: str, kind: int | None, backend: str, backend_context: Any) -> None:
    attributes = {} if kind is None else {"dtype": kind}
    strict = kind in (None, TensorProto.FLOAT)
    proto = model(op, (3, 5), **attributes)
    made = draw(proto, backend, backend_context, np.zeros((3, 5), np.float32), strict=strict)
    assert made.shape == (3, 5) and made.dtype == FLOATS.get(kind, "float32")


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (7, 11, 13)])
def test_any_shape(shape: tuple[int, ...], backend: str, backend_context: Any) -> None:
    for op in LIKE:
        assert draw(model(op, shape), backend, backend_context, np.zeros(shape, np.float32)).shape == shape


def test_uniform(backend: str, backend_context: Any) -> None:
    made = draw(model("RandomUniform", size=[40_000], low=-2.0, high=6.0), backend, backend_context)
    assert made.min() >= -2 and made.max() <= 6 and abs(made.mean() - 2) < 0.1 and abs(made.var() - 64 / 12) < 0.1
    counts = np.histogram(made, 20, (-2, 6))[0]
    assert np.all(np.abs(counts - 2000) < 250)


@pytest.mark.parametrize("op", LIKE)
def test_a_seed_draws_the_same_again(op: str, backend: str, backend_context: Any) -> None:
    x = np.zeros(9, np.float32)
    for attributes, equal in (({"seed": 1.5}, True), ({}, False)):
        proto = model(op, (9,), **attributes)
        with pf.Worker(pf.load(proto), backend, backend_context, strict=True) as worker:
            first, second, third = (worker.schedule(x).peek_output().download_to_array() for _ in range(3))
        assert np.array_equal(first, second) == np.array_equal(second, third) == equal
        assert np.array_equal(first, draw(proto, backend, backend_context, x)) == equal
    assert not np.array_equal(first, draw(model(op, (9,), seed=1.25), backend, backend_context, x))


@pytest.mark.parametrize("op", LIKE)
def test_a_seed_draws_the_same_everywhere(op: str, backend: str, backend_context: Any) -> None:
    x = np.zeros((37, 1001), np.float32)
    proto = model(op, x.shape, seed=-3.25)
    made = draw(proto, backend, backend_context, x)
    np.testing.assert_allclose(made, draw(proto, "cpu", None, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT32, TensorProto.UINT8])
def test_bernoulli(kind: int, backend: str, backend_context: Any) -> None:
    chance = np.repeat(np.array([0, 0.2, 1], np.float32), 2000)
    proto = model("Bernoulli", (6000,), dtype=kind, seed=3.0)
    made = draw(proto, backend, backend_context, chance)
    assert made.dtype == {1: "float32", 9: "bool", 6: "int32", 2: "uint8"}[kind]
    never, seldom, always = made.reshape(3, 2000).astype(np.float32).mean(1)
    assert never == 0 and always == 1 and abs(seldom - 0.2) < 0.05
    np.testing.assert_array_equal(made, draw(proto, "cpu", None, chance))


def test_every_run_tosses_other_coins(backend: str, backend_context: Any) -> None:
    chance = np.full(64, 0.5, np.float32)
    with pf.Worker(pf.load(model("Bernoulli", (64,))), backend, backend_context, strict=True) as worker:
        runs = [worker.schedule(chance).peek_output().download_to_array() for _ in range(50)]
    assert len({run.tobytes() for run in runs}) == 50 and abs(np.mean(runs) - 0.5) < 0.05


@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.INT64])
def test_multinomial(kind: int, backend: str, backend_context: Any) -> None:
    chances = np.array([[0.1, 0.6, 0.3], [0, 1, 0], [0.5, 0.5, 0]], np.float32)
    with np.errstate(divide="ignore"):
        logarithms = np.log(chances) + np.array([[0], [5], [-40]], np.float32)  # only their differences count
    proto = model("Multinomial", (3, 3), dtype=kind, sample_size=4000, seed=1.0)
    made = draw(proto, backend, backend_context, logarithms)
    assert made.shape == (3, 4000) and made.dtype == {6: "int32", 7: "int64"}[kind]
    for row, chance in zip(made, chances, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 4000, chance, atol=0.05)
    assert (made == draw(proto, "cpu", None, logarithms)).mean() > 0.999


def test_multinomial_among_many_classes(backend: str, backend_context: Any) -> None:
    logarithms = np.full((2, 70_001), -9.0, np.float32)
    logarithms[1] = -np.inf
    logarithms[1, 69_999] = 3
    made = draw(model("Multinomial", logarithms.shape, sample_size=2000), backend, backend_context, logarithms)
    assert np.all(made[1] == 69_999) and made[0].min() >= 0 and made[0].max() <= 70_000
    assert abs(made[0].mean() / 35_000 - 1) < 0.06 and len(np.unique(made[0])) > 1900


@pytest.mark.parametrize("shape", [(1, 1), (0, 5), (2, 7)])
def test_multinomial_of_any_shape(shape: tuple[int, int], backend: str, backend_context: Any) -> None:
    made = draw(model("Multinomial", shape, sample_size=3), backend, backend_context, np.zeros(shape, np.float32))
    assert made.shape == (shape[0], 3) and np.all((made >= 0) & (made < shape[1]))
