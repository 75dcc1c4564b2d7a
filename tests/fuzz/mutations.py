"""How a model is changed: one thing at a time, in the structure that a file has, so that most of it still makes sense.

A mutation changes what it is given and says what it did, or gives "" where it finds nothing to change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Random = np.random.Generator
A = onnx.AttributeProto

INTS = (0, 1, -1, 2, -2, 3, 5, 16, 255, 1000, 2**31 - 1, 2**31, -(2**31), 2**32 + 1, 2**40, 2**62, 2**63 - 1, -(2**63))
SMALL = (0, 1, -1, 2, -2, 3, -3, 4, 7)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, float("nan"), float("inf"), float("-inf"))
TEXTS = (
    "",
    "SAME_UPPER",
    "SAME_LOWER",
    "VALID",
    "NOTSET",
    "linear",
    "cubic",
    "nearest",
    "XYZ",
    "reflect",
    "edge",
    "max",
)
NAMES = ("constant", "constant:1", "", "x:last", "a/b", "y", "x")


@dataclass
class Subject:
    """What a mutation changes: the model, its inputs, and the files beside it."""

    model: onnx.ModelProto
    inputs: dict[str, Any]
    pool: Sequence[str]  # operators that there are
    files: dict[str, bytes] = field(default_factory=dict)
    data: bytes | None = None  # instead of the model, where bytes were changed

    def graphs(self) -> list[Any]:
        """All that contain nodes: the model's graph, inner graphs, and functions."""
        found: list[Any] = [self.model.graph, *self.model.functions]
        for graph in found:
            for node in graph.node:
                found += [a.g for a in node.attribute if a.type == A.GRAPH]
        return found

    def nodes(self) -> list[onnx.NodeProto]:
        """All nodes."""
        return [node for graph in self.graphs() for node in graph.node]

    def tensors(self) -> list[onnx.TensorProto]:
        """The tensors in graphs and nodes."""
        constants = [a.t for n in self.nodes() for a in n.attribute if a.type == A.TENSOR]
        return [t for g in self.graphs() if hasattr(g, "initializer") for t in g.initializer] + constants

    def values(self, graph: Any) -> list[str]:
        """The names that a graph reads and makes."""
        listed = [name for node in graph.node for name in (*node.input, *node.output)]
        return sorted({*listed, *self.inputs})


Mutation = Callable[[Subject, Random], str]
MUTATIONS: list[tuple[float, Mutation]] = []


def mutation(weight: float) -> Callable[[Mutation], Mutation]:
    """Declare one; a greater weight is drawn more often."""

    def declare(function: Mutation) -> Mutation:
        MUTATIONS.append((weight, function))
        return function

    return declare


def pick(rng: Random, items: Sequence[Any]) -> Any:
    """Choose one of them; None if there are none."""
    return items[int(rng.integers(len(items)))] if len(items) else None


def whole(rng: Random, near: int = 0) -> int:
    """A number near another, or one at a limit."""
    if rng.random() < 0.6:
        return int(np.clip(near + pick(rng, SMALL), -(2**63), 2**63 - 1))
    return int(pick(rng, INTS))


def mutate(subject: Subject, rng: Random) -> list[str]:
    """Change a model in one to three ways; says which."""
    weights = np.array([weight for weight, _ in MUTATIONS])
    done: list[str] = []
    wanted = 1 + int(rng.random() < 0.35) + int(rng.random() < 0.1)
    for _ in range(12):
        index = int(rng.choice(len(MUTATIONS), p=weights / weights.sum()))
        said = MUTATIONS[index][1](subject, rng)
        if said:
            done.append(f"{MUTATIONS[index][1].__name__}: {said}")
        if len(done) >= wanted or subject.data is not None:
            break
    return done


# --- attributes ---


def _attributes(subject: Subject, *kinds: int) -> list[tuple[onnx.NodeProto, onnx.AttributeProto]]:
    return [(n, a) for n in subject.nodes() for a in n.attribute if not kinds or a.type in kinds]


