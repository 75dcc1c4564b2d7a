"""Case × backend: one node as an ONNX model, run and compared with ONNX's reference evaluator.

A case has its tolerance and its reference. `check` asserts values, dtypes and shapes, that `infer` gave the
shape and dtype of the result, and that it claims nothing wrong when it knows less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import perframe as pf
from perframe.execution.parts import downloaded
from perframe.layers.base import registry
from perframe.plan.refit import FittedPlan
from support import latest_plan, planned_parts, trace

Array = NDArray[Any]
Reference = str | Callable[..., Any]

OPSET = 24
# the dtypes that GL backends hold; others run on the CPU
GL_DTYPES = {"float32", "int32", "int64", "bool", "int8", "uint8", "int16", "uint16"}


@dataclass(frozen=True)
class Case:
    """One node, its inputs (None: absent) and the reference of its result.

    `constants` are the inputs that are initializers: those whose values decide shapes, unless said. `reference` is
    "onnx", "onnxruntime", or a function of the inputs that returns the outputs. `gl` says whether a GL backend runs it
    without the CPU.
    """

    name: str
    op: str
    inputs: Sequence[Array | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    constants: Iterable[int] | None = None
    opset: int = OPSET
    reference: Reference = "onnx"
    rtol: float = 1e-5
    atol: float = 1e-6
    gl: bool = True

    def __str__(self) -> str:
        return f"{self.op}-{self.name}" if self.name else self.op

    @property
    def on_gl(self) -> bool:
        """Whether a GL backend must run it, and not hand it to the CPU."""
        return self.gl and all(x is None or x.dtype.name in GL_DTYPES for x in self.inputs)

    def proto(self) -> onnx.ModelProto:
        """The model, with outputs of the types that ONNX infers."""
        names = ["" if value is None else f"x{index}" for index, value in enumerate(self.inputs)]
        constants = self._constants()
        infos, initializers = [], []
        for index, (name, value) in enumerate(zip(names, self.inputs, strict=True)):
            if value is None:
                continue
            if index in constants:
                initializers.append(numpy_helper.from_array(value, name))
            else:
                kind = helper.np_dtype_to_tensor_dtype(value.dtype)
                infos.append(helper.make_tensor_value_info(name, kind, value.shape))
        outputs = [f"y{index}" for index in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, name="node", **self.attributes)
        ends = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph([node], str(self), infos, ends, initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model)

    def _constants(self) -> set[int]:
        if self.constants is not None:
            return set(self.constants)
        entry = registry().get(self.op)
        return {index for index in range(len(self.inputs)) if entry and entry.is_host(index)}

    @property
    def fed(self) -> dict[str, Array]:
        """The inputs of the model by name."""
        constants = self._constants()
        return {f"x{i}": v for i, v in enumerate(self.inputs) if v is not None and i not in constants}

    def expected(self, proto: onnx.ModelProto) -> list[Array]:
        """The outputs as they should be."""
        if callable(self.reference):
            made = self.reference(*self.inputs)
            return [np.asarray(value) for value in (made if isinstance(made, (list, tuple)) else [made])]
        with np.errstate(all="ignore"):
            if self.reference == "onnx":
                return [np.asarray(value) for value in ReferenceEvaluator(proto).run(None, self.fed)]
        return expected_by_onnxruntime(proto, self.fed)


def expected_by_onnxruntime(proto: onnx.ModelProto | bytes, fed: dict[str, Array]) -> list[Array]:
    """The outputs by onnxruntime on the CPU, as the file says, without its optimisations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    data = proto if isinstance(proto, bytes) else proto.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, fed)]


def check(case: Case, backend: str, ctx: Any = None) -> None:
    """Run a case on a backend and compare."""
    proto = case.proto()
    expected = case.expected(proto)
    model = pf.load(proto, optimize=False)
    strict = backend != "cpu" and case.on_gl
    actual = pf.run(model, case.fed, backend=backend, strict=strict, ctx=ctx)
    assert list(actual) == [f"y{index}" for index in range(case.outputs)]
    loose = 1 if backend == "cpu" else 10  # shaders may contract and reorder
    for (name, value), want in zip(actual.items(), expected, strict=True):
        assert value.dtype == want.dtype, f"{name} is {value.dtype}, {want.dtype} expected"
        assert value.shape == want.shape, f"{name} is {value.shape}, {want.shape} expected"
        if want.dtype.kind in "fc":
            np.testing.assert_allclose(value, want, case.rtol * loose, case.atol * loose, err_msg=name)
        else:
            np.testing.assert_array_equal(value, want, err_msg=name)
    check_inference(model, case, actual, loose)
    if backend == "cpu":
        check_open_dims(model, case, expected)


