"""Networks as GLSL functions compute in a fragment shader what workers compute."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import glsl_rules
import numpy as np
import pytest

import perframe as pf
from exporters.glsl_pixels import Array, drawn, fragment, function_of
from perframe.ir import Layer, Value
from perframe.ir.declaration import declaration
from perframe.ir.index import FILE_OF
from small import load, node
from support import GL_BACKENDS, unavailable

PIXELS = 37
VERSIONS = ("330", "430")
MLPS: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...] = (
    ((1, 1), ("Tanh",)),
    ((3, 7, 4), ("Relu", "Sigmoid")),
    ((4, 16, 3, 5), ("Sin", "Gelu", "Softplus")),
    ((5, 64, 16, 7, 1), ("Elu", "HardSwish", "LeakyRelu", "Mish")),
    ((2, 5, 1, 4), ("Selu", "Softsign", "Cos")),
)


def random_array(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def mlp(widths: tuple[int, ...], activations: tuple[str, ...], optimize: bool = True) -> pf.Model:
    nodes, constants, x = [], {}, "x"
    for at, (before, after, op) in enumerate(zip(widths[:-1], widths[1:], activations, strict=True)):
        constants[f"w{at}"] = random_array(after, before, seed=at) / np.sqrt(np.float32(before))
        constants[f"b{at}"] = random_array(after, seed=at)
        y = "y" if at == len(activations) - 1 else f"h{at}"
        nodes += [node("Gemm", f"{x} w{at} b{at}", f"sum{at}", transB=1), node(op, f"sum{at}", y)]
        x = y
    return load(nodes, {"x": ["n", widths[0]]}, constants=constants, optimize=optimize)


@cache
def drawn_mlp(ctx: Any, case: int, version: str) -> Array:
    """The results of a shader: they are the same for all backends."""
    model = mlp(*MLPS[case])
    return function_of(model, ctx, random_array(PIXELS, MLPS[case][0][0]), version=version)[0]


@pytest.mark.parametrize("case", range(len(MLPS)))
def test_mlps_agree_with_the_cpu(gl_context: Any, case: int) -> None:
    check_mlp(gl_context, "cpu", case)


@pytest.mark.parametrize("where", GL_BACKENDS)
def test_an_mlp_agrees_with_gl(gl_context: Any, where: str) -> None:
    check_mlp(gl_context, where, 3)


def check_mlp(gl_context: Any, backend: str, case: int) -> None:
    x = random_array(PIXELS, MLPS[case][0][0])
    wanted = pf.run(mlp(*MLPS[case]), {"x": x}, backend=backend)["y"]
    for version in VERSIONS[: 1 + (gl_context.version_code >= 430)]:
        np.testing.assert_allclose(drawn_mlp(gl_context, case, version), wanted, 1e-4, 1e-4)


def convolutions() -> pf.Model:
    """1 × 1 convolutions, one in groups, with a residual connection and joined and sliced channels."""
    nodes = [
        node("Conv", "x w0 b0", "a"),
        node("Sigmoid", "a", "g"),
        node("Mul", "a g", "s"),
        node("Conv", "s w1", "c", group=2),
        node("Add", "c x", "d"),
        node("Concat", "d x", "e", axis=1),
        node("Slice", "e first last axis", "f"),
        node("Mul", "f scale", "h"),
        node("Split", "h", "y z", axis=1, num_outputs=2),
    ]
    constants = {
        "w0": random_array(6, 4, 1, 1),
        "b0": random_array(6),
        "w1": random_array(4, 3, 1, 1),
        "first": np.array([1]),
        "last": np.array([7]),
        "axis": np.array([1]),
        "scale": random_array(1, 6, 1, 1),
    }
    return load(nodes, {"x": [1, 4, "h", "w"]}, "y z", constants)


def test_convolutions_agree_with_workers(gl_context: Any, backend: str) -> None:
    x = random_array(1, 4, 5, 7)
    wanted = pf.run(convolutions(), {"x": x}, backend=backend)
    found = function_of(convolutions(), gl_context, x.reshape(4, -1).T)
    for name, array in zip(("y", "z"), found, strict=True):
        np.testing.assert_allclose(array.T.reshape(1, 3, 5, 7), wanted[name], 1e-4, 1e-4)


def encoding() -> pf.Model:
    """Sines and cosines of coordinates, joined with them and with a second input."""
    nodes = [
        node("Unsqueeze", "p last", "u"),
        node("Mul", "u octaves", "v"),
        node("Sin", "v", "s"),
        node("Cos", "v", "c"),
        node("Concat", "s c", "sc", axis=-1),
        node("Reshape", "sc shape", "e"),
        node("Concat", "p e t", "all", axis=-1),
        node("MatMul", "all w", "m"),
        node("Add", "m b", "y"),
    ]
    constants = {
        "last": np.array([-1]),
        "octaves": np.array([1, 2, 4, 8, 30], np.float32),
        "shape": np.array([-1, 30]),
        "w": random_array(34, 5),
        "b": random_array(5),
    }
    return load(nodes, {"p": ["n", 3], "t": ["n", 1]}, constants=constants)


def test_encodings_of_several_inputs_agree_with_workers(gl_context: Any, backend: str) -> None:
    p, t = random_array(PIXELS, 3), random_array(PIXELS, 1)
    wanted = pf.run(encoding(), {"p": p, "t": t}, backend=backend)["y"]
    np.testing.assert_allclose(function_of(encoding(), gl_context, p, t)[0], wanted, 1e-4, 1e-4)


def test_channels_may_be_last(gl_context: Any) -> None:
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 3, 1]),
        node("MatMul", "t w", "m"),
        node("Transpose", "m", "y", perm=[0, 3, 1, 2]),
    ]
    constants = {"w": random_array(3, 2)}
    first = load(nodes, {"x": [1, 3, 8, "w"]}, constants=constants, optimize=False)
    last = load([node("MatMul", "x w", "y")], {"x": ["n", "h", 9, 3]}, constants=constants)
    x = random_array(PIXELS, 3)
    for model in (first, last):
        found = drawn(gl_context, pf.to_glsl(model), [x], [2])[0]
        np.testing.assert_allclose(found, x @ constants["w"], 1e-4, 1e-4)


def formulas() -> list[str]:
    """The elementwise layers of floats."""
    found = [declaration(op) for op in FILE_OF if "::" not in op]
    return sorted(
        entry.name
        for entry in found
        if entry.family == "elementwise" and "bool" not in entry.dtypes and entry.dtypes not in ("int", "where")
    )


def test_every_formula_agrees_with_numpy(gl_context: Any) -> None:
    ops, layers, columns, wanted, values = formulas(), [], [], [], []
    assert len(ops) > 50
    draw = np.random.default_rng(3)
    for op in ops:
        entry = declaration(op)
        count = max(len(entry.inputs), 1)
        ranges = (*entry.ranges, *(entry.ranges[-1:] * count))[:count]
        given = [Value(f"{op}_{at}", pf.DataType.FLOAT32, pf.DynamicTensorShape(["n", 1])) for at in range(count)]
        arrays = [draw.uniform(low, high, (PIXELS, 1)).astype(np.float32) for low, high in ranges]
        is_single = bool(entry.channelwise) or op == "Clip"  # all operands but the first are one number each
        if is_single:
            arrays[1:] = [array[:1] for array in arrays[1:]]
            given[1:] = [Value(v.name, constant=a[0]) for v, a in zip(given[1:], arrays[1:], strict=True)]
        made = Value(f"{op}_y")
        layers.append(Layer(op, op, given, [made]))
        with np.errstate(all="ignore"):
            attributes = {k: v for k, v in entry.attributes.items() if k in (entry.formula.__kwdefaults__ or {})}
            chosen = entry.choose(entry.attributes, (True,) * count, "float") if entry.choose else None
            result = (chosen or entry.formula)(*arrays, **({} if chosen else attributes))
        if np.asarray(result).dtype == bool:
            flag, made = made, Value(f"{op}_float")
            layers.append(Layer("Cast", f"{op} cast", [flag], [made], {"to": pf.DataType.FLOAT32}))
        values.append((given[:1] if is_single else given, made))
        columns += arrays[:1] if is_single else arrays
        wanted.append(np.asarray(result, np.float32).reshape(PIXELS))
    inputs = [value for given, _ in values for value in given]
    model = pf.Model(inputs, [made for _, made in values], layers)
    found = drawn(gl_context, pf.to_glsl(model), columns, [1] * len(ops))
    for op, array, right in zip(ops, found, wanted, strict=True):
        np.testing.assert_allclose(array[:, 0], right, 1e-4, 1e-5, err_msg=op)


@pytest.mark.parametrize("where", GL_BACKENDS)
def test_nan_and_infinities_are_those_of_gl(gl_context: Any, where: str) -> None:
    nodes = [
        node("Relu", "x", "a"),
        node("Sub", "x x", "b"),
        node("Max", "x zero", "c"),
        node("Tanh", "x", "d"),
        node("Greater", "x zero", "is_more"),
        node("Where", "is_more zero x", "e"),
        node("Concat", "a b c d e", "all", axis=1),
        node("Mul", "all zero", "f"),
        node("MatMul", "all w", "g"),
        node("Concat", "all f g", "y", axis=1),
    ]
    constants = {"zero": np.float32(0), "w": np.eye(5, 2, dtype=np.float32)}
    model = load(nodes, {"x": ["n", 1]}, constants=constants, optimize=False)
    x = np.array([[np.nan], [np.inf], [-np.inf], [1e38], [-0.0], [2.5]], np.float32)
    found = function_of(model, gl_context, x)[0]
    np.testing.assert_allclose(found, pf.run(model, {"x": x}, backend=where)["y"], 1e-4)
    assert np.isnan(found[:3, 1]).all() and np.isnan(found[0, 0])


def test_angles_may_be_large(gl_context: Any) -> None:
    x = np.random.default_rng(5).uniform(-1e5, 1e5, (200, 1)).astype(np.float32)
    nodes = [node("Sin", "x", "s"), node("Cos", "x", "c"), node("Concat", "s c", "y", axis=1)]
    found = function_of(load(nodes, {"x": ["n", 1]}), gl_context, np.concatenate([x, [[np.inf]]]))[0]
    exact = x.astype(np.float64)
    np.testing.assert_allclose(found[:-1], np.concatenate([np.sin(exact), np.cos(exact)], 1), 0, 1e-5)
    assert np.isnan(found[-1]).all()


def test_constants_that_are_not_finite_are_kept(gl_context: Any) -> None:
    limits = np.array([np.inf, -np.inf, 1e-45, 0.1], np.float32)
    model = load([node("Max", "x limits", "y")], {"x": ["n", 4]}, constants={"limits": limits})
    found = function_of(model, gl_context, np.full((1, 4), -1, np.float32))[0]
    assert found[0, :2].tolist() == [np.inf, -1] and found[0, 3] == np.float32(0.1)


def test_optimized_models_give_the_same(gl_context: Any) -> None:
    case = MLPS[2]
    plain, optimized = (mlp(*case, optimize=optimize) for optimize in (False, True))
    assert any(layer.epilogue for layer in optimized.layers) and not any(layer.epilogue for layer in plain.layers)
    x = random_array(PIXELS, case[0][0])
    found = [function_of(model, gl_context, x)[0] for model in (plain, optimized)]
    np.testing.assert_allclose(*found, 1e-5, 1e-5)


def test_several_networks_fit_one_shader(gl_context: Any) -> None:
    texts = [pf.to_glsl(mlp(*MLPS[case]), name) for case, name in ((0, "network"), (1, "other"))]
    x = random_array(PIXELS, 1)
    found = drawn(gl_context, "".join(texts), [x], [1])[0]
    np.testing.assert_allclose(found, drawn_mlp(gl_context, 0, "330"), 1e-6)


@pytest.mark.parametrize("version", ["330", "430", "300 es"])
def test_the_text_keeps_the_rules(tmp_path: Path, version: str) -> None:
    if shutil.which("glslangValidator") is None:
        unavailable("no glslangValidator; try: apt-get install glslang-tools")
    for at, (model, widths, made) in enumerate(
        [(mlp(*MLPS[3]), [5], [1]), (convolutions(), [4], [3, 3]), (encoding(), [3, 1], [5])]
    ):
        path = tmp_path / f"{at}.frag"
        path.write_text(fragment(pf.to_glsl(model), widths, made, version=version), "utf-8")
        if version == "330":
            assert glsl_rules.complaint(path) == ""
        done = subprocess.run(["glslangValidator", str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
