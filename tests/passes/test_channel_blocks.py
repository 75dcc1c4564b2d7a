from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import apply, check_against_peer, fed, graph, node, ops, prepared, random

CONSTANTS: dict[str, Any] = {
    "w": random(8, 3, 3, 3, seed=1),
    "v": random(8, 8, 1, 1, seed=2),
    "odd": random(7, 8, 3, 3, seed=3),
    "after_odd": random(8, 7, 1, 1, seed=4),
    "deep": random(8, 1, 3, 3, seed=5),
    "grouped": random(12, 2, 1, 1, seed=6),
    "wide": random(16, 8, 1, 1, seed=7),
    "line": random(8, 3, 5, seed=8),
    "cube": random(4, 3, 3, 2, 3, seed=9),
    "channels": random(8, 1, 1, seed=10),
    "column": random(8, 5, 1, seed=11),
    "row": random(5, seed=12),
    "axes": np.array([2, 3]),
    "middle": np.array([1]),
    "pads": np.array([0, 0, 1, 2, 0, 0, 1, 0]),
    "more": np.array([0, 0, 0, 0, 0, 8, 0, 0]),
    "three_more": np.array([0, 0, 0, 0, 0, 3, 0, 0]),
    "scales": np.array([1, 1, 2, 2], np.float32),
    "starts": np.array([4, 1]),
    "third": np.array([3, 1]),
    "ends": np.array([8, 4]),
    "sliced": np.array([1, -1]),
    "flat": np.array([2, -1]),
    "m": random(200, 7, seed=13),
    "two": np.float32(2),
    "pairs": np.array([2, 2, 4, 5, 5]),
    "back": np.array([0, 8, 5, -1]),
    "none": np.zeros(0, np.float32),
    "s": np.abs(random(8, seed=14)) + 0.5,
}
PICTURE = {"x": [2, 3, 5, 5]}


def picture(*nodes: onnx.NodeProto, outputs: str = "y") -> onnx.ModelProto:
    first = node("Conv", "x w", "a", pads=[1, 1, 1, 1])
    return graph([first, *nodes], PICTURE, CONSTANTS, outputs)


def between(op: str, inputs: str, **attributes: Any) -> onnx.ModelProto:
    """The layer between two convolutions."""
    return picture(node(op, inputs, "b", **attributes), node("Conv", "b v", "y"))


