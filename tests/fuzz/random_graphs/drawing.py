"""Draws a random valid graph block by block. onnxruntime computes each block; a block that it refuses is dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fuzz.random_graphs.reference import run_plainly

FLOAT = np.float32
LARGEST = 1e6  # of a value in a graph whose values stay moderate
ELEMENTS = 20000  # of a value
SPECIAL = (np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-30, -1e-30, 0.0, -0.0, 1e38, 3e8, 1e-40)


class Refused(Exception):
    """A block that does not fit what is there, or that onnxruntime refuses."""


@dataclass
class Drawing:
    """A graph under construction. `values` holds each value's array for the first feed, by name."""

    rng: np.random.Generator
    opset: int = 18
    special: bool = False  # whether values may be infinite, huge, tiny or none
    few: bool = False  # whether few formulas occur: kernels are compiled for each
    values: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    number: int = 0

    # --- chance ---

    def chance(self, share: float) -> bool:
        """Whether something of this probability happens."""
        return bool(self.rng.random() < share)

    def one(self, *items: Any) -> Any:
        """One of the items."""
        return items[int(self.rng.integers(len(items)))]

    def int(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def name(self, kind: str) -> str:
        """A new name."""
        self.number += 1
        return f"{kind}{self.number}"

    # --- values ---

    def normal(self, *shape: int, scale: float = 1.0) -> Any:
        """Random numbers; some are special where they may be."""
        made = (self.rng.normal(size=shape) * scale).astype(FLOAT)
        if self.special and made.size and self.chance(0.5):
            flat = made.reshape(-1)
            for _ in range(self.int(1, 3)):
                flat[self.rng.integers(made.size)] = self.one(*SPECIAL)
        return made

    def input(self, array: Any, name: str = "") -> str:
        """An input of the graph."""
        name = name or self.name("x")
        self.inputs[name] = self.values[name] = np.asarray(array)
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant. It may be one that is there already, if it has the same value."""
        array = np.asarray(value, dtype)
        same = [
            name
            for name, other in self.constants.items()
            if other.dtype == array.dtype and other.shape == array.shape and other.tobytes() == array.tobytes()
        ]
        if same and self.chance(0.7):
            return same[0]
        name = self.name("c")
        self.constants[name] = self.values[name] = array
        return name

    def weights(self, *shape: int, scale: float = 0.5) -> str:
        """Random weights as a constant; now and then as an input."""
        array = self.normal(*shape, scale=scale)
        return self.input(array) if self.chance(0.04) else self.constant(array)

    def ints(self, *values: int) -> str:
        """A row of whole numbers as a constant."""
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: float, dtype: Any = FLOAT) -> str:
        """A number as a constant, mostly without dims."""
        shape = self.one((), (), (), (1,), (1,), (1, 1), (1, 1, 1, 1)) if self.chance(0.6) else ()
        return self.constant(np.full(shape, value, dtype))

    def plain(self, value: float, dtype: Any = FLOAT) -> str:
        """A number as a constant without dims."""
        return self.constant(np.array(value, dtype))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a value in the first feed."""
        return tuple(self.values[name].shape)

    def rank(self, name: str) -> int:
        """The number of its dims."""
        return len(self.shape(name))

    def pick(self, wanted: Callable[[Any], bool] = lambda _array: True) -> str:
        """A value that fits, mostly one of the last. Raises Refused where there is none."""
        found = [name for name, array in self.values.items() if name not in self.constants and wanted(array)]
        if not found:
            raise Refused
        if self.chance(0.75):
            found = found[-2:]
        return str(self.one(*found))

    def floats(self, *ranks: int) -> str:
        """A float32 value with one of these numbers of dims; any number without them."""
        return self.pick(lambda x: x.dtype == FLOAT and (not ranks or x.ndim in ranks) and x.size > 0)

    def fresh(self, *ranks: int) -> str:
        """A float32 value as `floats` gives it, or a new input."""
        if self.chance(0.6):
            try:
                return self.floats(*ranks)
            except Refused:
                pass
        return self.input(self.normal(*self.dims(self.one(*ranks))))

    def dims(self, rank: int) -> tuple[int, ...]:
        """A small shape. Its second dim counts channels where there are four dims."""
        sizes = [self.one(1, 2, 3, 4, 5, 7) for _ in range(rank)]
        if rank >= 3:
            sizes[0] = self.one(1, 1, 2)
            sizes[1] = self.one(1, 2, 3, 4, 4, 6, 8, 8, 16)
            sizes[2:] = [self.one(1, 2, 4, 5, 6, 8, 9) for _ in sizes[2:]]
        return tuple(sizes)

    # --- nodes ---

    def __call__(self, op: str, *inputs: str, count: int = 1, domain: str = "", **attributes: Any) -> Any:
        """A node of the present block; returns its output's name, or its outputs'."""
        outputs = [self.name("v") for _ in range(count)]
        kept = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(op, inputs, outputs, self.name("n"), domain=domain, **kept))
        self.evaluate(self.nodes[-1:])
        return outputs[0] if count == 1 else outputs

    def evaluate(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Compute nodes, and keep the values that they make. Raises Refused for what the graph may not have."""
        read = dict.fromkeys(name for name in names_read(nodes) if name in self.values)
        made = [name for node in nodes for name in node.output if name]
        given = {name: self.values[name] for name in read}
        fixed = {name: value for name, value in given.items() if name in self.constants}
        feeds = {name: value for name, value in given.items() if name not in fixed}
        model = model_of(list(nodes), feeds, made, fixed, self.opset)
        try:
            results = run_plainly(model, feeds)
        except Exception as error:
            raise Refused(str(error)[:300]) from error
        for name, value in zip(made, results, strict=True):
            if isinstance(value, np.ndarray):
                self.check(value)
            self.values[name] = value
        self.read.update(read)

    def check(self, value: Any) -> None:
        """Raise Refused for a value that the graph may not have."""
        if value.size > ELEMENTS:
            raise Refused("large")
        if value.dtype.kind == "f" and not self.special:
            with np.errstate(all="ignore"):
                if not np.isfinite(value).all() or (value.size and np.abs(value).max() > LARGEST):
                    raise Refused("not moderate")

    def block(self, make: Callable[[Drawing], Any]) -> bool:
        """Add a block, or nothing of it. Returns whether it was added."""
        before = dict(self.values), dict(self.inputs), dict(self.constants), len(self.nodes), set(self.read)
        try:
            make(self)
        except Refused:
            self.values, self.inputs, self.constants = before[0], before[1], before[2]
            del self.nodes[before[3] :]
            self.read = before[4]
            return False
        self.blocks.append(make.__name__)
        return True


def names_read(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """The names that nodes read, those of their bodies included."""
    found: list[str] = []
    for node in nodes:
        found += [name for name in node.input if name]
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found += names_read(attribute.g.node)
                found += [value.name for value in attribute.g.output]
    return found


def info(name: str, array: Any, shape: Any = ()) -> onnx.ValueInfoProto:
    """A declaration of a value; `shape` is its own unless it is given."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, list(array.shape) if shape == () else shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Any],
    outputs: Sequence[str],
    constants: dict[str, Any],
    opset: int,
    dims: dict[str, Any] | None = None,
    defaults: Sequence[str] = (),
    kinds: dict[str, Any] | None = None,
) -> onnx.ModelProto:
    """A model. `dims` declares inputs with other dims than their arrays', `defaults` are constants that are inputs
    too, and `kinds` are arrays like the outputs.
    """
    given = [info(name, array, (dims or {}).get(name, ())) for name, array in inputs.items()]
    given += [info(name, constants[name]) for name in defaults]
    made = []
    for name in outputs:
        if kinds and name in kinds:
            made.append(info(name, kinds[name], [None] * kinds[name].ndim))
        else:
            made.append(onnx.ValueInfoProto(name=name))
    stored = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(list(nodes), "random", given, made, stored)
    imports = [helper.make_opsetid("", opset)]
    if any(node.domain == "com.microsoft" for node in nodes):
        imports.append(helper.make_opsetid("com.microsoft", 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=8 if opset < 19 else 10)
