"""Views, reshapes, slices, splits and repeats: every element is right, for every dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import perframe as pf
from perframe.testing import Case, Draw, check, ints

draw = Draw(3)
HUGE = 2**63 - 1


def transpose(perm: Sequence[int] | None, *shape: int, dtype: Any = np.float32) -> Case:
    attributes = {} if perm is None else {"perm": list(perm)}
    return Case(f"{shape} by {perm} {np.dtype(dtype)}", "Transpose", [draw(*shape, high=99, dtype=dtype)], attributes)


def slices(
    shape: Sequence[int], starts: Any, ends: Any, axes: Any = None, steps: Any = None, dtype: Any = np.float32
) -> Case:
    bounds = [None if value is None else ints(*value) for value in (starts, ends, axes, steps)]
    while bounds[-1] is None:
        bounds.pop()
    return Case(
        f"{tuple(shape)} {starts} {ends} {axes} {steps}", "Slice", [draw(*shape, high=99, dtype=dtype), *bounds]
    )


def reshape(shape: Sequence[int], wanted: Sequence[int], **attributes: Any) -> Case:
    return Case(f"{tuple(shape)} to {tuple(wanted)}", "Reshape", [draw(*shape), ints(*wanted)], attributes)


CASES = [
    transpose(None, 2, 3, 5),
    transpose(None),
    transpose([0], 7),
    transpose([1, 0], 13, 7),
    transpose([0, 2, 1], 0, 3, 5),
    transpose([0, 2, 3, 1], 2, 3, 5, 7),
    transpose([0, 3, 1, 2], 2, 5, 7, 3),
    transpose([3, 1, 0, 2], 1, 5, 1, 3),
    transpose([4, 2, 0, 3, 1], 2, 3, 4, 5, 3),
    transpose([1, 0], 5, 3, dtype=np.int64),
    transpose([1, 0], 5, 3, dtype=np.int32),
    transpose([1, 0], 5, 3, dtype=np.uint8),
    transpose([1, 0], 5, 3, dtype=bool),
    transpose([1, 0], 5, 3, dtype=np.float16),
    transpose([2, 0, 1], 3, 5, 2, dtype=np.float64),
    reshape((2, 3, 5), (6, 5)),
    reshape((2, 3, 5), (-1,)),
    reshape((2, 3, 5), (0, -1)),
    reshape((2, 3, 5), (5, 0, 2)),
    reshape((6,), (1, 2, 1, 3)),
    reshape((1, 1), ()),
    reshape((), (1, 1)),
    reshape((0, 3), (3, 0), allowzero=1),
    reshape((0, 3), (0, 7), allowzero=1),
    reshape((0, 3), (-1, 5)),
    Case("int32", "Reshape", [draw(4, 3, high=9, dtype=np.int32), ints(3, -1)]),
    *(Case(f"axis {axis}", "Flatten", [draw(2, 3, 5)], {"axis": axis}) for axis in (0, 1, 2, 3, -1, -3)),
    Case("scalar", "Flatten", [draw()], {"axis": 0}),
    Case("", "Identity", [draw(2, 3)]),
    Case("all", "Squeeze", [draw(1, 3, 1, 5)]),
    Case("to a scalar", "Squeeze", [draw(1, 1)]),
    Case("one axis", "Squeeze", [draw(1, 3, 1, 5), ints(-2)]),
    Case("two axes", "Squeeze", [draw(1, 3, 1, 5), ints(2, 0)]),
    Case("two axes", "Unsqueeze", [draw(3, 5), ints(0, -1)]),
    Case("a scalar", "Unsqueeze", [draw(), ints(0)]),
    Case("axes out of order", "Unsqueeze", [draw(3, 5), ints(3, 1)]),
    Case("to more dims", "Expand", [draw(3, 1), ints(2, 1, 5)]),
    Case("with ones in the shape", "Expand", [draw(2, 3, 5), ints(1, 1)]),
    Case("a scalar", "Expand", [draw(), ints(2, 3)]),
    Case("to nothing", "Expand", [draw(1, 3), ints(0, 3)]),
    Case("int64", "Expand", [draw(3, 1, high=9, dtype=np.int64), ints(3, 4)]),
    Case("bool", "Expand", [draw(3, 1, dtype=bool), ints(3, 4)]),
    Case("", "Tile", [draw(2, 3), ints(3, 2)]),
    Case("once", "Tile", [draw(2, 3), ints(1, 1)]),
    Case("to nothing", "Tile", [draw(2, 3), ints(0, 2)]),
    Case("five dims", "Tile", [draw(2, 1, 3, 1, 2), ints(1, 3, 2, 1, 2)]),
    slices((7, 5), [1], [6]),
    slices((7, 5), [1, 0], [-1, 3], [0, 1], [2, 1]),
    slices((7, 5), [-3], [HUGE], [1]),
    slices((7, 5), [-1], [-HUGE], [0], [-1]),
    slices((7, 5), [5], [0], [0], [-2]),
    slices((7, 5), [100], [-100], [-1], [-3]),
    slices((7, 5), [-100, 2], [100, 3], [-2, -1]),
    slices((7, 5), [3], [3], [0]),
    slices((7, 5), [5], [2], [0]),
    slices((2, 3, 4, 5, 3), [1, 3, 0], [2, 0, 3], [1, 3, 4], [1, -1, 2]),
    slices((0, 5), [0], [3], [0]),
    slices((9,), [-2], [-9], [0], [-3]),
    slices((9,), [8], [-10], [0], [-1]),
    slices((9, 2), [1], [8], [0], [3], dtype=np.int64),
    slices((9, 2), [1], [8], [0], [3], dtype=np.uint8),
    slices((9, 2), [1], [8], [0], [3], dtype=bool),
    Case("int32 bounds", "Slice", [draw(7, 5), ints(1, dtype=np.int32), ints(6, dtype=np.int32)]),
    Case("bounds given at run time", "Slice", [draw(7, 5), ints(1), ints(5), ints(0), ints(2)], constants=()),
    Case("shape given at run time", "Reshape", [draw(2, 3, 5), ints(3, -1)], constants=()),
    Case("shape given at run time", "Expand", [draw(3, 1), ints(2, 1, 5)], constants=()),
    Case("sizes", "Split", [draw(7, 3), ints(2, 4, 1)], {"axis": 0}, outputs=3),
    Case("a size of 0", "Split", [draw(7, 3), ints(2, 0, 5)], {"axis": 0}, outputs=3),
    Case("equal parts", "Split", [draw(2, 6, 3)], {"axis": 1, "num_outputs": 3}, outputs=3),
    Case("a smaller last part", "Split", [draw(2, 3, 7)], {"axis": -1, "num_outputs": 3}, outputs=3),
    Case("int64", "Split", [draw(4, 3, high=9, dtype=np.int64)], {"axis": 0, "num_outputs": 2}, outputs=2),
    Case("DCR", "DepthToSpace", [draw(2, 12, 3, 5)], {"blocksize": 2}),
    Case("CRD", "DepthToSpace", [draw(2, 12, 3, 5)], {"blocksize": 2, "mode": "CRD"}),
    Case("by 3", "DepthToSpace", [draw(1, 18, 2, 3)], {"blocksize": 3, "mode": "CRD"}),
    Case("", "SpaceToDepth", [draw(2, 3, 4, 6)], {"blocksize": 2}),
    *(
        Case(mode, "SpaceToDepth", [draw(2, 3, 4, 6)], {"blocksize": 2, "mode": mode}, opset=28)
        for mode in ("DCR", "CRD")
    ),
    Case("by 3", "SpaceToDepth", [draw(1, 2, 3, 9)], {"blocksize": 3}),
    Case("without a mask", "Dropout", [draw(3, 5)]),
    Case("with a mask", "Dropout", [draw(3, 5)], outputs=2, gl=False),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_move(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


def chain(nodes: list[Any], x: Any, constants: dict[str, Any], result: str) -> Any:
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [onnx.ValueInfoProto(name=result)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@st.composite
def view_chains(random: Any) -> tuple[Any, list[Any], dict[str, Any], Any]:
    """An array, up to four views one after the other, and NumPy's result."""
    shape = random(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    nodes: list[Any] = []
    constants: dict[str, Any] = {}
    want, name = x, "x"
    for index in range(random(st.integers(1, 4))):
        result = f"v{index}"
        if random(st.booleans()):
            perm = random(st.permutations(range(want.ndim)))
            nodes.append(helper.make_node("Transpose", [name], [result], perm=perm))
            want = want.transpose(perm)
        else:
            axis = random(st.integers(0, want.ndim - 1))
            start, end = random(st.integers(-7, 7)), random(st.integers(-7, 7))
            step = random(st.sampled_from([-3, -2, -1, 1, 2, 3]))
            values = {"s": start, "e": end, "a": axis, "t": step}
            constants |= {f"{key}{index}": ints(value) for key, value in values.items()}
            nodes.append(helper.make_node("Slice", [name, *(f"{key}{index}" for key in values)], [result]))
            want = want[(slice(None),) * axis + (slice(start, end, step),)]
        name = result
    return x, nodes, constants, want


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("rank", [9, 17, 21])
def test_more_dims_than_kernels_have_room_for(rank: int, dtype: Any, backend: str, backend_context: Any) -> None:
    """Dims of two elements, no two of which can be merged: all but the last reversed, every second one flipped."""
    x = np.random.default_rng(rank).integers(0, 100, [2] * rank).astype(dtype)
    perm = [*reversed(range(rank - 1)), rank - 1]
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=perm), helper.make_node("Slice", [*"tseak"], ["y"])]
    axes = range(0, rank, 2)
    ends = {"s": [-1] * len(axes), "e": [-100] * len(axes), "a": axes, "k": [-1] * len(axes)}
    made = pf.run(
        chain(nodes, x, {name: ints(*values) for name, values in ends.items()}, "y"),
        {"x": x},
        backend=backend,
        ctx=backend_context,
    )
    backwards = tuple(slice(None, None, -1) if axis in axes else slice(None) for axis in range(rank))
    np.testing.assert_array_equal(made["y"], x.transpose(perm)[backwards])


