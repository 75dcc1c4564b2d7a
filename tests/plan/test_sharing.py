"""Parts of joins and slices of cuts lie within the whole: no step copies them, and the values stay right."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import perframe as pf
from small import load, node

random = np.random.default_rng(5)


class Network:
    """A network that a test grows layer by layer; every value has (batch, channels, height, width)."""

    def __init__(self, draw: Any, kind: str) -> None:
        self.draw, self.kind = draw, kind
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Any] = {}
        batch = draw(st.integers(1, 2))
        channels = draw(st.sampled_from([3, 8, 16, 33]))
        self.x = (batch, channels, draw(st.integers(1, 6)), draw(st.integers(1, 6)))
        self.shapes: dict[str, tuple[int, ...]] = {"x": self.x}

    def value(self) -> str:
        """Any value, late ones more often."""
        names = list(self.shapes)
        return str(self.draw(st.sampled_from(names + names[-4:])))

    def add(self, op: str, inputs: Sequence[str], shapes: Sequence[tuple[int, ...]], **attributes: Any) -> None:
        """A layer with outputs of these shapes."""
        made = [f"v{len(self.shapes) + index}" for index in range(len(shapes))]
        self.shapes |= dict(zip(made, shapes, strict=True))
        self.nodes.append(helper.make_node(op, list(inputs), made, made[0], **attributes))

    def constant(self, values: Any) -> str:
        """An initializer."""
        self.constants[name := f"c{len(self.constants)}"] = np.asarray(values)
        return name

    def weights(self, *shape: int) -> str:
        """Those of a convolution."""
        return self.constant(random.normal(0, 0.3, shape).astype(np.float32))

    def join(self) -> None:
        """Join values with equal other dims, some of them twice."""
        first, axis = self.value(), self.draw(st.integers(0, 3))
        shape = self.shapes[first]

        def rest(other: tuple[int, ...]) -> Any:
            return other[:axis] + other[axis + 1 :]

        fitting = [name for name, other in self.shapes.items() if rest(other) == rest(shape)]
        parts = self.draw(st.permutations(fitting))[:3] + self.draw(st.sampled_from([[], [first]]))
        total = sum(self.shapes[name][axis] for name in parts)
        made = (*shape[:axis], total, *shape[axis + 1 :])
        self.add("Concat", parts, [made], axis=axis - self.draw(st.sampled_from([0, 4])))

    def split(self) -> None:
        """Cut a value into two slices. One of them may be empty."""
        name, axis = self.value(), self.draw(st.integers(0, 3))
        shape = self.shapes[name]
        first = self.draw(st.integers(0, shape[axis]))
        sizes = self.constant(np.array([first, shape[axis] - first], np.int64))
        made = [(*shape[:axis], size, *shape[axis + 1 :]) for size in (first, shape[axis] - first)]
        self.add("Split", [name, sizes], made, axis=axis)

    def slice(self) -> None:
        """Of some of the dims, in either direction."""
        name = self.value()
        shape, step = self.shapes[name], self.draw(st.sampled_from([1, 1, 2, -1]))
        axis = self.draw(st.integers(0, 3))
        first = self.draw(st.integers(0, max(0, shape[axis] - 1)))
        bounds = [[first], [-(2**31) if step < 0 else 2**31], [axis], [step]]
        size = len(range(shape[axis])[slice(first, None, step)])
        given = [self.constant(np.array(bound, np.int64)) for bound in bounds]
        self.add("Slice", [name, *given], [(*shape[:axis], size, *shape[axis + 1 :])])

    def turn(self) -> None:
        """Height and width swapped."""
        name = self.value()
        n, c, h, w = self.shapes[name]
        self.add("Transpose", [name], [(n, c, w, h)], perm=[0, 1, 3, 2])

    def shape_anew(self) -> None:
        """Rows joined to one."""
        name = self.value()
        n, c, h, w = self.shapes[name]
        self.add(
            "Reshape", [name, self.constant(np.array([n, c, 1, h * w], np.int64))], [(n, c, 1, h * w)], allowzero=1
        )

    def change(self) -> None:
        """Every element by itself, or with that of another value."""
        name = self.value()
        shape = self.shapes[name]
        which = self.draw(st.sampled_from(["Neg", "Abs", "Add", "Mul"]))
        if which in ("Neg", "Abs"):
            self.add(which, [name], [shape])
        else:
            other = self.draw(st.sampled_from([n for n, s in self.shapes.items() if s == shape]))
            channelwise = self.constant(random.integers(1, 3, (shape[1], 1, 1)).astype(self.kind))
            self.add(which, [name, other if which == "Add" else channelwise], [shape])

    def convolve(self) -> None:
        """With one tap or nine, of all channels or each by itself."""
        name = self.value()
        n, c, h, w = self.shapes[name]
        if not (n and c and h and w):
            return
        kernel = self.draw(st.sampled_from([1, 3]))
        how: dict[str, Any] = {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4}
        if self.draw(st.booleans()):
            self.add("Conv", [name, self.weights(c, 1, kernel, kernel)], [(n, c, h, w)], group=c, **how)
        else:
            outputs = self.draw(st.sampled_from([c, 16]))
            self.add("Conv", [name, self.weights(outputs, c, kernel, kernel)], [(n, outputs, h, w)], **how)

    def grow(self) -> None:
        """A transposed convolution."""
        name = self.value()
        n, c, h, w = self.shapes[name]
        if n and c and 0 < h < 7 and 0 < w < 7:
            made = (n, c, 2 * h, 2 * w)
            self.add("ConvTranspose", [name, self.weights(c, c, 2, 2)], [made], kernel_shape=[2, 2], strides=[2, 2])

    def pool(self) -> None:
        """Over nine pixels."""
        name = self.value()
        op = self.draw(st.sampled_from(["MaxPool", "AveragePool"]))
        if 0 not in self.shapes[name]:
            self.add(op, [name], [self.shapes[name]], kernel_shape=[3, 3], pads=[1] * 4)

    def model(self, outputs: Sequence[str]) -> onnx.ModelProto:
        """What has grown."""
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(self.kind))
        graph = helper.make_graph(
            self.nodes,
            "grown",
            [helper.make_tensor_value_info("x", dtype, self.x)],
            [helper.make_tensor_value_info(name, dtype, self.shapes[name]) for name in outputs],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


MOVES = ["join", "join", "join", "split", "split", "slice", "turn", "shape_anew", "change", "change"]
WINDOWS = ["convolve", "convolve", "convolve", "grow", "pool"]


@pytest.mark.slow
@given(st.data())
@settings(deadline=None, max_examples=150)
def test_values_are_those_of_copies(data: Any) -> None:
    """Any outputs of any network, float32 and a dtype that only moves take."""
    kind = data.draw(st.sampled_from(["float32", "float32", "float32", "int64"]))
    network = Network(data.draw, kind)
    for _ in range(data.draw(st.integers(1, 20))):
        getattr(network, data.draw(st.sampled_from(MOVES + (WINDOWS if kind == "float32" else []))))()
    made = list(network.shapes)[1:]
    read = {name for layer in network.nodes for name in layer.input}
    outputs = [name for name in made if name not in read or data.draw(st.integers(0, 9)) == 0]
    if not outputs:
        return
    proto = network.model(outputs)
    x = random.integers(-9, 9, network.x).astype(kind)
    wanted = ReferenceEvaluator(proto).run(None, {"x": x})
    got = pf.run(pf.load(proto), {"x": x})
    for name, value in zip(outputs, wanted, strict=True):
        assert got[name].shape == value.shape
        scale = max(1.0, np.abs(value).max(initial=0))
        np.testing.assert_allclose(got[name] / scale, value / scale, atol=3e-5)


# --- what is copied ---


def copied(model: pf.Model, *inputs: Any) -> list[str]:
    """The layers that copy, of those that join or cut; the values are checked as well."""
    with pf.Worker(model) as worker:
        got = [worker.schedule(*inputs).peek_output(name).download_to_array() for name in model.output_names]
        for value, wanted in zip(got, computed(model, *inputs), strict=True):
            np.testing.assert_allclose(value, wanted, 1e-4, 1e-4)
        names = {x.name for x in model.layers if x.op in ("Concat", "Split", "Slice")}
        (plan,) = worker.parts._parts[0]._plans.values()  # type: ignore[attr-defined]
        return [name for segment in plan.segments for name in segment.layers if name in names]


def computed(model: pf.Model, *inputs: Any) -> list[Any]:
    """The outputs, layer by layer with NumPy."""
    evaluate = pf.backends.evaluator()
    values = dict(zip((value.name for value in model.inputs), inputs, strict=True)) | dict(model.constants)
    for layer in model.layers:
        made = evaluate(layer, [values[name] if name else None for name in layer.input_names])
        values |= dict(zip(layer.output_names, made, strict=False))
    return [values[name] for name in model.output_names]


def picture(*shape: int) -> Any:
    return random.normal(size=shape).astype(np.float32)


def test_a_fire_module_copies_nothing() -> None:
    """Two convolutions write the halves of a pool's input."""
    nodes = [
        node("Conv", "x p", "a"),
        node("Relu", "a", "s"),
        node("Conv", "s q", "b"),
        node("Conv", "s r", "c", pads=[1] * 4),
        node("Concat", "b c", "d", axis=1),
        node("MaxPool", "d", "y", kernel_shape=[2, 2]),
    ]
    weights = {"p": picture(16, 3, 1, 1), "q": picture(24, 16, 1, 1), "r": picture(24, 16, 3, 3)}
    assert copied(load(nodes, {"x": [2, 3, 9, 11]}, constants=weights), picture(2, 3, 9, 11)) == []