@mutation(6)
def number_attribute(subject: Subject, rng: Random) -> str:
    found = pick(rng, _attributes(subject, A.INT, A.INTS, A.FLOAT, A.FLOATS))
    if found is None:
        return ""
    node, attribute = found
    if attribute.type == A.INT:
        attribute.i = whole(rng, attribute.i)
    elif attribute.type == A.FLOAT:
        attribute.f = pick(rng, FLOATS)
    else:
        listed = attribute.ints if attribute.type == A.INTS else attribute.floats
        if len(listed):
            at = int(rng.integers(len(listed)))
            listed[at] = whole(rng, listed[at]) if attribute.type == A.INTS else pick(rng, FLOATS)
    return f"{node.op_type}.{attribute.name}"


@mutation(3)
def count_of_attribute(subject: Subject, rng: Random) -> str:
    found = pick(rng, _attributes(subject, A.INTS, A.FLOATS, A.STRINGS))
    if found is None:
        return ""
    node, attribute = found
    listed = {A.INTS: attribute.ints, A.FLOATS: attribute.floats, A.STRINGS: attribute.strings}[attribute.type]
    values = list(listed)
    how = int(rng.integers(4))
    values = ([], values[:-1], values + values[-1:], values + values)[how]
    del listed[:]
    listed.extend(values)
    return f"{node.op_type}.{attribute.name} has {len(values)}"


@mutation(2)
def text_attribute(subject: Subject, rng: Random) -> str:
    found = pick(rng, _attributes(subject, A.STRING))
    if found is None:
        return ""
    node, attribute = found
    others = [a.s for _, a in _attributes(subject, A.STRING)] + [text.encode() for text in TEXTS] + [b"\xff\xfe"]
    attribute.s = pick(rng, others)
    return f"{node.op_type}.{attribute.name}={attribute.s!r}"


@mutation(1)
def type_of_attribute(subject: Subject, rng: Random) -> str:
    found = pick(rng, _attributes(subject))
    if found is None:
        return ""
    node, attribute = found
    name = attribute.name
    value = pick(rng, (1, 0.5, "text", [1, 2], [0.5], ["a"], helper.make_tensor("t", TensorProto.FLOAT, [1], [2.0])))
    attribute.CopyFrom(helper.make_attribute(name, value))
    return f"{node.op_type}.{name} is {value!r:.20}"


@mutation(1)
def attribute_gone(subject: Subject, rng: Random) -> str:
    node = pick(rng, [n for n in subject.nodes() if n.attribute])
    if node is None:
        return ""
    at = int(rng.integers(len(node.attribute)))
    name = node.attribute[at].name
    del node.attribute[at]
    return f"{node.op_type}.{name}"


@mutation(4)
def attribute_more(subject: Subject, rng: Random) -> str:
    """One that the operator has, or another's."""
    node = pick(rng, subject.nodes())
    if node is None:
        return ""
    try:
        schema = onnx.defs.get_schema(node.op_type, node.domain)
    except onnx.defs.SchemaError:
        return ""
    present = {a.name for a in node.attribute}
    free = [a for name, a in sorted(schema.attributes.items()) if name not in present]
    wanted = pick(rng, free)
    if wanted is None:
        return ""
    kinds = onnx.defs.OpSchema.AttrType
    count = int(rng.integers(1, 5))
    value = {
        kinds.INT: lambda: whole(rng),
        kinds.FLOAT: lambda: pick(rng, FLOATS),
        kinds.STRING: lambda: pick(rng, TEXTS),
        kinds.INTS: lambda: [whole(rng, 1) for _ in range(count)],
        kinds.FLOATS: lambda: [pick(rng, FLOATS) for _ in range(count)],
    }.get(wanted.type, lambda: None)()
    if value is None:
        return ""
    node.attribute.append(helper.make_attribute(wanted.name, value))
    return f"{node.op_type}.{wanted.name}={value!r:.40}"


# --- inputs ---


def _declared(subject: Subject, name: str) -> onnx.ValueInfoProto | None:
    return next((info for info in subject.model.graph.input if info.name == name), None)


def _arrays(subject: Subject, kinds: str = "biufcOUSV") -> list[str]:
    found = {name: np.asarray(x) for name, x in subject.inputs.items() if isinstance(x, np.ndarray)}
    return [name for name, array in found.items() if array.dtype.kind in kinds]