@given(view_chains())
@settings(deadline=None, max_examples=25)
def test_chains_of_views_agree_with_numpy(drawn: tuple[Any, list[Any], dict[str, Any], Any]) -> None:
    x, nodes, constants, want = drawn
    result = nodes[-1].output[0]
    made = pf.run(chain(nodes, x, constants, result), {"x": x})[result]
    np.testing.assert_array_equal(made, want)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
@settings(deadline=None, max_examples=25)
def test_reshape_finds_minus_one_and_zero(shape: list[int], data: Any) -> None:
    """Any factorisation of the size, with some dims said as 0 (copied) and one as -1."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    target, rest = [], x.size
    while rest > 1 and data.draw(st.booleans()):
        factor = data.draw(st.sampled_from([f for f in range(1, rest + 1) if rest % f == 0]))
        target.append(factor)
        rest //= factor
    target.append(rest)
    said = [
        0 if axis < x.ndim and dim == shape[axis] and data.draw(st.booleans()) else dim
        for axis, dim in enumerate(target)
    ]
    if data.draw(st.booleans()):
        said[data.draw(st.integers(0, len(said) - 1))] = -1
    model = chain([helper.make_node("Reshape", ["x", "shape"], ["y"])], x, {"shape": ints(*said)}, "y")
    loaded = pf.load(model)
    assert loaded.outputs[0].shape == tuple(target)
    np.testing.assert_array_equal(pf.run(loaded, {"x": x})["y"], x.reshape(target))