@pytest.mark.parametrize("nested", [False, True])
def test_a_dense_block_copies_nothing(nested: bool) -> None:
    """Each layer reads all earlier ones: by a new join each time, or by joining one more to the last join."""
    nodes, weights = [node("Conv", "x w", "f0")], {"w": picture(32, 3, 1, 1)}
    for index in range(4):
        parts = " ".join(f"f{i}" for i in range(index + 1))
        if nested and index:
            parts = f"j{index - 1} f{index}"
        weights |= {f"m{index}": picture(32 * (index + 1), 1, 1), f"w{index}": picture(32, 32 * (index + 1), 3, 3) / 20}
        nodes += [
            node("Concat", parts, f"j{index}", axis=1),
            node("Mul", f"j{index} m{index}", f"n{index}"),
            node("Relu", f"n{index}", f"r{index}"),
            node("Conv", f"r{index} w{index}", f"f{index + 1}", pads=[1] * 4),
        ]
    nodes.append(node("Concat", "j3 f4" if nested else "f0 f1 f2 f3 f4", "y", axis=1))
    # the last join is the model's output, in the other order of dims: it is written by a transposition
    assert copied(load(nodes, {"x": [1, 3, 5, 6]}, constants=weights), picture(1, 3, 5, 6)) == []


def test_a_value_can_lie_in_one_place_only() -> None:
    """Twice in one join, and in two joins."""
    nodes = [
        node("Neg", "x", "a"),
        node("Concat", "a a", "b", axis=1),
        node("Concat", "a x", "y", axis=1),
        node("Neg", "b", "z"),
    ]
    names = copied(load(nodes, {"x": [2, 32]}, "y z", optimize=False), picture(2, 32))
    assert names == ["b", "b", "y"]  # y still takes x