MODELS = {
    "two convolutions": picture(node("Conv", "a v", "y")),
    "channels that fill no block": picture(node("Conv", "a odd", "b"), node("Conv", "b after_odd", "y")),
    "a layer on channels that fill no block": picture(
        node("Conv", "a odd", "b"), node("Reciprocal", "b", "c"), node("Conv", "c after_odd", "y")
    ),
    "strides and dilations": picture(node("Conv", "a v", "b", strides=[2, 2]), node("Relu", "b", "y")),
    "depthwise": picture(node("Conv", "a deep", "b", group=8, pads=[1, 1, 1, 1]), node("Conv", "b v", "y")),
    "groups that are merged": picture(node("Conv", "a grouped", "y", group=4)),
    "largest": between("MaxPool", "a", kernel_shape=[2, 2], strides=[1, 2], pads=[1, 0, 0, 1]),
    "average": between("AveragePool", "a", kernel_shape=[3, 2], pads=[1, 1, 1, 0], count_include_pad=1),
    "average of what is there": between("AveragePool", "a", kernel_shape=[3, 2], pads=[1, 1, 1, 0], ceil_mode=1),
    "averages of all": between("GlobalAveragePool", "a"),
    "mean over the picture": picture(node("ReduceMean", "a axes", "y", keepdims=0)),
    "mean over channels": picture(node("ReduceMean", "a middle", "b"), node("Mul", "a b", "y")),
    "channel constants": between("Mul", "a channels"),
    "constants of columns": between("Add", "column a"),
    "constants of a row": between("Add", "row a"),
    "one number": between("Pow", "a two"),
    "from a number": between("Sub", "two a"),
    "joined": picture(node("Conv", "a v", "b"), node("Concat", "a b", "y", axis=1)),
    "joined rows": picture(node("Conv", "a v", "b"), node("Concat", "a b", "y", axis=-2)),
    "joined with odd channels": picture(node("Conv", "a odd", "b", pads=[1] * 4), node("Concat", "a b", "y", axis=1)),
    "padded": between("Pad", "a pads"),
    "padded by reflection": between("Pad", "a pads", mode="reflect"),
    "padded channels": picture(node("Pad", "a more", "b"), node("Conv", "a wide", "c"), node("Add", "b c", "y")),
    "padded odd channels": picture(node("Pad", "a three_more", "b"), node("Relu", "b", "y")),
    "resized": between("Resize", "a none scales", mode="linear"),
    "resized to neighbours": between("Resize", "a none scales", mode="nearest"),
    "sliced": picture(node("Slice", "a starts ends sliced", "b"), node("Relu", "b", "y")),
    "sliced within a block": picture(node("Slice", "a third ends sliced", "b"), node("Relu", "b", "y")),
    "softmax over channels": between("Softmax", "a", axis=1),
    "softmax over rows": between("Softmax", "a", axis=-1),
    "flattened": picture(node("Reshape", "a flat", "b"), node("MatMul", "b m", "y")),
    "an output on the way": picture(node("Relu", "a", "b"), node("Conv", "b v", "y"), outputs="b y"),
    "shuffled channels": picture(
        node("Reshape", "a pairs", "b"),
        node("Transpose", "b", "c", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "c back", "d"),
        node("Conv", "d v", "y"),
    ),
    "reshaped otherwise": picture(
        node("Reshape", "a pairs", "b"),
        node("Transpose", "b", "c", perm=[0, 1, 2, 4, 3]),
        node("Reshape", "c back", "d"),
        node("Conv", "d v", "y"),
    ),
    "one dim": graph([node("Conv", "x line", "a"), node("Relu", "a", "y")], {"x": [2, 3, 9]}, CONSTANTS),
    "three dims": graph([node("Conv", "x cube", "a"), node("Relu", "a", "y")], {"x": [1, 3, 4, 5, 6]}, CONSTANTS),
    "batch normalized": picture(node("Relu", "a", "b"), node("BatchNormalization", "b s s s s", "y")),
    "excited": picture(
        node("GlobalAveragePool", "a", "b"),
        node("Conv", "b v", "c"),
        node("Sigmoid", "c", "d"),
        node("Mul", "a d", "e"),
        node("Conv", "e v", "y"),
    ),
    "a residual": picture(node("Conv", "a v", "b"), node("Add", "b a", "c"), node("Relu", "c", "y")),
}
UNCHANGED = {
    "three dims": MODELS["three dims"],
    "computed weights": graph([node("Conv", "x w", "y")], {"x": [2, 3, 5, 5], "w": [4, 3, 3, 3]}),
    "no convolution": graph([node("MaxPool", "x", "y", kernel_shape=[2, 2])], {"x": [1, 4, 4, 4]}),
    "mostly filling": graph([node("Conv", "x u", "y")], {"x": [1, 5, 4, 4]}, {"u": random(1, 5, 1, 1)}),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_stay(name: str, backend: str, backend_context: Any) -> None:
    check_against_peer(MODELS[name], fed(MODELS[name]), backend, backend_context)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in UNCHANGED])
def test_it_fires(name: str) -> None:
    model, changed = apply("channel_blocks", MODELS[name])
    assert changed > 0
    assert "BlockConv" in ops(model)
    want = pf.run(pf.load(MODELS[name], optimize=False), fed(MODELS[name]))
    for output, value in pf.run(model, fed(MODELS[name])).items():
        np.testing.assert_allclose(value, want[output], 1e-4, 1e-5)


@pytest.mark.parametrize("name", UNCHANGED)
def test_other_layers_stay(name: str) -> None:
    model, changed = apply("channel_blocks", UNCHANGED[name])
    assert changed == 0 and "BlockConv" not in ops(model)


STAYING = ("largest", "average", "channel constants", "padded", "resized", "joined", "sliced", "excited", "a residual")


@pytest.mark.parametrize("name", STAYING)
def test_values_leave_their_blocks_only_at_the_end(name: str) -> None:
    found = ops(prepared(MODELS[name], "gpu_compute"))
    assert "ToBlocks" not in found and found.count("FromBlocks") == 1


def test_a_smaller_addend_needs_no_padding() -> None:
    found = ops(prepared(MODELS["padded channels"], "gpu_compute"))
    assert found == ["BlockConv", "BlockConv", "FromBlocks"]


def test_a_shuffle_is_one_layer() -> None:
    assert ops(prepared(MODELS["shuffled channels"], "gpu_pixel")).count("ShuffleBlocks") == 1
    assert "ShuffleBlocks" not in ops(prepared(MODELS["reshaped otherwise"], "gpu_pixel"))


def test_the_size_of_a_map_is_known_where_the_model_fixes_it() -> None:
    def size(x: list[Any]) -> Any:
        model = graph([node("Conv", "x w", "y")], {"x": x}, {"w": CONSTANTS["w"]})
        (layer,) = [layer for layer in prepared(model, "gpu_compute").layers if layer.op == "BlockConv"]
        return layer.attributes["map_size"]

    assert size([1, 3, 12, 20]) == 10 * 18 and size([1, 3, "h", 12]) == 0
