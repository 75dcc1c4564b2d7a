"""Small models, and fences that a test opens."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from perframe.ir.sizes.partial import PartialTensor

KINDS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node by names in one text, called like its first output."""
    made = outputs.split(" ")
    return helper.make_node(op, inputs.split(" "), made, name=made[0], **attributes)


def load(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[Any]],
    outputs: str = "y",
    constants: Mapping[str, Any] | None = None,
    dtypes: Mapping[str, str] | None = None,
    optimize: bool = True,
) -> pf.Model:
    """A model of float32 inputs, unless `dtypes` says otherwise."""
    kinds = {name: KINDS[(dtypes or {}).get(name, "float32")] for name in inputs}
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info(name, kinds[name], shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs.split(" ")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return pf.load(onnx.shape_inference.infer_shapes(proto), optimize=optimize)


def specs(model: pf.Model, known: Mapping[str, PartialTensor] | None = None) -> dict[str, PartialTensor]:
    """The spec of each value by its name, with the specs in `known` for inputs."""
    given = {value: known[value.name] for value in model.inputs if known and value.name in known}
    return {value.name: spec for value, spec in model.specs(given).items()}


class Gate:
    """A fence that holds jobs back until a test opens it."""

    def __init__(self) -> None:
        self._open = threading.Event()

    @property
    def done(self) -> bool:
        """Whether it is open."""
        return self._open.is_set()

    def wait(self) -> None:
        """Wait for it; a test that forgets to open it fails and does not hang."""
        assert self._open.wait(20), "the gate was never opened"

    def open(self) -> None:
        """Let them go."""
        self._open.set()


def row(*values: float) -> Any:
    return np.array(values, np.float32)


def gated(values: Any, gate: Gate) -> pf.Tensor:
    """A tensor that is not written before the gate opens."""
    tensor = pf.Tensor(values)
    tensor.data_on_backend.write = gate  # type: ignore[attr-defined]
    return tensor
