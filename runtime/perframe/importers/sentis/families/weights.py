"""Products, convolutions, pools, recurrent layers, samplers and spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.importers.sentis.node import INT_MAX, SentisNode, activation_names
from perframe.importers.sentis.table import adapter
from perframe.ir import Value

_NO_CLIP = 3.4e38  # the largest float32, which Unity writes where there is no limit


@adapter("MatMul2D")
def _mat_mul_2d(node: SentisNode) -> Value:
    return node("Gemm", node.x("a"), node.x("b"), transA=node["transA"], transB=node["transB"])


@adapter("Dense", "DenseBatched")
def _dense(node: SentisNode) -> Value:
    made, bias = node("MatMul", node.x("x"), node.x("w")), node.optional("b")
    return node.activated(made if bias is None else node("Add", made, bias))


@adapter("Conv", "ConvTranspose")
def _conv(node: SentisNode) -> Value:
    """Lists of strides and pads may be longer than the spatial dims: the first entries count."""
    x, w = node.x("x"), node.x("w")
    rank = node.rank(w) - 2
    attributes: dict[str, Any] = {"auto_pad": node["auto_pad"], "group": node["group"]}
    names = ("kernel_shape", "strides", "dilations", "output_padding", "pads")
    for name in names:
        if name in node.attributes():
            attributes[name] = _first(node[name], 2 * rank if name == "pads" else rank, name)
    if node["auto_pad"] != "NOTSET":
        attributes.pop("pads", None)
    inputs = [x, w] if not node.has("b") else [x, w, node.x("b")]
    return node.activated(node(node.kind.name, *inputs, **attributes))


def _first(numbers: Sequence[int], count: int, name: str) -> tuple[int, ...]:
    if len(numbers) < count:
        raise ValueError(f"its argument {name} is {tuple(numbers)}, and needs {count} entries")
    return tuple(numbers[:count])


@adapter("MaxPool", "AveragePool")
def _pool(node: SentisNode) -> Value:
    attributes = node.attributes()
    if attributes["auto_pad"] != "NOTSET":
        attributes.pop("pads", None)
    return node(node.kind.name, node.x("x"), **attributes)


@adapter("ScaleBias")
def _scale_bias(node: SentisNode) -> Value:
    """A normalization of statistics 0 and 1."""
    x, scale = node.x("x"), node.x("scale")
    count = node.sizes(scale, 0)[0]
    node.check_room(count)
    mean, variance = (node.constant(np.full(count, number), np.float32) for number in (0, 1))
    return node("BatchNormalization", x, scale, node.x("bias"), mean, variance, epsilon=0.0)


@adapter("Resize")
def _resize(node: SentisNode) -> Value:
    """`by` holds sizes, or scales; scales of all dims ignore the axes."""
    x, by, names = node.x("x"), node.x("by"), ("coordinate_transformation_mode", "mode", "nearest_mode")
    attributes = {name: node[name] for name in names}
    count = node.sizes(by, 0)[0]
    if node["axes"] is not None and not (node["scale_mode"] == 1 and count == node.rank(x)):
        attributes["axes"] = node["axes"]
    if node["scale_mode"] == 1:
        return node("Resize", x, None, by, **attributes)
    if node["scale_mode"] != 0:
        raise ValueError(f"its argument scale_mode is {node['scale_mode']}, and must be 0 or 1")
    return node("Resize", x, None, None, node.long(by), **attributes)


@adapter("LSTM")
def _lstm(node: SentisNode) -> list[Value]:
    attributes = node.attributes()
    limit = attributes.pop("clip")
    if not limit > 0:
        raise ValueError(f"its argument clip is {limit}, and must be positive")
    if limit < _NO_CLIP:
        attributes["clip"] = limit
    attributes["activations"] = activation_names(attributes.get("activations", ())) or None
    return node.several(3, "LSTM", *(node.optional(one.name) for one in node.kind.inputs), **attributes)


@adapter("NonMaxSuppression")
def _non_max_suppression(node: SentisNode) -> Value:
    """Of boxes a class, a negative number stands for all."""
    inputs = [node.optional(one.name) for one in node.kind.inputs]
    most = inputs[2]
    if most is not None:
        known, limit = node.known(most), node.number(INT_MAX, most)
        if known is None:
            inputs[2] = node("Where", node("Less", most, node.number(0, most)), limit, most)
        elif (known < 0).any():
            inputs[2] = limit
    table = node("SuppressNonMaxima", *inputs, center_point_box=node["center_point_box"])
    return node("FilledRows", table)


@adapter("DFT")
def _dft(node: SentisNode) -> Value:
    names = ("x", "dft_length", "axis")
    return node("DFT", *(node.optional(name) for name in names), **node.attributes())


@adapter("STFT")
def _stft(node: SentisNode) -> Value:
    names = ("signal", "frame_step", "window", "frame_length")
    return node("STFT", *(node.optional(name) for name in names), **node.attributes())