def test_slices_are_read_where_they_lie() -> None:
    """Of rows, and of what is one row; an output of the model is copied."""
    nodes = [
        node("Neg", "x", "a"),
        node("Split", "a", "b c", axis=1, num_outputs=2),
        node("Abs", "b", "y"),
        node("Split", "a", "d z", axis=0, num_outputs=2),
        node("Neg", "d", "w"),
    ]
    model = load(nodes, {"x": [4, 32]}, "y z w", optimize=False)
    assert copied(model, picture(4, 32)) == ["d"]


@pytest.mark.parametrize("shape", [(1, 24, 16), (3, 24, 16)])
def test_bytes_and_whole_numbers_have_places_too(shape: tuple[int, ...]) -> None:
    """Where the other dims are 1: no kernel needs to know."""
    nodes = [
        node("Cast", "x", "a", to=TensorProto.INT64),
        node("Neg", "a", "b"),
        node("Concat", "a b", "c", axis=1),
        node("Abs", "c", "d"),
        node("Cast", "d", "y", to=TensorProto.FLOAT),
    ]
    names = copied(load(nodes, {"x": list(shape)}, optimize=False), picture(*shape).round())
    assert names == ([] if shape[0] == 1 else ["c", "c"])


def test_memory_is_taken_once() -> None:
    """A join takes no more than its parts."""
    nodes = [node("Neg", "x", "a"), node("Abs", "x", "b"), node("Concat", "a b", "c", axis=0), node("Neg", "c", "y")]
    with pf.Worker(load(nodes, {"x": [1024, 64]}, optimize=False)) as worker:
        worker.schedule(picture(1024, 64)).peek_output().download_to_array()
        (plan,) = worker.parts._parts[0]._plans.values()  # type: ignore[attr-defined]
        assert plan.workspace_bytes == 2 * 1024 * 64 * 4


