"""Small networks to quantise, and how far two results are apart."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

import perframe as pf
from passes.graphs import graph, node, random
from perframe.testing.cases import expected_by_onnxruntime

IMAGE = {"x": [1, 8, 12, 10]}


def weights(*shape: int, seed: int) -> Any:
    """Of the size that keeps values as large as they are."""
    return random(*shape, seed=seed) / np.float32(np.sqrt(np.prod(shape[1:])))


def residual() -> onnx.ModelProto:
    """What networks of pictures are made of: convolutions, a residual sum, a join, pools and a classifier."""
    return graph(
        [
            node("Conv", "x k0 b0", "a", pads=[1, 1, 1, 1]),
            node("Relu", "a", "b"),
            node("Conv", "b k1 b1", "c", pads=[1, 1, 1, 1], group=16),
            node("Clip", "c zero six", "d"),
            node("Conv", "d k2 b2", "e"),
            node("Add", "e b", "f"),
            node("Relu", "f", "g"),
            node("MaxPool", "g", "h", kernel_shape=[2, 2], strides=[2, 2]),
            node("Conv", "h k3", "i"),
            node("Concat", "h i", "j", axis=1),
            node("Conv", "j k4 b4", "l"),
            node("Sigmoid", "l", "m"),
            node("Conv", "m k5 b5", "n"),
            node("GlobalAveragePool", "n", "o"),
            node("Flatten", "o", "p"),
            node("Gemm", "p w6 b6", "y", transB=1),
        ],
        IMAGE,
        {
            "k0": weights(16, 8, 3, 3, seed=1),
            "b0": random(16, seed=2) * 0.1,
            "k1": weights(16, 1, 3, 3, seed=3),
            "b1": random(16, seed=4) * 0.1,
            "k2": weights(16, 16, 1, 1, seed=5),
            "b2": random(16, seed=6) * 0.1,
            "k3": weights(8, 16, 1, 1, seed=7),
            "k4": weights(16, 24, 1, 1, seed=8),
            "b4": random(16, seed=9),
            "k5": weights(16, 16, 1, 1, seed=10),
            "b5": random(16, seed=11),
            "w6": weights(10, 16, seed=12),
            "b6": random(10, seed=13),
            "zero": np.float32(0),
            "six": np.float32(6),
        },
    )


def pictures(count: int, *shape: int) -> list[dict[str, Any]]:
    return [{"x": random(*(shape or IMAGE["x"]), seed=100 + index)} for index in range(count)]


def as_onnx(model: pf.Model) -> bytes:
    file = io.BytesIO()
    file.name = "model.onnx"
    pf.save(model, file)
    return file.getvalue()


def peer(model: pf.Model, fed: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs by onnxruntime, of the model's ONNX file."""
    return dict(zip(model.output_names, expected_by_onnxruntime(as_onnx(model), dict(fed)), strict=True))


def apart(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """The largest relative error of the outputs, as a root mean square."""
    assert list(found) == list(wanted)
    return max(
        float(np.linalg.norm(found[name].astype(np.float64) - wanted[name]) / np.linalg.norm(wanted[name]))
        for name in wanted
    )