def check_open_dims(model: pf.Model, case: Case, expected: list[Array]) -> None:
    """Run with dims that are unknown at load, first by a plan and then by a template in place of that plan.

    Every plan must be traceable, and its template must serve the sizes from which it was traced.
    """
    inputs = [
        replace(value, shape=None if value.shape is None else pf.DynamicTensorShape([None] * len(value.shape)))
        for value in model.inputs
    ]
    opened = pf.Model(inputs, model.outputs, model.layers, model.constants, model.name)
    with pf.Worker(opened) as worker:
        check_values(worker.schedule(case.fed), case, expected)
        for part in trace(worker):
            part._evicted += part._plans.values()
            part._plans.clear()
        check_values(worker.schedule(case.fed), case, expected)
        for part in planned_parts(worker):
            plan = latest_plan(part)
            follows = part._templates is not None and part._templates.has_sizes(plan.input_shapes)
            assert isinstance(plan, FittedPlan) == (follows and plan.program is not None)


def check_values(worker: pf.Worker, case: Case, expected: list[Array]) -> None:
    """The outputs of a run with open dims."""
    for name, want in zip(worker.model.output_names, expected, strict=True):
        value = downloaded(worker.peek_output(name))
        assert value.shape == want.shape, f"with open dims {name} is {value.shape}, {want.shape} expected"
        if want.dtype.kind in "fc":
            np.testing.assert_allclose(value, want, case.rtol, case.atol, err_msg=f"{name}, with open dims")
        else:
            np.testing.assert_array_equal(value, want, err_msg=f"{name}, with open dims")


def check_inference(model: pf.Model, case: Case, actual: dict[str, Array], loose: int) -> None:
    """All claims of `infer` are true of the outputs, even if dims or ranks of the inputs are unknown.

    Shapes, dtypes and whole numbers are exact; floats are as near as the case asks of the layer.
    """
    given = {value.name: value for value in model.inputs}
    known = {name: pf.PartialTensor.of(value) for name, value in case.fed.items()}
    dims = {
        name: pf.PartialTensor(value.dtype, pf.DynamicTensorShape([None] * len(value.shape)))
        for name, value in given.items()
    }
    ranks = {name: pf.PartialTensor(value.dtype, None) for name, value in given.items()}
    exact = model.infer(known)
    for name, value in actual.items():
        assert exact[name].shape == value.shape, f"infer says {name} is {exact[name]}, and it is {value.shape}"
        assert exact[name].dtype == value.dtype.name, f"infer says {name} is {exact[name]}, and it is {value.dtype}"
        claimed = exact[name].value
        if claimed is not None and claimed.dtype.kind == "f":
            np.testing.assert_allclose(claimed, value, case.rtol * loose, case.atol * loose)
        elif claimed is not None:
            np.testing.assert_array_equal(claimed, value)
    for inputs in (dims, ranks):
        for name, value in actual.items():
            spec = model.infer(inputs)[name]
            assert spec.dtype == value.dtype.name, f"infer says {name} is {spec.dtype} of inputs known less"
            if spec.shape is not None:
                assert spec.shape.accepts(value.shape), f"infer says {name} is {spec}, and it is {value.shape}"


class Draw:
    """Seeded random inputs: the same for every run of a file."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, *shape: int, low: float = -1.0, high: float = 1.0, dtype: Any = np.float32) -> Array:
        """Uniform in low..high, both ends possible; whole numbers for whole dtypes."""
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self._random.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            low = max(low, 0) if kind == "u" else low
            return self._random.integers(int(np.ceil(low)), int(high) + 1, shape).astype(dtype)
        return np.asarray(self._random.uniform(low, high, shape)).astype(dtype)


def ints(*values: int, dtype: Any = np.int64) -> Array:
    """A vector of whole numbers, as shapes, axes and pads are."""
    return np.array(values, dtype)
