"""GL refuses layers that only the CPU's preparation makes. They run on the CPU instead."""

from __future__ import annotations

from typing import Any

import numpy as np

import perframe as pf
from perframe.ir import Layer, Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType


def test_a_convolution_that_begins_with_a_sum(backend: str, backend_context: Any) -> None:
    random = np.random.default_rng(0)
    shapes = {"x": (1, 3, 6, 5), "z": (1, 4, 4, 3), "w": (4, 3, 3, 3), "b": (4,)}
    given = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    inputs = [Value(name, DataType.FLOAT32, DynamicTensorShape(shapes[name])) for name in ("x", "z")]
    output = Value("y", DataType.FLOAT32, DynamicTensorShape(shapes["z"]))
    constants = {name: given[name] for name in ("w", "b")}

    def run(layers: list[Layer], backend: str) -> Any:
        model = Model(inputs, [output], layers, constants)
        return pf.run(model, {"x": given["x"], "z": given["z"]}, backend, ctx=backend_context)["y"]

    apart = [Layer("Conv", "conv", ["x", "w", "b"], ["c"]), Layer("Add", "add", ["c", "z"], ["y"])]
    together = [Layer("Conv", "conv", ["x", "w", "b", "z"], ["y"])]
    np.testing.assert_allclose(run(together, backend), run(apart, backend), 1e-5, 1e-5)
