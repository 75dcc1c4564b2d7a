"""ONNX files for measurements and comparisons: the light models of the onnx package, and files for other runtimes.

A light model is a real graph whose weights are made by ConstantOfShape nodes, all of them equal. Equal weights hide
wrong indexing, so `light_model` puts seeded random ones in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from perframe.errors import ModelError
from perframe.safety.records import dataclass

Weights = NDArray[np.float32]

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
PREFIX = "light_"

# The role of a parameter in `_draw`, by the operator that reads it and the input.
ROLES = {
    ("Conv", 1): "weight",
    ("Conv", 2): "shift",
    ("Gemm", 1): "weight",
    ("Gemm", 2): "shift",
    ("BatchNormalization", 1): "scale",
    ("BatchNormalization", 2): "shift",
    ("BatchNormalization", 3): "shift",
    ("BatchNormalization", 4): "scale",
    ("Mul", 1): "scale",
    ("Add", 1): "shift",
}
# Operators that keep the magnitude of values: the search for a sum or a softmax behind a layer looks through them.
TRANSPARENT = {"BatchNormalization", "Relu", "Reshape", "GlobalAveragePool", "AveragePool", "Dropout"}


def light_names() -> list[str]:
    """Return the names that `light_model` knows, e.g. "light_resnet50"."""
    return sorted(path.stem for path in FOLDER.glob(f"{PREFIX}*.onnx"))


def light_model(name: str, seed: int = 0) -> bytes:
    """Return a light model as the bytes of an ONNX file. With its random weights, values stay of the order of one.

    Weights are He-normal (He et al. 2015), a third as large where they feed a sum, and small in front of a softmax so
    that it does not saturate. The same name and seed give the same bytes. Raises ModelError for an unknown name.
    """
    path = FOLDER / f"{PREFIX}{name.removeprefix(PREFIX)}.onnx"
    if not path.is_file():
        raise ModelError(f"there is no light model {name!r} in the onnx package; there are {', '.join(light_names())}")
    model = _without_initializers_as_inputs(onnx.load(path))
    graph = model.graph
    users = _Users.of(graph)
    shapes = {tensor.name: tensor for tensor in graph.initializer}
    random = np.random.default_rng(seed)
    weights: list[onnx.TensorProto] = []
    for name, shape in _parameters(graph, shapes):
        role, gain = users.role(name)
        if role:
            weights.append(numpy_helper.from_array(_draw(random, role, shape, gain), name))
    drawn = {tensor.name for tensor in weights}
    nodes = [node for node in graph.node if node.output[0] not in drawn]
    kept = [tensor for tensor in graph.initializer if tensor.name not in drawn]
    _replace(graph.node, nodes)
    used = {name for node in nodes for name in node.input}
    _replace(graph.initializer, [tensor for tensor in [*kept, *weights] if tensor.name in used])
    return _serialized(model)


def for_other_runtimes(path: str | Path) -> bytes | None:
    """Return the file without its initializers among the graph's inputs, so that other runtimes may fold them.

    The IR version is raised to 4, the first that allows this. Returns None if the file needs no change.
    """
    model = onnx.load(path)
    constants = {tensor.name for tensor in model.graph.initializer}
    if model.ir_version >= 4 and not any(value.name in constants for value in model.graph.input):
        return None
    return _serialized(_without_initializers_as_inputs(model))


def _without_initializers_as_inputs(model: onnx.ModelProto) -> onnx.ModelProto:
    constants = {tensor.name for tensor in model.graph.initializer}
    _replace(model.graph.input, [value for value in model.graph.input if value.name not in constants])
    model.ir_version = max(model.ir_version, 4)
    return model


def _parameters(graph: onnx.GraphProto, shapes: dict[str, onnx.TensorProto]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield every float parameter with its shape: outputs of ConstantOfShape, and trained weights in the file."""
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            yield node.output[0], tuple(int(dim) for dim in numpy_helper.to_array(shapes[node.input[0]]))
    for tensor in shapes.values():
        if tensor.data_type == onnx.TensorProto.FLOAT:
            yield tensor.name, tuple(tensor.dims)


def _draw(random: np.random.Generator, role: str, shape: tuple[int, ...], gain: float) -> Weights:
    if role == "scale":
        values = random.uniform(0.8, 1.2, shape)
    elif role == "shift":
        values = random.normal(0, 0.1, shape)
    else:
        rows = shape[2:] if shape[:2] == (1, 1) else shape  # Caffe's matrices have two leading ones
        fan_in = int(np.prod(rows[1:]))
        values = random.normal(0, gain / np.sqrt(fan_in), shape)
    return values.astype(np.float32)


@dataclass(frozen=True)
class _Users:
    """The nodes that read each value."""

    readers: dict[str, list[tuple[onnx.NodeProto, int]]]

    @classmethod
    def of(cls, graph: onnx.GraphProto) -> _Users:
        readers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
        for node in graph.node:
            for index, value in enumerate(node.input):
                readers.setdefault(value, []).append((node, index))
        return cls(readers)

    def role(self, name: str) -> tuple[str | None, float]:
        """Return the role of a parameter (None if it is not drawn), and the gain of a weight."""
        for node, index in self.readers.get(name, ()):
            if node.op_type in ("Unsqueeze", "Reshape") and index == 0:
                return self.role(node.output[0])
            role = ROLES.get((node.op_type, index))
            return role, self._gain(node) if role == "weight" else 1.0
        return None, 1.0

    def _gain(self, node: onnx.NodeProto) -> float:
        behind = self._behind(node.output[0])
        if "Softmax" in behind:
            return 0.3
        return 0.5 if behind & {"Sum", "Add"} else np.sqrt(2)

    def _behind(self, value: str) -> set[str]:
        """Return the operators that a value reaches through operators that keep its magnitude."""
        found: set[str] = set()
        for node, _ in self.readers.get(value, ()):
            found |= self._behind(node.output[0]) if node.op_type in TRANSPARENT else {node.op_type}
        return found


def _serialized(model: onnx.ModelProto) -> bytes:
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def _replace(field: Any, items: list[Any]) -> None:
    del field[:]
    field.extend(items)
