"""Inference with unknown dims tells the same of shape arithmetic as inference with concrete dims, or less.

Random graphs of small whole numbers are inferred twice: of an input of which some dims are named or unknown, and of a
concrete one. Every dim and number that the first claims, the second has to give, and so does the model when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perframe as pf
from perframe.backends import evaluator
from perframe.ir import Layer, Model, Value
from perframe.ir.sizes.names import with_sizes
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor
from perframe.ir.sizes.size import is_symbolic
from perframe.passes import optimize
from perframe.tensor import DataType
from small import load, node, specs

INT64 = DataType.INT64
NAMES = ("n", "m", None)
LARGEST = 10_000  # elements; repeats and fills may ask for astronomic numbers
Draw = Callable[[st.SearchStrategy[Any]], Any]


class Arithmetic:
    """A random graph, layer by layer; `scalars`, `lists` and `tensors` are the values to choose from."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.layers: list[Layer] = []
        self.constants: dict[str, Any] = {}
        rank = draw(st.integers(1, 4))
        self.sizes = draw(st.lists(st.integers(0, 5), min_size=rank, max_size=rank))
        names = draw(st.lists(st.sampled_from((*NAMES, "known")), min_size=rank, max_size=rank))
        bound: dict[str, int] = {}
        self.dims: list[Dim] = []
        for at, name in enumerate(names):
            if name in ("n", "m"):  # not 0, which a Reshape would take for "as it was"
                self.sizes[at] = bound.setdefault(name, max(1, self.sizes[at]))
            self.dims.append(self.sizes[at] if name == "known" else name)
        self.lists = [self.add("Shape", ["x"])]
        self.scalars = [self.constant(draw(st.integers(-2, 5)), np.int64)]
        self.tensors = ["x"]

    def constant(self, value: Any, dtype: Any) -> str:
        """A new constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(value, dtype)
        return name

    def add(self, op: str, inputs: list[str], **attributes: Any) -> str:
        """A new layer; returns its output."""
        name = f"v{len(self.layers)}"
        self.layers.append(Layer(op, name, inputs, [name], attributes))
        return name

    def any_of(self, names: list[str]) -> str:
        return str(self.draw(st.sampled_from(names)))

    def step(self) -> None:
        """One more operation, as exporters write them around shapes."""
        getattr(self, self.draw(st.sampled_from(STEPS)))()

    def scalar(self) -> None:
        index = self.constant(self.draw(st.integers(0, 1)), np.int64)
        self.scalars.append(self.add("Gather", [self.any_of(self.lists), index]))

    def arithmetic(self) -> None:
        op = self.draw(st.sampled_from(("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min")))
        pool = self.draw(st.sampled_from((self.scalars, self.lists)))
        pair = [self.any_of(pool), self.any_of([*pool, *self.scalars])]
        pool.append(self.add(op, pair if self.draw(st.booleans()) else pair[::-1]))

    def one(self) -> None:
        pool = self.draw(st.sampled_from((self.scalars, self.lists)))
        pool.append(self.add(self.draw(st.sampled_from(("Neg", "Abs", "Identity"))), [self.any_of(pool)]))

    def choice(self) -> None:
        pool = self.draw(st.sampled_from((self.scalars, self.lists)))
        op = self.draw(st.sampled_from(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")))
        condition = self.add(op, [self.any_of(pool), self.any_of(self.scalars)])
        if self.draw(st.booleans()):
            condition = self.add("Not", [condition])
        pool.append(self.add("Where", [condition, self.any_of(pool), self.any_of(pool)]))

    def floats(self) -> None:
        """As an interpolation by a factor does."""
        pool = self.draw(st.sampled_from((self.scalars, self.lists)))
        scale = self.constant(self.draw(st.sampled_from((0.5, 1.0, 1.5, 2.0))), np.float32)
        scaled = self.add("Mul", [self.add("Cast", [self.any_of(pool)], to=DataType.FLOAT32), scale])
        rounded = self.add(self.draw(st.sampled_from(("Floor", "Ceil", "Sqrt"))), [scaled])
        pool.append(self.add("Cast", [rounded], to=INT64))

    def narrow(self) -> None:
        pool = self.draw(st.sampled_from((self.scalars, self.lists)))
        narrow = self.add("Cast", [self.any_of(pool)], to=self.draw(st.sampled_from((DataType.INT32, DataType.BOOL))))
        pool.append(self.add("Cast", [narrow], to=INT64))

    def joined(self) -> None:
        zero = self.constant([0], np.int64)
        parts = [self.add("Unsqueeze", [self.any_of(self.scalars), zero]), self.any_of(self.lists)]
        self.lists.append(self.add("Concat", parts[:: self.draw(st.sampled_from((1, -1)))], axis=0))

    def cut(self) -> None:
        bounds = [self.constant([self.draw(st.integers(-3, 3))], np.int64) for _ in range(2)]
        step = self.constant([self.draw(st.sampled_from((1, 2, -1)))], np.int64)
        self.lists.append(self.add("Slice", [self.any_of(self.lists), *bounds, self.constant([0], np.int64), step]))

    def reduced(self) -> None:
        op = self.draw(st.sampled_from(("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin")))
        self.scalars.append(self.add(op, [self.any_of(self.lists)], keepdims=0))

    def pads(self) -> None:
        """As padding does: pairs from the last axis to the first become all begins and all ends."""
        pairs = self.add("Reshape", [self.any_of(self.lists), self.constant([-1, 1], np.int64)])
        turned = self.add("Transpose", [self.add("Tile", [pairs, self.constant([1, 2], np.int64)])], perm=(1, 0))
        self.lists.append(self.add("Reshape", [turned, self.constant([-1], np.int64)]))

    def expanded(self) -> None:
        wanted = self.constant([self.draw(st.integers(1, 3))], np.int64)
        self.lists.append(self.add("Expand", [self.any_of(self.scalars), wanted]))

    def ones(self) -> None:
        """As an expansion to -1 in places does."""
        like = self.add("Shape", [self.any_of(self.lists)])
        self.lists.append(self.add("ConstantOfShape", [like], value=np.array([1], np.int64)))

    def counted(self) -> None:
        bounds = [self.constant(0, np.int64), self.any_of(self.scalars), self.constant(1, np.int64)]
        self.tensors.append(self.add("Range", bounds))

    def sized(self) -> None:
        self.scalars.append(self.add("Size", [self.any_of(self.tensors)]))

    def again(self) -> None:
        self.lists.append(self.add("Shape", [self.any_of(self.tensors)]))

    def reshaped(self) -> None:
        self.tensors.append(self.add("Reshape", [self.any_of(self.tensors), self.any_of(self.lists)]))

    def reshaped_to_rest(self) -> None:
        zero, rest = self.constant([0], np.int64), self.constant([-1], np.int64)
        first = self.add("Unsqueeze", [self.any_of(self.scalars), zero])
        target = self.add("Concat", [first, rest], axis=0)
        self.tensors.append(self.add("Reshape", [self.any_of(self.tensors), target]))

    def filled(self) -> None:
        self.tensors.append(self.add("ConstantOfShape", [self.any_of(self.lists)]))

    def sliced(self) -> None:
        zero = self.constant([0], np.int64)
        bounds = [self.add("Unsqueeze", [self.any_of(self.scalars), zero]) for _ in range(2)]
        self.tensors.append(self.add("Slice", [self.any_of(self.tensors), *bounds, zero]))

    def padded(self) -> None:
        self.tensors.append(self.add("Pad", [self.any_of(self.tensors), self.any_of(self.lists)]))

    def tiled(self) -> None:
        self.tensors.append(self.add("Tile", [self.any_of(self.tensors), self.any_of(self.lists)]))

    def split(self) -> None:
        self.tensors.append(self.add("Split", [self.any_of(self.tensors)], num_outputs=1))


STEPS = (
    *("scalar", "arithmetic", "one", "choice", "floats", "narrow", "joined", "cut", "reduced", "pads", "expanded"),
    *("ones", "counted", "sized", "again", "reshaped", "reshaped_to_rest", "filled", "sliced", "padded", "tiled"),
    "split",
)


def concretely(graph: Arithmetic) -> dict[str, PartialTensor]:
    """Infer the graph with all dims known, and drop layers that cannot run then."""
    known = {name: PartialTensor.of(value) for name, value in graph.constants.items()}
    known["x"] = PartialTensor(DataType.FLOAT32, DynamicTensorShape(graph.sizes))
    kept = []
    for layer in graph.layers:
        if all(name in known for name in layer.input_names):
            try:
                (made,) = layer.infer([known[name] for name in layer.input_names])
            except pf.InferenceError:
                continue
            if made.shape is not None and made.shape.size is not None and made.shape.size <= LARGEST:
                known[layer.output.name] = made
                kept.append(layer)
    graph.layers = kept
    return known


def generalises(claim: PartialTensor, truth: PartialTensor, names: Mapping[str, int]) -> bool:
    """Whether a claim is true if the names have these sizes."""
    if claim.shape is None or truth.shape is None:
        return claim.shape is None
    if not claim.shape.with_dims(names).accepts(truth.shape):
        return False
    if claim.values is None or truth.value is None:
        return claim.value is None or truth.value is not None
    pairs = [
        (with_sizes(value.terms, names) if is_symbolic(value) else value, number)
        for value, number in zip(claim.values.flat, truth.value.flat, strict=True)
    ]
    return all(value is None or np.array_equal(value, number, equal_nan=True) for value, number in pairs)


def names_of(graph: Arithmetic) -> dict[str, int]:
    return {dim: size for dim, size in zip(graph.dims, graph.sizes, strict=True) if isinstance(dim, str)}


@pytest.mark.slow
@given(st.data())
@settings(deadline=None, max_examples=400)
def test_less_known_shapes_give_less_and_nothing_else(data: st.DataObject) -> None:
    graph = Arithmetic(data.draw)
    for _ in range(data.draw(st.integers(3, 14))):
        graph.step()
    truth = concretely(graph)
    value = Value("x", DataType.FLOAT32, DynamicTensorShape(graph.dims))
    claims = specs(Model([value], [], graph.layers, graph.constants))
    for layer in graph.layers:
        name = layer.output.name
        assert generalises(claims[name], truth[name], names_of(graph)), (
            f"{layer}: {claims[name]}, and it is {truth[name]}"
        )


@pytest.mark.quick(cases=0)
@given(st.data())
@settings(deadline=None, max_examples=60)
def test_inferred_values_are_computed_values(data: st.DataObject) -> None:
    """With concrete shapes all arithmetic is known, and equals what the model computes for any shape."""
    graph = Arithmetic(data.draw)
    for _ in range(data.draw(st.integers(3, 10))):
        graph.step()
    truth = concretely(graph)
    outputs = [layer.output.name for layer in graph.layers]
    value = Value("x", DataType.FLOAT32, DynamicTensorShape(graph.dims))
    ends = [Value(name, truth[name].dtype, None) for name in outputs]
    model = Model([value], ends, graph.layers, graph.constants)
    optimize(model, evaluator())
    made = pf.run(model, {"x": np.zeros(graph.sizes, np.float32)})
    for name in outputs:
        assert made[name].shape == truth[name].shape
        if truth[name].value is not None:
            np.testing.assert_array_equal(made[name], truth[name].value, str(name))


@pytest.mark.parametrize(
    ("op", "given", "size", "claim"),
    [
        ("Neg", "s", 1, None),  # -n is -1 for one element: that asks for the rest
        ("Sub", "one s", 2, None),
        ("Sub", "s three", 2, None),
        ("Add", "s one", 2, "n + 1"),  # never negative
    ],
)
def test_a_target_that_may_ask_for_the_rest_is_unknown(op: str, given: str, size: int, claim: str | None) -> None:
    model = load(
        [node("Shape", "x", "s"), node(op, given, "t"), node("Reshape", "x t", "y")],
        {"x": ["n"]},
        constants={"one": np.array([1]), "three": np.array([3])},
        optimize=False,
    )
    assert specs(model)["y"].shape == (claim,)
    if claim is None:
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(pf.run(model, {"x": x})["y"], x)
