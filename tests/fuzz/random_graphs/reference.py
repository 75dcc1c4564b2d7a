"""onnxruntime without its optimisations, and how far rounding may move what a graph computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

Results = list[Any]
SAMPLES = 6  # noisy runs
LEVEL = 4e-6  # relative noise of each value that is rounded
HALF = 1e-3  # of a value of float16
SUMS = 1e-5  # noise of what is a sum, relative to the largest value
# operators that move, choose or compare, and so round nothing
EXACT = frozenset(
    [
        "Abs",
        "And",
        "ArgMax",
        "ArgMin",
        "BitShift",
        "BitwiseAnd",
        "BitwiseNot",
        "BitwiseOr",
        "BitwiseXor",
        "Cast",
        "CastLike",
        "Ceil",
        "Clip",
        "Compress",
        "Concat",
        "Constant",
        "ConstantOfShape",
        "DepthToSpace",
        "Dropout",
        "Equal",
        "Expand",
        "EyeLike",
        "Flatten",
        "Floor",
        "Gather",
        "GatherElements",
        "GatherND",
        "Greater",
        "GreaterOrEqual",
        "Identity",
        "If",
        "IsInf",
        "IsNaN",
        "Less",
        "LessOrEqual",
        "Loop",
        "Max",
        "MaxPool",
        "GlobalMaxPool",
        "MaxUnpool",
        "Min",
        "Neg",
        "NonZero",
        "Not",
        "OneHot",
        "Or",
        "Pad",
        "Range",
        "ReduceMax",
        "ReduceMin",
        "Relu",
        "Reshape",
        "ReverseSequence",
        "Round",
        "ScatterElements",
        "ScatterND",
        "Shape",
        "Sign",
        "Size",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "TopK",
        "Transpose",
        "Trilu",
        "Unsqueeze",
        "Where",
        "Xor",
        "QuantizeLinear",
        "Mod",
        "Scan",
        "SequenceConstruct",
        "SequenceAt",
        "SplitToSequence",
    ]
)
ELEMENTWISE = frozenset(
    [
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Pow",
        "Exp",
        "Log",
        "Sqrt",
        "Reciprocal",
        "Sigmoid",
        "Tanh",
        "Erf",
        "Sin",
        "Cos",
        "Tan",
        "Asin",
        "Acos",
        "Atan",
        "Sinh",
        "Cosh",
        "Asinh",
        "Acosh",
        "Atanh",
        "Softplus",
        "Softsign",
        "HardSigmoid",
        "HardSwish",
        "Elu",
        "Selu",
        "Celu",
        "LeakyRelu",
        "PRelu",
        "Gelu",
        "Mish",
        "ThresholdedRelu",
        "Swish",
        "DequantizeLinear",
        "Sum",
        "Mean",
        "MultiplyAdd",
        "QuickGelu",
        "FastGelu",
        "BiasGelu",
    ]
)

# their formulas add up to 0 from numbers near 1 and -1
CANCELLING = frozenset({"Elu", "Selu", "Celu", "Gelu", "FastGelu", "BiasGelu"})
ABSOLUTE = frozenset({"Log", "Sin", "Cos", "Tan", "Softplus", "Mish", "LogSoftmax"})  # so GLSL states errors of a log


def session(model: onnx.ModelProto) -> Any:
    """A session that runs the nodes as they are, on one thread."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.disable_prepacking", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run_plainly(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Results:
    """The outputs of a model."""
    return list(session(_spelled(model)).run(None, dict(feeds)))


def _spelled(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its sigmoids spelled out: those of onnxruntime are 0 below -18, and 2e-5 off before."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _spell(made.graph)
    return made


def _spell(graph: onnx.GraphProto) -> None:
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type == attribute.GRAPH:
                _spell(attribute.g)
        if node.op_type not in ("Sigmoid", "QuickGelu"):
            graph.node.append(node)
            continue
        x, y = node.input[0], node.output[0]
        scale = -onnx.helper.get_node_attr_value(node, "alpha") if node.op_type == "QuickGelu" else -1.0
        one, factor, gate = f"{y}:one", f"{y}:factor of x", f"{y}:gate" if node.op_type == "QuickGelu" else y
        graph.node.extend(
            [
                helper.make_node("Mul", [x, factor], [f"{y}:neg"]),
                helper.make_node("Exp", [f"{y}:neg"], [f"{y}:exp"]),
                helper.make_node("Add", [f"{y}:exp", one], [f"{y}:sum"]),
                helper.make_node("Reciprocal", [f"{y}:sum"], [gate]),
                *([helper.make_node("Mul", [x, gate], [y])] if gate != y else []),
            ]
        )
        graph.initializer.append(numpy_helper.from_array(np.float32(1), one))
        graph.initializer.append(numpy_helper.from_array(np.float32(scale), factor))


def noisy(
    model: onnx.ModelProto,
    shapes: Mapping[str, tuple[tuple[int, ...], Any]],
    rng: np.random.Generator,
    on_gpu: bool = False,
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The model with noise on each float value that its nodes round, and the noise, which are further inputs. `shapes`
    are those of the values.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    nodes = list(made.graph.node)
    del made.graph.node[:]
    extra: dict[str, Any] = {}
    for node in nodes:
        added: list[onnx.NodeProto] = []
        halves = any(shapes[name][1] == np.float16 for name in node.output if name in shapes)
        if node.op_type not in EXACT or halves:  # onnxruntime leaves some roundings to halves out
            for index, name in enumerate(node.output):
                if name not in shapes:
                    continue
                shape, dtype = shapes[name]
                level = LEVEL if dtype == np.float32 else HALF
                hidden = f"{name}:exact"
                node.output[index] = hidden
                signs = rng.choice(np.float32([-1, 1]), shape) * rng.uniform(0.4, 1, shape)  # no two cancel
                extra[f"{name}:factor"] = np.asarray(1 + signs * level, dtype)
                if node.op_type in CANCELLING or (on_gpu and node.op_type in ABSOLUTE):
                    extra[f"{name}:share"] = np.asarray(signs * max(5e-7, level / 8), dtype)
                    added.append(helper.make_node("Add", [hidden, f"{name}:share"], [name]))
                    del extra[f"{name}:factor"]
                    continue
                if node.op_type in ELEMENTWISE or node.op_type in EXACT:
                    added.append(helper.make_node("Mul", [hidden, f"{name}:factor"], [name]))
                    continue
                extra[f"{name}:share"] = np.asarray(signs * max(SUMS, level), dtype)
                added += [
                    helper.make_node("Abs", [hidden], [f"{name}:size"]),
                    helper.make_node("Flatten", [f"{name}:size"], [f"{name}:flat"], axis=0),
                    helper.make_node("ReduceMax", [f"{name}:flat"], [f"{name}:most"], keepdims=0),
                    helper.make_node("Mul", [f"{name}:most", f"{name}:share"], [f"{name}:noise"]),
                    helper.make_node("Add", [hidden, f"{name}:noise"], [name]),
                ]
        made.graph.node.append(node)
        made.graph.node.extend(added)
    for name, array in extra.items():  # without dims: onnxruntime infers too much from those
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        made.graph.input.append(helper.make_tensor_value_info(name, kind, [None] * array.ndim))
    return made, extra


def float_shapes(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], Any]]:
    """The shapes and dtypes of all values of float32 and float16 that the graph's nodes make."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    named = [name for node in whole.graph.node for name in node.output if name]
    del whole.graph.output[:]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in named)
    results = run_plainly(whole, feeds)
    return {
        name: (tuple(value.shape), value.dtype)
        for name, value in zip(named, results, strict=True)
        if isinstance(value, np.ndarray) and value.dtype in (np.float32, np.float16) and value.size
    }


def spread(model: onnx.ModelProto, feeds: Mapping[str, Any], wanted: Sequence[Any], on_gpu: bool = False) -> list[Any]:
    """How far noise moves each element of the outputs; infinite where they become others, or have another shape."""
    shapes, rng = float_shapes(model, feeds), np.random.default_rng(0)
    found: list[Any] = [np.zeros(np.shape(value), np.float64) for value in wanted]
    for _ in range(SAMPLES):
        trial, noise = noisy(model, shapes, rng, on_gpu)
        results = run_plainly(trial, {**feeds, **noise})
        for index, (one, other) in enumerate(zip(results, wanted, strict=True)):
            if not isinstance(other, np.ndarray) or one.shape != other.shape:
                found[index] = np.full(np.shape(other), np.inf)
                continue
            with np.errstate(all="ignore"):
                if other.dtype.kind == "f":
                    apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
                    same = (one == other) | (np.isnan(one) & np.isnan(other))
                    apart = np.where(same, 0, np.where(np.isnan(apart), np.inf, apart))
                elif other.dtype.kind in "biu":
                    apart = np.where(one != other, np.inf, 0.0)
                else:
                    apart = np.zeros(other.shape)
            found[index] = np.maximum(found[index], apart)
    return found
