from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from passes.graphs import apply, check_against_peer, fed, graph, node, ops, prepared, random

CONSTANTS: dict[str, Any] = {
    "w": random(4, 3, 3, 3, seed=1),
    "v": random(4, 4, 1, 1, seed=2),
    "deep": random(4, 1, 3, 3, seed=3),
    "up": random(4, 5, 2, 2, seed=4),
    "line": random(6, 3, 5, seed=5),
    "cube": random(4, 3, 3, 2, 3, seed=10),
    "deep_cube": random(4, 1, 2, 2, 1, seed=11),
    "channels": random(4, 1, 1, seed=6),
    "whole": random(1, 4, 5, 1, seed=7),
    "axes": np.array([2, 3]),
    "middle": np.array([1]),
    "pads": np.array([0, 0, 1, 2, 0, 0, 1, 0]),
    "scales": np.array([1, 1, 2, 2], np.float32),
    "starts": np.array([1, 0]),
    "ends": np.array([3, 4]),
    "sliced": np.array([1, -1]),
    "flat": np.array([2, -1]),
    "m": random(100, 7, seed=8),
    "parts": np.array([1, 3]),
    "two": np.float32(2),
    "pairs": np.array([2, 2, 2, 5, 5]),
    "back": np.array([0, 4, 5, -1]),
    "none": np.zeros(0, np.float32),
    "s": np.abs(random(4, seed=9)) + 0.5,
}
PICTURE = {"x": [2, 3, 5, 5]}


def picture(*nodes: onnx.NodeProto, outputs: str = "y") -> onnx.ModelProto:
    first = node("Conv", "x w", "a", pads=[1, 1, 1, 1])
    return graph([first, *nodes], PICTURE, CONSTANTS, outputs)


def last(name: str, op: str, inputs: str, **attributes: Any) -> onnx.ModelProto:
    """The layer between two convolutions."""
    return picture(node(op, inputs, name, **attributes), node("Conv", f"{name} v", "y"))