PROGRAM = """
import sys
import numpy as np
import perframe as pf
from plan.test_sharing import branches
x = np.random.default_rng(0).normal(size=(1, 8, 96, 96)).astype(np.float32)
sys.stdout.buffer.write(pf.run(branches(), {"x": x})["y"].tobytes())
"""


def branches() -> pf.Model:
    """All that writes rows with gaps, with work for more than one thread."""
    seeded = np.random.default_rng(1)
    weights = {
        "p": seeded.normal(0, 0.1, (32, 8, 1, 1)).astype(np.float32),
        "q": seeded.normal(0, 0.1, (32, 32, 3, 3)).astype(np.float32),
        "r": seeded.normal(0, 0.1, (64, 1, 3, 3)).astype(np.float32),
        "t": seeded.normal(0, 0.1, (128, 16, 1, 1)).astype(np.float32),
    }
    nodes = [
        node("Conv", "x p", "a"),
        node("Conv", "a q", "b", pads=[1] * 4),
        node("Concat", "a b", "c", axis=1),
        node("Conv", "c r", "d", pads=[1] * 4, group=64),
        node("MaxPool", "c", "e", kernel_shape=[3, 3], pads=[1] * 4),
        node("Concat", "d e", "f", axis=1),
        node("ConvTranspose", "f t", "g"),
        node("Sigmoid", "f", "h"),
        node("Concat", "g h", "i", axis=1),
        node("MaxPool", "i", "y", kernel_shape=[3, 3], pads=[1] * 4),
    ]
    return load(nodes, {"x": [1, 8, 96, 96]}, constants=weights)


@pytest.mark.slow
def test_threads_change_no_bit() -> None:
    """Bands of a convolution write their parts of rows."""
    assert copied(branches(), picture(1, 8, 96, 96)) == []
    made = []
    for threads in ("1", "2"):
        environment = {**os.environ, "PERFRAME_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)}
        made.append(subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, env=environment))
    assert made[0].stdout == made[1].stdout and len(made[0].stdout) == 96 * 96 * 144 * 4


# --- sums in place ---


@pytest.mark.parametrize("reads_later", [False, True])
def test_a_residual_sum_overwrites_its_addend(reads_later: bool) -> None:
    """Unless somebody reads that later. Each layer's input and output are all that lives then."""
    nodes = [node("Conv", "x w", "a0", pads=[1] * 4)]
    for index in range(3):
        nodes += [
            node("Conv", f"a{index} p", f"b{index}"),
            node("Relu", f"b{index}", f"c{index}"),
            node("Conv", f"c{index} p", f"d{index}"),
            node("Add", f"d{index} a{index}", f"a{index + 1}"),
        ]
    nodes += [node("Conv", "a3 p", "e"), node("Add", "e a0", "f")] if reads_later else [node("Neg", "a3", "f")]
    nodes.append(node("MaxPool", "f", "y", kernel_shape=[3, 3], pads=[1] * 4))
    model = load(nodes, {"x": [1, 3, 40, 40]}, constants={"w": picture(32, 3, 3, 3), "p": picture(32, 32, 1, 1) / 6})
    assert copied(model, picture(1, 3, 40, 40)) == []
    with pf.Worker(model) as worker:
        worker.schedule(picture(1, 3, 40, 40)).peek_output().download_to_array()
        (plan,) = worker.parts._parts[0]._plans.values()  # type: ignore[attr-defined]
        assert plan.workspace_bytes // (32 * 40 * 40 * 4) == (3 if reads_later else 2)
