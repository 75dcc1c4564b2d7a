"""Weights and values between layers may lie in float16: kernels read and write halves, and nothing else changes."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import perframe as pf
from garbage import collect_garbage
from gl.graphs import graph
from perframe.backends.gl import compute
from perframe.ir import Layer

random = np.random.default_rng(5)
BOTH = {"weights": "float16", "activations": "float16"}


def draw(*shape: int) -> Any:
    return random.uniform(-2, 2, shape).astype(np.float32)


def rounded(x: Any) -> Any:
    return x.astype(np.float16).astype(np.float32)


def between_copies(model: pf.Model) -> pf.Model:
    """The model between copies of its inputs and outputs of float32: what it reads and makes lies between layers."""
    for value in model.inputs:
        if value.dtype == pf.DataType.FLOAT32:
            copy = Layer("Copy", f"before {value.name}", [value], [f"{value.name}:read"])
            model.replace_uses(value, copy.output)
            model.layers = [copy, *model.layers]
    outputs = []
    for value in model.outputs:
        copy = Layer("Copy", f"after {value.name}", [value], [f"{value.name}:made"])
        model.insert(copy)
        copy.output.declared = value.declared
        outputs.append(copy.output)
    model.outputs = outputs
    return model


# An operator, the shapes of its inputs, its attributes, and its constants. Odd sizes leave a half of a word over.
OPERATORS: dict[str, tuple[str, list[tuple[int, ...]], dict[str, Any], list[Any]]] = {
    "elements of an odd number": ("ReduceMax", [(3, 5, 7)], {"keepdims": 0}, [np.array([1])]),
    "one element": ("ReduceSum", [(9,)], {}, []),
    "texels": ("Softmax", [(3, 7)], {"axis": 1}, []),
    "a move": ("Transpose", [(3, 5, 7)], {"perm": [2, 0, 1]}, []),
    "pieces that are joined": ("Concat", [(3, 5), (3, 2)], {"axis": 1}, []),
    "two values": ("Add", [(3, 5), (5,)], {}, []),
    "a formula": ("Erf", [(13,)], {}, []),
    "blocks of channels": ("Conv", [(1, 16, 9, 7)], {"pads": [1, 1, 1, 1]}, [draw(24, 16, 3, 3), draw(24)]),
    "blocks of a pointwise convolution": ("Conv", [(1, 16, 9, 7)], {}, [draw(24, 16, 1, 1), draw(24)]),
    "blocks of a depthwise convolution": ("Conv", [(1, 32, 9, 7)], {"group": 32}, [draw(32, 1, 3, 3)]),
    "planes of a picture": ("Conv", [(1, 2, 9, 11)], {}, [draw(3, 2, 3, 3), draw(3)]),
    "tiles of a convolution": ("Conv", [(1, 5, 9, 11)], {}, [draw(1, 5, 3, 3), draw(1)]),
    "a convolution of a line": ("Conv", [(1, 5, 31)], {}, [draw(7, 5, 3), draw(7)]),
    "scattered tiles of a product": ("MatMul", [(5, 19)], {}, [draw(19, 7)]),
    "whole tiles of a product": ("MatMul", [(5, 19)], {}, [draw(19, 24)]),
    "a product of two values": ("MatMul", [(2, 5, 19), (2, 19, 6)], {}, []),
    "a row": ("MatMul", [(1, 64)], {}, [draw(64, 40)]),
    "a pool": ("AveragePool", [(1, 3, 9, 7)], {"kernel_shape": [3, 3]}, []),
    "a resize": ("Resize", [(1, 3, 5, 7)], {"mode": "linear"}, [draw(0), np.float32([1, 1, 2, 2])]),
    "elements that are stored anywhere": (
        "ScatterElements",
        [(3, 401)],
        {"axis": 1},
        [np.tile(np.arange(400, -1, -1), (3, 1)), draw(3, 401)],
    ),
    "elements that are added": (
        "ScatterND",
        [(7, 3)],
        {"reduction": "add"},
        [np.array([[6], [1], [6]]), draw(3, 3)],
    ),
    "rows of a table": ("Gather", [(99, 5)], {"axis": 0}, [np.array([98, 0, 41])]),
    "a norm": ("LayerNormalization", [(3, 37)], {}, [draw(37), draw(37)]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_kernels_read_and_write_halves(name: str, where: str, gl_context: Any) -> None:
    op, shapes, attributes, constants = OPERATORS[name]
    names = {"inputs": [f"x{k}" for k in range(len(shapes))], "constants": [f"c{k}" for k in range(len(constants))]}
    model = graph(
        [(op, [*names["inputs"], *names["constants"]], ["y"], attributes)],
        dict(zip(names["inputs"], shapes, strict=True)),
        constants=dict(zip(names["constants"], constants, strict=True)),
        optimize=False,
    )
    given = {x: rounded(draw(*shape)) for x, shape in zip(names["inputs"], shapes, strict=True)}
    (expected,) = pf.run(model, given).values()
    (found,) = pf.run(between_copies(model), given, where, ctx=gl_context, strict=True, activations="float16").values()
    np.testing.assert_allclose(found, expected, 1e-3, 1e-4)
    np.testing.assert_array_equal(found, rounded(found))  # nothing wider than a half was between the layers


def test_launches_in_parts_write_all_halves(gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if gl_context.version_code < 430:
        pytest.skip("gpu_compute needs GL 4.3")
    monkeypatch.setattr(compute, "_MAX_GROUPS", 3)
    model = graph([("ReduceMax", ["x", "axis"], ["y"])], {"x": (41, 5, 71)}, constants={"axis": np.array([1])})
    x = rounded(draw(41, 5, 71))
    (found,) = pf.run(between_copies(model), {"x": x}, "gpu_compute", ctx=gl_context, **BOTH).values()
    np.testing.assert_array_equal(found, x.max(1, keepdims=True))


def test_a_larger_shape_enlarges_the_storage_of_halves(where: str, gl_context: Any) -> None:
    model = network()
    with pf.Worker(model, where, gl_context, **BOTH) as half:
        for size in (5, 40, 17, 64, 5):
            x = draw(1, 3, size, size + 1)
            expected = pf.run(model, {"x": x})["y"]
            assert error(half.schedule(x).peek_output().download_to_array(), expected) < 5e-3


def test_values_between_layers_are_the_nearest_halves(where: str, gl_context: Any) -> None:
    model = between_copies(graph([("Identity", ["x"], ["y"])], {"x": ("n",)}, optimize=False))
    numbers = random.integers(0, 1 << 32, 4001, np.uint64).astype(np.uint32).view(np.float32)
    ties = (np.arange(1024, 2048, dtype=np.float32) + 0.5) / 64
    edges = np.float32([0, -0.0, 65504, -65504, 65519, 65520, -65520, 1e30, np.inf, -np.inf, np.nan])
    x = np.concatenate([numbers, ties, edges])
    x = x[(np.abs(x) >= 2**-14) | (x == 0) | np.isnan(x)]  # drivers may flush smaller ones to zero
    with np.errstate(over="ignore"):
        expected = rounded(x)
    (found,) = pf.run(model, {"x": x}, where, ctx=gl_context, activations="float16").values()
    np.testing.assert_array_equal(found, expected)


def network(**changed: Any) -> pf.Model:
    """Two convolutions, a pool, and a product. The largest value lies between them."""
    return graph(
        [
            ("Conv", ["x", "w", "b"], ["c"], {"pads": [1, 1, 1, 1]}),
            ("Relu", ["c"], ["r"]),
            ("Conv", ["r", "v"], ["d"], {"pads": [1, 1, 1, 1]}),
            ("GlobalAveragePool", ["d"], ["g"]),
            ("Flatten", ["g"], ["f"]),
            ("MatMul", ["f", "m"], ["y"]),
        ],
        {"x": (1, 3, "height", "width")},
        constants=WEIGHTS | changed,
    )


WEIGHTS = {"w": draw(16, 3, 3, 3), "b": draw(16), "v": draw(32, 16, 3, 3), "m": draw(32, 40)}
X = draw(1, 3, 33, 29)


def run(worker: pf.Worker) -> Any:
    return worker.schedule(X).peek_output().download_to_array()


def error(found: Any, expected: Any) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_halves_take_half_of_the_memory(where: str, gl_context: Any) -> None:
    model, expected = network(), pf.run(network(), {"x": X})["y"]
    with pf.Worker(model, where, gl_context) as whole, pf.Worker(model, where, gl_context, **BOTH) as half:
        assert error(run(whole), expected) < 1e-5
        assert 1e-5 < error(run(half), expected) < 5e-3
        one, other = whole.memory_use[0], half.memory_use[0]
        few = 4 * sum(value.size for value in WEIGHTS.values() if value.size < 256)
        assert one.packed + one.read - few == 2 * (other.packed + other.read - few)
        assert other.whole == ()
        assert other.workspace < 0.6 * one.workspace  # what a layer keeps between its kernels stays float32


@pytest.mark.parametrize("chosen", [{"weights": "float16"}, {"activations": "float16"}])
def test_weights_and_values_are_chosen_apart(chosen: dict[str, str], where: str, gl_context: Any) -> None:
    model = network()
    with pf.Worker(model, where, gl_context) as whole, pf.Worker(model, where, gl_context, **chosen) as half:
        assert 1e-5 < error(run(half), run(whole)) < 5e-3
        one, other = whole.memory_use[0], half.memory_use[0]
        assert (other.packed + other.read < one.packed + one.read) == ("weights" in chosen)
        assert (other.workspace < one.workspace) == ("activations" in chosen)


def test_workers_of_a_context_share_only_weights_of_their_precision(where: str, gl_context: Any) -> None:
    model = network()
    (alone,) = pf.run(model, {"x": X}, where, ctx=gl_context).values()
    half = pf.Worker(model, where, gl_context, weights="float16")
    (first, whole, second) = run(half), pf.Worker(model, where, gl_context), pf.Worker(model, where, gl_context, **BOTH)
    np.testing.assert_array_equal(run(whole), alone)
    assert error(first, alone) > 1e-5
    half.release()
    del half
    collect_garbage()
    np.testing.assert_array_equal(run(whole), alone)
    whole.release()
    assert 1e-5 < error(run(second), alone) < 5e-3
    second.release()


def test_weights_that_are_halves_change_nothing(where: str, gl_context: Any) -> None:
    model = network(**{name: rounded(value) for name, value in WEIGHTS.items()})
    with pf.Worker(model, where, gl_context) as whole, pf.Worker(model, where, gl_context, weights="float16") as half:
        assert error(run(half), run(whole)) < 1e-6


@pytest.mark.parametrize("large", [1e5, -7e4, np.inf, np.nan])
def test_weights_that_do_not_fit_stay_float32(
    large: float, where: str, gl_context: Any, caplog: pytest.LogCaptureFixture
) -> None:
    m = WEIGHTS["m"].copy()
    m[3, 7] = large
    model = graph([("MatMul", ["x", "m"], ["y"])], {"x": ("n", 32)}, constants={"m": m})
    x = draw(3, 32)
    (expected,) = pf.run(model, {"x": x}, where, ctx=gl_context).values()
    with (
        caplog.at_level(logging.WARNING, "perframe"),
        pf.Worker(model, where, gl_context, weights="float16") as half,
        pf.Worker(model, where, gl_context, **BOTH) as later,  # it shares the constant
    ):
        np.testing.assert_array_equal(half.schedule(x).peek_output().download_to_array(), expected)
        later.schedule(x)
        assert [worker.memory_use[0].whole for worker in (half, later)] == [("m",)] * 2
    assert f"stays float32 on {where}: it holds {large:.6g}, and float16 holds up to 65,504" in caplog.text


def test_a_value_beyond_float16_becomes_infinite(where: str, gl_context: Any) -> None:
    model = between_copies(graph([("Mul", ["x", "k"], ["y"])], {"x": (5,)}, constants={"k": np.float32(1000)}))
    x = np.float32([1, 65, 66, -66, 0])
    (found,) = pf.run(model, {"x": x}, where, ctx=gl_context, **BOTH).values()
    np.testing.assert_array_equal(found, np.float32([1000, 64992, np.inf, -np.inf, 0]))


def test_inputs_and_outputs_stay_float32(where: str, gl_context: Any) -> None:
    x = np.float32([1e6, 1 / 3, -7e4])
    model = graph([("Neg", ["x"], ["y"])], {"x": (3,)})
    (found,) = pf.run(model, {"x": x}, where, ctx=gl_context, **BOTH).values()
    np.testing.assert_array_equal(found, -x)


def test_values_that_cross_to_the_cpu_stay_float32(where: str, gl_context: Any) -> None:
    nodes = [
        ("Neg", ["x"], ["n"]),
        ("Cast", ["n"], ["d"], {"to": TensorProto.DOUBLE}),
        ("Sin", ["d"], ["s"]),
        ("Cast", ["s"], ["f"], {"to": TensorProto.FLOAT}),
        ("Neg", ["f"], ["y"]),
    ]
    x = draw(501)
    with pf.Worker(graph(nodes, {"x": (501,)}, optimize=False), where, gl_context, **BOTH) as half:
        found = half.schedule(x).peek_output().download_to_array()
        assert half.fallbacks
    np.testing.assert_allclose(found, np.sin(x), 1e-6, 1e-7)


def test_whole_numbers_and_truth_stay_exact(where: str, gl_context: Any) -> None:
    nodes = [("Neg", ["x"], ["n"]), ("Mul", ["n", "x"], ["m"]), ("Transpose", ["m"], ["y"])]
    x = random.integers(-30000, 30000, (31, 9)).astype(np.int32)
    (found,) = pf.run(graph(nodes, {"x": (31, 9)}, dtype=np.int32), {"x": x}, where, ctx=gl_context, **BOTH).values()
    np.testing.assert_array_equal(found, (-x * x).T)


@pytest.mark.quick(cases=0)
def test_comparison_with_float32_names_the_errors(where: str, gl_context: Any) -> None:
    found = pf.compare(network(), {"x": X}, where, gl_context, **BOTH)
    errors = {one.output: one.relative for one in found}
    assert set(errors) >= {"d", "y"} and all(1e-6 < one < 5e-3 for one in errors.values())
    assert all(one.agrees for one in found)
    outputs = [pf.run(network(), {"x": X}, where, ctx=gl_context, **chosen)["y"] for chosen in ({}, BOTH)]
    assert errors["y"] == pytest.approx(error(*reversed(outputs)), rel=1e-3)  # as runs have it
    huge = pf.compare(network(w=WEIGHTS["w"] * 6e4), {"x": X}, where, gl_context, activations="float16")
    assert next(one for one in huge if not one.agrees).layer == next(iter(huge)).layer  # where the values overflow


@pytest.mark.parametrize("chosen", [{"weights": "float16"}, {"activations": "float16"}])
def test_the_cpu_refuses_halves(chosen: dict[str, str]) -> None:
    with pytest.raises(pf.InputError, match=r"the CPU keeps .* float32.*pf\.quantize"):
        pf.Worker(network(), "cpu", **chosen)


@pytest.mark.parametrize("name", ["weights", "activations"])
def test_another_dtype_is_refused(name: str) -> None:
    with pytest.raises(pf.InputError, match=rf"{name}='bfloat16' is neither 'float32' nor 'float16'"):
        pf.Worker(network(), "gpu_pixel", **{name: "bfloat16"})
