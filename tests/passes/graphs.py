"""Small models for the tests of passes, and their common checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from perframe.backends import evaluator
from perframe.passes import load_pass, prepare

KINDS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "uint8": TensorProto.UINT8}


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    """A node by names in one text: `node("Add", "x b", "y")`."""
    return helper.make_node(op, inputs.split(" "), output.split(" "), name=output.split(" ")[0], **attributes)


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[Any]],
    constants: Mapping[str, Any] | None = None,
    outputs: str = "y",
    dtype: str = "float32",
) -> onnx.ModelProto:
    """A model of float32 inputs with these shapes."""
    made = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info(name, KINDS[dtype], shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs.split(" ")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def apply(name: str, model: onnx.ModelProto) -> tuple[pf.Model, int]:
    """The model after one pass, verified, and how much the pass changed."""
    loaded = pf.load(model, optimize=False)
    changed = load_pass(name)(loaded, evaluator())
    loaded.verify()
    return loaded, changed


def prepared(model: onnx.ModelProto, backend: str = "cpu") -> pf.Model:
    """The model as a worker of this backend runs it."""
    loaded = prepare(pf.load(model), evaluator(), backend)
    loaded.verify()
    return loaded


def ops(model: pf.Model) -> list[str]:
    """The operators of a model in run order; those of an epilogue after a plus sign."""
    return ["+".join([layer.op, *(stage.op for stage in layer.epilogue)]) for layer in model.layers]


def check_numbers_stay(
    model: onnx.ModelProto, fed: Mapping[str, Any], backend: str, ctx: Any, tolerance: float = 1e-5
) -> None:
    """The optimised model computes the same as the file's."""
    plain = pf.run(pf.load(model, optimize=False), fed, backend="cpu")
    optimized = pf.run(pf.load(model), fed, backend=backend, ctx=ctx)
    assert list(optimized) == list(plain)
    for name, want in plain.items():
        assert (optimized[name].dtype, optimized[name].shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(
            optimized[name], want, tolerance, tolerance * np.abs(want).max(initial=1), err_msg=name
        )


def random(*shape: int, seed: int = 0) -> Any:
    """Seeded, and different for each seed."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def fed(model: onnx.ModelProto) -> dict[str, Any]:
    """Seeded values for all inputs of a model whose dims are fixed."""
    return {v.name: random(*(d.dim_value for d in v.type.tensor_type.shape.dim)) for v in model.graph.input}


def check_against_peer(model: onnx.ModelProto, fed: Mapping[str, Any], backend: str = "cpu", ctx: Any = None) -> None:
    """The model after all passes agrees with onnxruntime."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    actual = pf.run(model, fed, backend=backend, ctx=ctx)
    for name, want in zip(names, session.run(names, dict(fed)), strict=True):
        assert actual[name].shape == want.shape, name
        np.testing.assert_allclose(actual[name], want, 1e-4, 1e-5 * np.abs(want).max(initial=1), err_msg=name)
