"""What a GLSL function of one pixel cannot express is refused, layer by layer, and names become those of GLSL."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import InputError, ModelError
from small import load, node


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


PICTURE: Any = {"x": [1, 3, "h", "w"]}


def test_all_layers_that_cannot_be_expressed_are_listed() -> None:
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
        node("Relu", "a", "b"),
        node("MaxPool", "b", "c", kernel_shape=[2, 2]),
        node("Conv", "x v", "d", strides=[2, 2]),
        node("Softmax", "d", "e", axis=1),
    ]
    model = load(nodes, PICTURE, "c e", {"w": ones(4, 3, 3, 3), "v": ones(4, 3, 1, 1)}, optimize=False)
    with pytest.raises(ModelError) as raised:
        pf.to_glsl(model)
    lines = str(raised.value).splitlines()
    assert "4 part(s)" in lines[0]
    for line, words in zip(
        lines[1:], ("'a' (Conv): its kernel is 3 × 3", "'c' (MaxPool)", "'d' (Conv): its strides", "'e'"), strict=True
    ):
        assert words in line and "Worker" in line


@pytest.mark.parametrize(
    ("nodes", "inputs", "constants", "words"),
    [
        ([node("Softmax", "x", "y", axis=1)], PICTURE, {}, "run it with a Worker"),
        ([node("MatMul", "x x", "y")], {"x": [1, 1, 3, 3]}, {}, "is not constant"),
        ([node("MatMul", "x w", "y")], {"x": ["n", 8, "h"]}, {"w": ones(8, 2)}, "is open"),
        ([node("Transpose", "x", "y", perm=[0, 1, 3, 2])], PICTURE, {}, "change places"),
        ([node("Transpose", "x", "t", perm=[0, 1, 3, 2]), node("Add", "x t", "y")], PICTURE, {}, "different pixels"),
        ([node("Slice", "x zero one two", "y")], PICTURE, "slice", "numbers of results|Worker"),
        ([node("Add", "x w", "y")], {"x": [1, 3, 5, 5]}, {"w": ones(5, 5)}, "number of pixels"),
        ([node("Gather", "x i", "y", axis=0)], {"x": ["n", 3]}, {"i": np.array([1, 0])}, "change places"),
        ([node("Shape", "x", "s"), node("Cast", "s", "f", to=1), node("Add", "x f", "y")], {"x": [2, 2]}, {}, "number"),
    ],
)
def test_layers_that_mix_pixels_are_refused(nodes: Any, inputs: Any, constants: Any, words: str) -> None:
    if constants == "slice":
        constants = {"zero": np.array([0]), "one": np.array([1]), "two": np.array([2])}
    model = load(nodes, inputs, constants=constants, optimize=False)
    with pytest.raises(ModelError, match=words):
        pf.to_glsl(model)


def test_other_dtypes_are_refused() -> None:
    model = load([node("Add", "x x", "y")], {"x": ["n", 3]}, dtypes={"x": "int64"})
    with pytest.raises(ModelError, match=r"input 'x': it is int64.*\n.*output 'y'|input 'x'"):
        pf.to_glsl(model)


def test_too_many_weights_are_refused_with_their_number() -> None:
    constants = {"w": ones(64, 256), "v": ones(256, 4)}
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "r"), node("MatMul", "r v", "y")]
    with pytest.raises(ModelError, match=r"'y' \(MatMul\).* 17,408 weights .* at most 16,384"):
        pf.to_glsl(load(nodes, {"x": ["n", 64]}, constants=constants))


@pytest.mark.parametrize(
    "name", ["", "1st", "gl_network", "a__b", "_a", "a_", "vec3", "sampler2D", "in", "noise1", "ä"]
)
def test_names_that_glsl_does_not_allow_are_refused(name: str) -> None:
    model = load([node("Relu", "x", "y")], {"x": ["n", 3]})
    with pytest.raises(InputError, match="cannot name a function in GLSL"):
        pf.to_glsl(model, name)


def test_only_models_are_taken() -> None:
    with pytest.raises(InputError, match=r"as pf\.load returns it"):
        pf.to_glsl("m.onnx")  # type: ignore[arg-type]


def test_names_of_values_become_identifiers() -> None:
    names = ["x/0:a", "x.0.a", "sin", "v0", "network", "out", "gl_Position", "näher", "color"]
    nodes = [node("Relu", name, f"{name}/y") for name in names]
    model = load(nodes, {name: ["n", 2] for name in names}, " ".join(f"{name}/y" for name in names))
    found = re.search(r"void network\((.*)\) \{", pf.to_glsl(model))
    assert found is not None
    made = [one.split()[-1] for one in found[1].split(", ")]
    assert made[:2] == ["x_0_a", "value_x_0_a"] and made[2:7] == [f"value_{n}" for n in names[2:7]]
    assert made[8] == "color" and made[-1] == "color_y" and len(set(made)) == len(made)


def test_the_text_has_only_what_it_needs() -> None:
    text = pf.to_glsl(load([node("Sin", "x", "y")], {"x": ["n", 3]}), "wave")
    assert "wave_within_turn" in text and "wave_erf" not in text and "#" not in text and "__" not in text
    text = pf.to_glsl(load([node("Add", "x b", "y")], {"x": ["n", 3]}, constants={"b": ones(3)}), "sum")
    declared = re.findall(r"^\w+ (\w+)[(;]", text, re.MULTILINE)
    assert all(name.startswith("sum") for name in declared) and "sum_within_turn" not in text


def test_an_output_may_be_constant() -> None:
    nodes = [node("Relu", "x", "y"), node("Neg", "c", "z")]
    model = load(nodes, {"x": ["n", 2]}, "y z", {"c": np.array([[2.5, -3]], np.float32)}, optimize=False)
    assert "z = vec2(-2.5, 3.0);" in pf.to_glsl(model)
