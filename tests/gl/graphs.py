"""Small models with open dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import perframe as pf

Dims = Sequence[int | str]


def graph(
    nodes: Sequence[tuple[Any, ...]],
    inputs: Mapping[str, Dims],
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, NDArray[Any]] | None = None,
    dtype: Any = np.float32,
    optimize: bool = True,
) -> pf.Model:
    """A model of (operator, inputs, outputs, attributes); dims that are names stay open."""
    made = [
        helper.make_node(op, list(given), list(out), **(rest[0] if rest else {})) for op, given, out, *rest in nodes
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    infos = [helper.make_tensor_value_info(name, kind, list(dims)) for name, dims in inputs.items()]
    ends = [onnx.ValueInfoProto(name=name) for name in outputs]
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    body = helper.make_graph(made, "graph", infos, ends, weights)
    proto = helper.make_model(body, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return pf.load(onnx.shape_inference.infer_shapes(proto), optimize=optimize)


def network() -> pf.Model:
    """max(2 x - 0.5, 0) over pictures of any size, by way of two layers that are not fused."""
    weights = np.zeros((3, 3, 1, 1), np.float32)
    weights[range(3), range(3)] = 2
    return graph(
        [("Conv", ["x", "w", "b"], ["z"]), ("MaxPool", ["z"], ["p"], {"kernel_shape": [1, 1]}), ("Relu", ["p"], ["y"])],
        {"x": (1, 3, "height", "width")},
        constants={"w": weights, "b": np.full(3, -0.5, np.float32)},
    )
