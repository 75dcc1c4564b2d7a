"""A test case: one node as an ONNX model, its inputs, and the outputs that it should have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from perframe.backends import evaluator
from perframe.errors import MissingExtraError
from perframe.ir import Layer
from perframe.ir.declaration import ONNX_DOMAINS, find_declaration, full_name

Array = NDArray[Any]
Reference = str | Callable[..., Any]

OPSET = 24  # of the nodes
# The GL backends hold values of these dtypes; other dtypes are for the CPU.
GL_DTYPES = {"float32", "int32", "int64", "bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16"}


@dataclass(frozen=True)
class Case:
    """One node, its inputs (None where one is absent), and the reference that its outputs are compared with.

    - `constants` are the indices of the inputs that are initializers. By default they are those whose values decide
      shapes.
    - `reference` is "onnx", "onnxruntime", "declaration" (the layer's own definition with NumPy), or a function of the
      inputs that returns the outputs. By default it is "onnx" for ONNX's operators, and "declaration" for others.
    - `rtol` and `atol` are those of `numpy.testing.assert_allclose` on the CPU. On GL ten times as much is allowed.
    - `gl` is false if the GL backends leave the layer to the CPU.
    - `domain` is the operator's; `opset` is that of ONNX's domain.
    """

    name: str
    op: str
    inputs: Sequence[Array | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    constants: Iterable[int] | None = None
    opset: int = OPSET
    reference: Reference = ""
    rtol: float = 1e-5
    atol: float = 1e-6
    gl: bool = True
    domain: str = ""

    def __str__(self) -> str:
        return f"{self.op}-{self.name}" if self.name else self.op

    @property
    def on_gl(self) -> bool:
        """Whether a GL backend must run the layer, and may not hand it to the CPU."""
        return self.gl and all(x is None or x.dtype.name in GL_DTYPES for x in self.inputs)

    def proto(self) -> onnx.ModelProto:
        """Return the model, with outputs of the types that ONNX infers."""
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
        node = helper.make_node(self.op, names, self.output_names, name="node", domain=self.domain, **self.attributes)
        ends = [onnx.ValueInfoProto(name=name) for name in self.output_names]
        graph = helper.make_graph([node], str(self), infos, ends, initializers)
        imports = [helper.make_opsetid("", self.opset)]
        if self.domain not in ONNX_DOMAINS:
            imports.append(helper.make_opsetid(self.domain, 1))
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        return onnx.shape_inference.infer_shapes(model)

    def _constants(self) -> set[int]:
        if self.constants is not None:
            return set(self.constants)
        entry = find_declaration(full_name(self.op, self.domain))
        return {index for index in range(len(self.inputs)) if entry and entry.is_host(index)}

    @property
    def output_names(self) -> list[str]:
        """The names of the node's outputs."""
        return [f"y{index}" for index in range(self.outputs)]

    @property
    def fed(self) -> dict[str, Array]:
        """The inputs of the model by name."""
        constants = self._constants()
        return {f"x{i}": v for i, v in enumerate(self.inputs) if v is not None and i not in constants}

    def expected(self, proto: onnx.ModelProto) -> list[Array]:
        """Return the outputs of the reference."""
        if callable(self.reference):
            made = self.reference(*self.inputs)
            return [np.asarray(value) for value in (made if isinstance(made, (list, tuple)) else [made])]
        is_onnx = self.domain in ONNX_DOMAINS and onnx.defs.has(self.op)
        reference = self.reference or ("onnx" if is_onnx else "declaration")
        if reference == "declaration":
            names = ["" if value is None else f"x{index}" for index, value in enumerate(self.inputs)]
            layer = Layer(full_name(self.op, self.domain), "node", names, self.output_names, dict(self.attributes))
            return [np.asarray(value) for value in evaluator()(layer, list(self.inputs))]
        with np.errstate(all="ignore"):
            if reference == "onnx":
                return [np.asarray(value) for value in ReferenceEvaluator(proto).run(None, self.fed)]
        return expected_by_onnxruntime(proto, self.fed)


def expected_by_onnxruntime(proto: onnx.ModelProto | bytes, fed: dict[str, Array]) -> list[Array]:
    """Return a model's outputs by onnxruntime on the CPU, without its optimizations. Raises MissingExtraError."""
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise MissingExtraError("onnxruntime", "bench", "a reference by onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    data = proto if isinstance(proto, bytes) else proto.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, fed)]


class Draw:
    """Random inputs from a seed, which every run of a file draws alike."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, *shape: int, low: float = -1.0, high: float = 1.0, dtype: Any = np.float32) -> Array:
        """Return uniform values from `low` to `high`, both ends included; integers for whole dtypes."""
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self._random.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            low = max(low, 0) if kind == "u" else low
            return self._random.integers(int(np.ceil(low)), int(high) + 1, shape).astype(dtype)
        return np.asarray(self._random.uniform(low, high, shape)).astype(dtype)


def ints(*values: int, dtype: Any = np.int64) -> Array:
    """Return a vector of integers, as shapes, axes and pads are."""
    return np.array(values, dtype)