@mutation(5)
def shape_of_input(subject: Subject, rng: Random) -> str:
    """The value has another shape, and says so in most cases."""
    name = pick(rng, _arrays(subject))
    if name is None:
        return ""
    array = np.asarray(subject.inputs[name])
    shape = list(array.shape)
    how = int(rng.integers(5))
    if how == 0 and shape:
        shape[int(rng.integers(len(shape)))] = int(pick(rng, (0, 1, 2, 3, 5, 17)))
    elif how == 1:
        shape.insert(int(rng.integers(len(shape) + 1)), int(pick(rng, (0, 1, 2))))
    elif how == 2 and shape:
        del shape[int(rng.integers(len(shape)))]
    elif how == 3:
        shape = shape[::-1]
    elif shape:
        at = int(rng.integers(len(shape)))
        shape[at] = max(shape[at] + int(pick(rng, (-1, 1, 2))), 0)
    if np.prod(shape, dtype=float) > 1 << 16:
        return ""
    subject.inputs[name] = np.resize(array, shape) if array.size or not np.prod(shape) else np.zeros(shape, array.dtype)
    info = _declared(subject, name)
    if info is not None and info.type.HasField("tensor_type") and rng.random() < 0.8:
        kind = info.type.tensor_type.elem_type
        dims = [None if rng.random() < 0.2 else f"d{i}" if rng.random() < 0.3 else d for i, d in enumerate(shape)]
        info.CopyFrom(helper.make_tensor_value_info(name, kind, dims))
    return f"{name} {list(array.shape)} is {shape}"


@mutation(4)
def open_dims(subject: Subject, rng: Random) -> str:
    """Leave out or name dims; the values stay."""
    info = pick(rng, [i for i in subject.model.graph.input if i.type.HasField("tensor_type")])
    if info is None:
        return ""
    shape = info.type.tensor_type.shape
    how = int(rng.integers(4))
    if how == 0:
        info.type.tensor_type.ClearField("shape")
    for index, dim in enumerate(shape.dim if how else ()):
        if rng.random() < 0.7:
            dim.dim_param = ("", f"{info.name}{index}", "n", "?")[int(rng.integers(4))]
    return info.name


@mutation(2)
def declared_dims(subject: Subject, rng: Random) -> str:
    """A dim that is declared otherwise than the value has it, of an input or an output."""
    infos = [*subject.model.graph.input, *subject.model.graph.output, *subject.model.graph.value_info]
    info = pick(rng, [i for i in infos if len(i.type.tensor_type.shape.dim)])
    if info is None:
        return ""
    dim = pick(rng, list(info.type.tensor_type.shape.dim))
    dim.dim_value = whole(rng, dim.dim_value)
    return f"{info.name} {dim.dim_value}"


@mutation(4)
def values_of_input(subject: Subject, rng: Random) -> str:
    name = pick(rng, _arrays(subject, "iufb"))
    if name is None:
        return ""
    array = np.array(subject.inputs[name])
    if not array.size:
        return ""
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(array.size))
        array.reshape(-1)[at] = entry(rng, array.dtype, array.reshape(-1)[at])
    subject.inputs[name] = array
    return f"{name} {array.dtype}"


def entry(rng: Random, dtype: Any, near: Any) -> Any:
    if dtype.kind == "b":
        return rng.random() < 0.5
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return dtype.type(pick(rng, FLOATS))
    value = whole(rng, int(near))
    limits = np.iinfo(dtype)
    return dtype.type(np.clip(value, limits.min, limits.max))


@mutation(2)
def dtype_of_input(subject: Subject, rng: Random) -> str:
    name = pick(rng, _arrays(subject, "iufb"))
    if name is None:
        return ""
    dtype = pick(rng, ("float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool", "uint16", "int16"))
    with np.errstate(all="ignore"):
        subject.inputs[name] = np.asarray(subject.inputs[name]).astype(dtype)
    info = _declared(subject, name)
    if info is not None and rng.random() < 0.9:
        info.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return f"{name} {dtype}"


@mutation(6)
def input_as_constant(subject: Subject, rng: Random) -> str:
    """An input becomes an initializer, and layers that have nothing else are folded."""
    name = pick(rng, _arrays(subject, "iufb"))
    info = None if name is None else _declared(subject, name)
    if info is None:
        return ""
    subject.model.graph.initializer.append(numpy_helper.from_array(np.asarray(subject.inputs.pop(name)), name))
    if rng.random() < 0.8:
        subject.model.graph.input.remove(info)
    return str(name)
