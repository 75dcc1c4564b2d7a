"""Real models agree with onnxruntime on every backend, with and without passes, on noise and on photographs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from models.zoo import ZOO, Entry, expected, given
from perframe.backends import evaluator
from perframe.ir.sizes.partial import PartialTensor
from perframe.passes import prepare
from small import specs

TOLERANCE = 1e-3  # of the largest output
IMAGES = (None, "astronaut.png", "coffee.png")

pytestmark = pytest.mark.usefixtures("shared")


def compare(entry: Entry, actual: dict[str, Any], image: str | None) -> None:
    want = expected(entry, image)
    assert list(actual) == list(want)
    for name, value in want.items():
        assert (actual[name].dtype, actual[name].shape) == (value.dtype, value.shape), name
        assert np.ptp(value) > 1e-3 * np.abs(value).max(), f"{name} is flat, and would hide mistakes"
        worst = np.abs(actual[name] - value).max() / np.abs(value).max()
        assert worst <= TOLERANCE, f"{name} differs by {worst:.2g} of its largest value"


@pytest.mark.parametrize("entry", [pytest.param(e, marks=[] if e.small else pytest.mark.slow) for e in ZOO], ids=str)
def test_outputs_are_those_of_onnxruntime(entry: Entry, backend: str, backend_context: Any) -> None:
    """One worker runs three frames. No frame may affect the next."""
    model = pf.load(entry.file)
    with pf.Worker(model, backend, backend_context, strict=backend != "cpu") as worker:
        for image in IMAGES if entry.small else IMAGES[:2]:
            worker.schedule(given(entry, image))
            actual = {name: worker.peek_output(name).download_to_array() for name in model.output_names}
            compare(entry, actual, image)


@pytest.mark.parametrize("entry", [entry for entry in ZOO if entry.small], ids=str)
def test_outputs_without_passes_are_the_same(entry: Entry, backend: str, backend_context: Any) -> None:
    model = pf.load(entry.file, optimize=False)
    name = model.inputs[0].name
    actual = pf.run(model, {name: given(entry, "astronaut.png")}, backend, strict=backend != "cpu", ctx=backend_context)
    compare(entry, actual, "astronaut.png")


@pytest.mark.parametrize("entry", ZOO[:4], ids=str)
def test_layer_by_layer_gives_the_same(entry: Entry, backend: str, backend_context: Any) -> None:
    model = pf.load(entry.file)
    with pf.Worker(model, backend, backend_context) as worker:
        names = list(worker.schedule_iterable(given(entry, "coffee.png")))
        actual = {name: worker.peek_output(name).download_to_array() for name in model.output_names}
    run = [(layer, layer.declaration) for layer in prepare(model, evaluator(), backend).layers if not layer.on_host]
    # layers that only move values take no step
    assert set(names) >= {layer.name for layer, said in run if not (said.alias or said.joins or said.cuts)}
    compare(entry, actual, "coffee.png")


@pytest.mark.parametrize("entry", ZOO, ids=str)
def test_passes_make_a_model_smaller(entry: Entry) -> None:
    plain, optimized = pf.load(entry.file, optimize=False), pf.load(entry.file)
    assert len(optimized.layers) < len(plain.layers)
    assert not {"BatchNormalization", "Dropout", "Identity"} & {layer.op for layer in optimized.layers}


def test_shapes_are_known_before_the_run() -> None:
    for entry in ZOO[:4]:
        model = pf.load(entry.file)
        made = specs(model, {model.inputs[0].name: PartialTensor.of(given(entry, None))})
        for name, value in expected(entry, None).items():
            assert made[name].shape == value.shape


def test_a_path_bytes_and_a_file_give_the_same_model(shared: Path) -> None:
    path = shared / "models" / "mnist-12.onnx"
    with path.open("rb") as file:
        models = [pf.load(path), pf.load(str(path)), pf.load(path.read_bytes()), pf.load(file)]
    assert len({len(model.layers) for model in models}) == 1
    assert len({tuple(model.constants) for model in models}) == 1
