"""The CPU's convolutions with channels last: every path by its shapes, against float64."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import perframe as pf
from fresh import run_fresh
from perframe.backends import evaluator
from perframe.backends.cpu import backend
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.lowering import winograd
from perframe.backends.operand import Operand
from perframe.ir import Layer, Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.passes import prepare
from perframe.tensor import DataType

RELATIVE = 1e-4  # of the largest output: the project's promise


@dataclass(frozen=True)
class Conv:
    """(batch, channels, height, width), outputs, kernel, and values other than the defaults."""

    shape: tuple[int, int, int, int]
    outputs: int
    kernel: tuple[int, int] = (3, 3)
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    group: int = 1
    addend: bool = False
    after: str = ""
    transposed: bool = False

    def __str__(self) -> str:
        parts = ["x".join(map(str, self.shape)), str(self.outputs), "x".join(map(str, self.kernel))]
        parts += [f"s{self.strides}", f"d{self.dilations}", f"p{self.pads}", f"g{self.group}", self.after]
        return " ".join([*parts, "+" * self.addend, "transposed" * self.transposed])

    @property
    def output(self) -> tuple[int, int, int, int]:
        sizes = []
        for axis in range(2):
            reach = self.dilations[axis] * (self.kernel[axis] - 1) + 1
            pads, size = self.pads[axis] + self.pads[axis + 2], self.shape[axis + 2]
            if self.transposed:
                sizes.append((size - 1) * self.strides[axis] + reach - pads)
            else:
                sizes.append((size + pads - reach) // self.strides[axis] + 1)
        return (self.shape[0], self.outputs, sizes[0], sizes[1])


WINOGRAD = [
    Conv((1, 16, 13, 16), 16),
    Conv((2, 37, 17, 23), 33, addend=True, after="Relu"),
    Conv((1, 64, 28, 28), 130, after="Sigmoid"),
    Conv((1, 256, 14, 14), 64, addend=True),
    Conv((3, 20, 50, 9), 17, pads=(0, 0, 0, 0), after="Clip"),
    Conv((1, 512, 16, 16), 32, pads=(2, 1, 0, 3)),
    Conv((5, 37, 14, 14), 40, addend=True, after="Relu"),  # tiles of two images in one item, and of half of an image
    Conv((11, 20, 7, 8), 33, after="Sigmoid"),
    Conv((1, 16, 150, 150), 48, after="HardSwish"),
]
# tiles of eight pixels that begin or end beyond a line, or are wider than it, by taps, strides and dilations
ENDS = [
    Conv((1, 21, 4, width), 21, (3, taps), (1, before, 1, after), (1, stride), (1, spread), 21)
    for taps, before, after in ((3, 1, 1), (3, 0, 5), (5, 2, 0), (5, 7, 2), (7, 3, 3), (4, 1, 2))
    for stride, spread in ((1, 1), (2, 1), (2, 2), (3, 1), (4, 2))
    for width in (1, 7, 8, 17, 30)
    if width + before + after > spread * (taps - 1)
]
OTHERS = [
    Conv((1, 3, 31, 33), 16, kernel=(7, 7), pads=(3, 3, 3, 3), strides=(2, 2), after="Relu"),
    Conv((2, 1, 28, 28), 8, kernel=(5, 5), pads=(2, 2, 2, 2)),
    Conv((1, 24, 13, 11), 28, kernel=(1, 1), pads=(0, 0, 0, 0), addend=True, after="Relu"),
    Conv((2, 1024, 5, 3), 70, kernel=(1, 1), pads=(0, 0, 0, 0)),
    Conv((1, 2048, 7, 7), 33, kernel=(1, 1), pads=(0, 0, 0, 0), strides=(2, 2)),
    Conv((1, 300, 7, 7), 65, kernel=(3, 3), strides=(2, 1), addend=True),
    Conv((1, 12, 19, 17), 18, kernel=(3, 2), pads=(2, 0, 1, 3), dilations=(2, 3), group=3, after="Tanh"),
    Conv((1, 600, 40, 9), 5, kernel=(5, 5), pads=(2, 2, 2, 2)),
    Conv((2, 33, 17, 19), 33, group=33, after="Relu"),
    Conv((1, 7, 15, 40), 7, kernel=(5, 5), pads=(2, 2, 2, 2), strides=(2, 2), group=7),
    Conv((1, 96, 9, 25), 96, kernel=(3, 3), dilations=(2, 2), pads=(2, 2, 2, 2), group=96, after="Sigmoid"),
    Conv((1, 20, 9, 31), 20, kernel=(5, 5), pads=(2, 1, 2, 3), group=20, after="HardSwish"),
    Conv((1, 40, 6, 19), 40, kernel=(3, 5), pads=(1, 4, 0, 2), strides=(2, 2), dilations=(1, 2), group=40),
    Conv((1, 5, 7, 7), 5, group=5),
    Conv((1, 18, 3, 900), 18, kernel=(9, 9), pads=(40, 1600, 40, 1600), dilations=(10, 400), group=18),
    # taps that lie far apart
    Conv((2, 18, 37, 41), 20, dilations=(16, 16), pads=(16, 16, 16, 16), addend=True, after="HardSwish"),
    Conv((1, 7, 23, 50), 33, dilations=(8, 12), strides=(6, 5), pads=(9, 20, 3, 30), after="Relu"),
    Conv((1, 8, 9, 9), 5, dilations=(64, 64), pads=(64, 64, 64, 64)),
    Conv((1, 6, 9, 60), 4, kernel=(3, 2), dilations=(7, 65), pads=(9, 70, 9, 70), group=2, addend=True),
    Conv((1, 3, 40, 9), 17, dilations=(5, 1), strides=(2, 1), after="Clip"),
    Conv((1, 3, 9, 9), 17, kernel=(4, 4), dilations=(2, 2), pads=(3, 3, 3, 3)),
    # ends of lines that leave out some of many taps, of one channel and of several
    Conv((2, 1, 14, 320), 16, kernel=(9, 9), dilations=(1, 20), pads=(4, 80, 4, 80)),
    Conv((1, 5, 11, 90), 37, kernel=(5, 6), dilations=(1, 11), strides=(2, 1), pads=(3, 30, 1, 44), addend=True),
    Conv((1, 130, 6, 70), 20, kernel=(3, 5), dilations=(2, 8), pads=(2, 16, 2, 9), after="Relu"),
    # a copy of every ninth line
    Conv((1, 1024, 19, 23), 40, dilations=(9, 9), pads=(9, 9, 9, 9), after="Relu"),
    Conv((1, 1024, 30, 9), 40, dilations=(6, 2), strides=(4, 2), pads=(6, 2, 7, 1), addend=True),
    Conv((1, 8, 12, 12), 16, group=8),
    Conv((1, 16, 1, 1), 10, kernel=(1, 1), pads=(0, 0, 0, 0)),
    Conv((1, 4, 3, 3), 5, kernel=(5, 5), pads=(1, 1, 1, 1)),
    Conv((1, 6, 4, 4), 5, kernel=(3, 3), pads=(4, 4, 4, 4)),
    # patches that lie wholly beside the input
    Conv((1, 2, 4, 6), 5, kernel=(2, 2), pads=(0, 60000, 0, 9)),
    Conv((1, 2, 4, 6), 5, kernel=(2, 2), pads=(60000, 0, 9, 0)),
    Conv((1, 4, 4, 6), 4, kernel=(2, 2), pads=(0, 60000, 0, 9), group=4),
    Conv((1, 2, 4, 6), 5, kernel=(2, 2), pads=(0, 300, 0, 0), strides=(1, 7)),
    Conv((2, 16, 7, 9), 1, kernel=(2, 2), pads=(0, 0, 0, 0), strides=(2, 2), transposed=True, after="Sigmoid"),
    Conv((1, 33, 5, 6), 20, kernel=(4, 4), pads=(1, 1, 1, 1), strides=(2, 2), transposed=True),
    Conv((1, 5, 4, 7), 3, kernel=(3, 5), pads=(0, 2, 1, 1), strides=(3, 2), dilations=(2, 1), transposed=True),
    Conv((1, 6, 4, 7), 4, kernel=(3, 3), pads=(1, 1, 1, 1), group=2, transposed=True),
    Conv((1, 5, 4, 7), 3, kernel=(1, 1), pads=(0, 0, 0, 0), strides=(2, 2), transposed=True),
]

AFTER: dict[str, Any] = {
    "": lambda x: x,
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Tanh": np.tanh,
    "Clip": lambda x: np.clip(x, -0.5, 0.25),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
}


def arrays(case: Conv) -> dict[str, Any]:
    random = np.random.default_rng(len(str(case)))
    depth = case.shape[1] // case.group
    weights = (case.outputs, depth, *case.kernel)
    if case.transposed:
        weights = (case.shape[1], case.outputs // case.group, *case.kernel)
    found = {"x": random.normal(size=case.shape), "b": random.normal(size=case.outputs)}
    found["w"] = random.normal(size=weights) / math.sqrt(depth * math.prod(case.kernel))
    if case.addend:
        found["z"] = random.normal(size=case.output)
    return {name: value.astype(np.float32) for name, value in found.items()}


def model(case: Conv, given: dict[str, Any]) -> Model:
    attributes = {
        "kernel_shape": case.kernel,
        "pads": case.pads,
        "strides": case.strides,
        "dilations": case.dilations,
        "group": case.group,
    }
    layers = [Layer("ConvTranspose" if case.transposed else "Conv", "conv", ["x", "w", "b"], ["0"], attributes)]
    constants = {"w": given["w"], "b": given["b"], "low": np.float32(-0.5), "high": np.float32(0.25)}
    if case.addend:
        layers.append(Layer("Add", "add", ["z", layers[-1].output.name], ["1"]))
    if case.after:
        inputs = [layers[-1].output.name, *(("low", "high") if case.after == "Clip" else ())]
        layers.append(Layer(case.after, "after", inputs, ["2"]))
    layers[-1].output.name = "y"
    values = [Value(n, DataType.FLOAT32, DynamicTensorShape(given[n].shape)) for n in ("x", "z") if n in given]
    output = Value("y", DataType.FLOAT32, DynamicTensorShape(case.output))
    return Model(values, [output], layers, {name: np.asarray(value) for name, value in constants.items()})


def expected(case: Conv, given: dict[str, Any]) -> Any:
    """Tap by tap in float64."""
    x, w = given["x"].astype(np.float64), given["w"].astype(np.float64)
    batch, _, height, width = case.shape
    _, _, rows, columns = case.output
    groups = x.reshape(batch, case.group, -1, height, width)
    steps = case.strides
    if case.transposed:
        sizes = zip((height, width), steps, case.dilations, case.kernel, strict=True)
        full = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in sizes]
        total = np.zeros((batch, case.group, case.outputs // case.group, *full))
        w = w.reshape(case.group, -1, case.outputs // case.group, *case.kernel)
    else:
        pads = ((0, 0), (0, 0), (0, 0), (case.pads[0], case.pads[2] + 99), (case.pads[1], case.pads[3] + 99))
        groups = np.pad(groups, pads)
        total = np.zeros((batch, case.group, case.outputs // case.group, rows, columns))
        w = w.reshape(case.group, case.outputs // case.group, -1, *case.kernel)
    for i in range(case.kernel[0]):
        for j in range(case.kernel[1]):
            y, z = i * case.dilations[0], j * case.dilations[1]
            if case.transposed:
                part = np.einsum("ngchw,gco->ngohw", groups, w[..., i, j])
                total[..., y : y + height * steps[0] : steps[0], z : z + width * steps[1] : steps[1]] += part
            else:
                cut = groups[..., y : y + rows * steps[0] : steps[0], z : z + columns * steps[1] : steps[1]]
                total += np.einsum("ngchw,goc->ngohw", cut, w[..., i, j])
    if case.transposed:
        total = total[..., case.pads[0] : case.pads[0] + rows, case.pads[1] : case.pads[1] + columns]
    result = total.reshape(case.output) + given["b"].reshape(-1, 1, 1)
    return AFTER[case.after](result + given["z"] if case.addend else result)


@pytest.mark.parametrize("case", [*WINOGRAD, *ENDS, *OTHERS], ids=str)
def test_convolutions(case: Conv) -> None:
    given = arrays(case)
    fed = {name: value for name, value in given.items() if name in ("x", "z")}
    made = prepare(model(case, given), evaluator(), "cpu")
    assert any(layer.channels_last for layer in made.layers)
    actual = pf.run(model(case, given), fed)["y"]
    want = expected(case, given)
    assert actual.shape == want.shape
    assert np.abs(actual - want).max() <= RELATIVE / 4 * np.abs(want).max()


@pytest.mark.parametrize("case", WINOGRAD, ids=str)
def test_these_shapes_pay_for_a_transform(case: Conv) -> None:
    given = arrays(case)
    inputs = [Operand.of(given[name]) for name in ("x", "w", "b")]
    outputs = [Operand("y", case.output, DataType.FLOAT32)]
    # with vectors of four nothing is transformed
    assert winograd.pays(model(case, given).layers[0].form(inputs, outputs)) == (LANES > 4)


def test_a_transform_costs_little_accuracy() -> None:
    """The usual points, 1 and 2, have four times this error."""
    case = Conv((1, 256, 28, 28), 64)
    given = arrays(case)
    actual, want = pf.run(model(case, given), {"x": given["x"]})["y"], expected(case, given)
    assert np.abs(actual - want).max() <= 5e-6 * np.abs(want).max()


def test_infinities_and_nan_stay() -> None:
    case = Conv((1, 3, 8, 8), 4, after="Relu")
    given = arrays(case)
    given["x"][0, 0, 0, 0], given["x"][0, 1, 7, 7] = np.nan, np.inf
    actual = pf.run(model(case, given), {"x": given["x"]})["y"]
    want = expected(case, given)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(want))
    np.testing.assert_array_equal(np.isposinf(actual), np.isposinf(want))


def test_small_products_do_not_vanish_beside_a_large_addend() -> None:
    """They are summed before they are added to it. Where each were added, the error would be that of many roundings."""
    case = Conv((1, 64, 9, 10), 8, addend=True)
    given = arrays(case)
    given["z"] += np.float32(1000)
    actual = pf.run(model(case, given), {"x": given["x"], "z": given["z"]})["y"]
    assert np.abs(actual - expected(case, given)).max() <= np.spacing(np.float32(1000))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts the switches of threads that Linux lists")
def test_transforming_weights_wakes_no_threads_of_blas() -> None:
    """They would take many times as long, and the time of the other cores. A thread that is woken sleeps again."""
    code = (
        "import os, re, sys, threading, time\nfrom pathlib import Path\nimport numpy as np\n"
        "from perframe.backends.winograd import transformed\n"
        "def sleeps():\n"
        "    others = [t for t in Path('/proc/self/task').iterdir() if int(t.name) != threading.get_native_id()]\n"
        "    texts = [(t / 'status').read_text() for t in others]\n"
        "    return sum(int(re.search(r'\\nvoluntary_ctxt_switches:\\s*(\\d+)', text)[1]) for text in texts)\n"
        "def woken(work):\n"
        "    time.sleep(0.5)\n    before = sleeps()\n    work()\n    time.sleep(0.5)\n    return sleeps() - before\n"
        "weights, square = np.ones((256, 256, 3, 3), np.float32), np.ones((512, 512))\n"
        "transformed(weights[:8])\n"
        "print(woken(lambda: transformed(weights)), woken(lambda: square @ square))"
    )
    transforming, product = map(int, run_fresh(code, OPENBLAS_NUM_THREADS="4").split())
    assert product > 0, "BLAS has no threads, or they never sleep"
    assert transforming == 0


@pytest.mark.parametrize("transposed", [False, True])
def test_channels_that_come_second_have_a_native_kernel_too(transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the weights are computed: the absent inputs behind them must not send the layer to NumPy."""
    fallen: list[str] = []
    python_step = backend._python_step

    def watched(layer: Any, *others: Any) -> Any:
        fallen.append(layer.op)
        return python_step(layer, *others)

    monkeypatch.setattr(backend, "_python_step", watched)
    graph = pf.FunctionalGraph()
    x, w = (graph.add_input(pf.DataType.FLOAT32, shape) for shape in ((1, 4, 9, 9), (4, 4, 3, 3)))
    made = pf.functional.conv_transpose2d(x, w) if transposed else pf.functional.conv2d(x, w)
    given = np.ones((1, 4, 9, 9), np.float32), np.ones((4, 4, 3, 3), np.float32)
    with pf.Worker(graph.compile(made)) as worker:
        worker.schedule(*given)
    assert fallen == []