MODELS = {
    "two convolutions": picture(node("Conv", "a v", "y")),
    "strides and dilations": picture(node("Conv", "a v", "b", strides=[2, 2]), node("Relu", "b", "y")),
    "depthwise": picture(node("Conv", "a deep", "b", group=4, pads=[1, 1, 1, 1]), node("Conv", "b v", "y")),
    "transposed": picture(node("ConvTranspose", "a up", "y", strides=[2, 2])),
    "largest": last("b", "MaxPool", "a", kernel_shape=[2, 2], strides=[1, 2]),
    "average": last("b", "AveragePool", "a", kernel_shape=[3, 2], pads=[1, 1, 1, 0], count_include_pad=1),
    "three spatial dims": graph(
        [
            node("Conv", "x cube", "a", pads=[1] * 6),
            node("MaxPool", "a", "b", kernel_shape=[3, 2, 2], strides=[2, 1, 1], pads=[1, 0, 0, 1, 0, 0]),
            node("Relu", "b", "c"),
            node("AveragePool", "c", "d", kernel_shape=[2, 3, 3], pads=[1] * 6, count_include_pad=1),
            node("Conv", "d deep_cube", "e", group=4),
            node("Add", "e e", "y"),
        ],
        {"x": [2, 3, 4, 6, 7]},
        CONSTANTS,
        "y",
    ),
    "averages of all": picture(node("GlobalAveragePool", "a", "b"), node("Conv", "b v", "y")),
    "mean over the picture": picture(node("ReduceMean", "a axes", "y", keepdims=0)),
    "mean over channels": picture(node("ReduceMean", "a middle", "b"), node("Mul", "a b", "y")),
    "channel constants": last("b", "Mul", "a channels"),
    "constants of rows": last("b", "Add", "whole a"),
    "one number": last("b", "Pow", "a two"),
    "joined": picture(node("Conv", "a v", "b"), node("Concat", "a b", "y", axis=1)),
    "joined rows": picture(node("Conv", "a v", "b"), node("Concat", "a b", "y", axis=-2)),
    "split": picture(node("Split", "a parts", "b y", axis=1), outputs="b y"),
    "padded": last("b", "Pad", "a pads"),
    "resized": last("b", "Resize", "a none scales", mode="linear"),
    "sliced": picture(node("Slice", "a starts ends sliced", "y")),
    "softmax over channels": last("b", "Softmax", "a", axis=1),
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
    "batch normalized": picture(node("Relu", "a", "b"), node("BatchNormalization", "b s s s s", "y")),
    "from channels last": graph(
        [
            node("Transpose", "x", "t", perm=[0, 3, 1, 2]),
            node("Conv", "t w", "a"),
            node("Transpose", "a", "y", perm=[0, 2, 3, 1]),
        ],
        {"x": [2, 5, 5, 3]},
        CONSTANTS,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_stay(name: str) -> None:
    check_against_peer(MODELS[name], fed(MODELS[name]))


@pytest.mark.parametrize("name", MODELS)
def test_it_fires(name: str) -> None:
    model, changed = apply("channels_last", MODELS[name])
    assert changed > 0
    assert any(layer.channels_last for layer in model.layers)


@pytest.mark.parametrize("name", ["largest", "averages of all", "channel constants", "padded", "resized", "joined"])
def test_only_the_ends_are_transposed(name: str) -> None:
    assert ops(prepared(MODELS[name])).count("Transpose") <= 2


def test_shuffled_channels_are_one_transposition() -> None:
    shuffled = ops(prepared(MODELS["shuffled channels"]))
    assert shuffled == ["Transpose", "Conv", "Reshape", "Transpose", "Reshape", "Conv", "Transpose"]
    assert ops(prepared(MODELS["reshaped otherwise"])).count("Transpose") > 3


def test_transpositions_of_the_model_itself_go() -> None:
    assert ops(prepared(MODELS["from channels last"])) == ["Conv"]


def test_a_picture_of_one_channel_is_only_reshaped() -> None:
    model = graph([node("Conv", "x w", "y")], {"x": [2, 1, 5, 5]}, {"w": random(4, 1, 3, 3)})
    assert ops(prepared(model)) == ["Reshape", "Conv", "Transpose"]
    check_against_peer(model, {"x": random(2, 1, 5, 5)})


def test_a_picture_of_three_colours_stays_in_planes() -> None:
    weights = {"w": random(3, 3, 3, 3, seed=1), "v": random(8, 3, 3, 3, seed=2), "u": random(3, 8, 1, 1, seed=3)}
    model = graph([node("Conv", "x w", "a"), node("Conv", "a w", "y")], {"x": [2, 3, 7, 9]}, weights)
    assert ops(prepared(model)) == ["Conv", "Conv"]
    check_against_peer(model, {"x": random(2, 3, 7, 9)})
    # unless its channels are last already
    model = graph(
        [node("Conv", "x v", "a"), node("Conv", "a u", "b"), node("Conv", "b w", "y")], {"x": [2, 3, 7, 9]}, weights
    )
    assert [layer.channels_last for layer in prepared(model).layers if layer.op == "Conv"] == [True] * 3
    check_against_peer(model, {"x": random(2, 3, 7, 9)})


def test_products_and_sums_of_rank_4_stay() -> None:
    model = graph(
        [node("Add", "x z", "a"), node("MatMul", "a m", "y")], {"x": [2, 3, 4, 5], "z": [5]}, {"m": random(5, 7)}
    )
    _, changed = apply("channels_last", model)
    assert changed == 0


def test_weights_that_are_computed_stay() -> None:
    model = graph([node("Conv", "x w", "y")], {"x": [2, 3, 5, 5], "w": [4, 3, 3, 3]})
    _, changed = apply("channels_last", model)
    assert changed == 0
    check_against_peer(model, {"x": random(2, 3, 5, 5), "w": random(4, 3, 3, 3)})


def test_whole_numbers_stay() -> None:
    model = graph([node("MaxPool", "x", "y", kernel_shape=[2, 2])], {"x": [1, 2, 4, 4]})
    _, changed = apply("channels_last", model)
    assert changed == 0


def test_a_worker_leaves_the_model_of_the_caller_as_it_is() -> None:
    import perframe as pf

    model = pf.load(MODELS["two convolutions"])
    before = ops(model), set(model.constants)
    with pf.Worker(model) as worker:
        worker.schedule(random(2, 3, 5, 5))
        assert worker.model is model
    assert (ops(model), set(model.constants)) == before
