"""Values of a model are compared with those of another model and of onnxruntime: a wrong number is found by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from typer.testing import CliRunner

import perframe as pf
from passes.graphs import graph, node, random
from perframe.command_line.cli import app
from perframe.inspection.comparison import ValueComparison

RUNNER = CliRunner()
X = random(1, 3, 12, 12, seed=9)
HALF = {"half": np.float32(0.5)}


def network(**changed: Any) -> onnx.ModelProto:
    constants: dict[str, Any] = {
        "w": random(8, 3, 3, 3),
        "v": random(8, 8, 1, 1, seed=1),
        "u": random(5, 8, 1, 1, seed=2),
    }
    nodes = [
        node("Conv", "x w", "first", pads=[1, 1, 1, 1]),
        node("Relu", "first", "a"),
        node("Conv", "a v", "second"),
        node("Add", "second a", "sum"),
        node("Conv", "sum u", "third"),
        node("GlobalAveragePool", "third", "y"),
    ]
    return graph(nodes, {"x": [1, 3, 12, 12]}, constants | changed)


def planted() -> onnx.ModelProto:
    """The network with one wrong number in the second convolution's weights."""
    v = random(8, 8, 1, 1, seed=1)
    v[3, 2] += 1
    return network(v=v)


def origins(found: Any) -> list[str]:
    return [one.layer for one in found if isinstance(one, ValueComparison) and one.is_origin]


@pytest.mark.parametrize("optimize", [True, False])
def test_a_wrong_number_is_found_by_its_layer(optimize: bool, backend: str, backend_context: Any) -> None:
    wrong, right = pf.load(planted(), optimize), pf.load(network(), optimize)
    found = pf.compare(wrong, {"x": X}, backend, backend_context, against=right)
    assert origins(found) == ["second"]
    later = {one.layer for one in found if not one.agrees}
    assert later >= {"third", "y"} and "first" not in later


def test_a_model_agrees_with_itself_before_its_passes(backend: str, backend_context: Any) -> None:
    found = pf.compare(network(), {"x": X}, backend, backend_context, against=pf.load(network(), optimize=False))
    assert len(found) >= 4 and all(one.agrees for one in found)


def test_a_model_agrees_with_onnxruntime() -> None:
    found = pf.compare(network(), {"x": X}, against="onnxruntime")
    assert {one.output for one in found} >= {"a", "sum", "third", "y"} and all(one.agrees for one in found)


def test_comparisons_print_as_a_table() -> None:
    shown = repr(pf.compare(network(), {"x": X}, against="onnxruntime"))
    assert "of the largest" in shown and "values in common, 0 further apart" in shown and "output 'y'" in shown
    assert "further from their definitions" in pf.compare(network(), {"x": X})._repr_html_()
    named = graph([node("Relu", "x", "\x1b[31mred")], {"x": [2]}, outputs="\x1b[31mred")
    assert "\x1b" not in repr(pf.compare(named, {"x": X.ravel()[:2]}))


def test_models_without_common_values_are_refused() -> None:
    other = graph([node("Relu", "x", "elsewhere")], {"x": [1, 3, 12, 12]}, outputs="elsewhere")
    with pytest.raises(pf.InputError, match="no value in common"):
        pf.compare(network(), {"x": X}, against=other)


def test_the_command_names_the_layer_and_draws_the_errors(tmp_path: Path) -> None:
    onnx.save(planted(), tmp_path / "wrong.onnx")
    onnx.save(network(), tmp_path / "right.onnx")
    call = ["compare", str(tmp_path / "wrong.onnx"), "--against", str(tmp_path / "right.onnx")]
    shown = RUNNER.invoke(app, [*call, "--html", str(tmp_path / "errors.html")])
    assert shown.exit_code == 1 and "begins at layer 'second'" in shown.output
    assert '"error"' in (tmp_path / "errors.html").read_text()
    listed = json.loads(RUNNER.invoke(app, [*call, "--json"]).output)
    assert [one["layer"] for one in listed if one["is_origin"]] == ["second"]
    for against in ("unoptimized", "onnxruntime"):
        assert RUNNER.invoke(app, [*call[:2], "--against", against]).exit_code == 0


def test_a_page_shows_the_times_on_a_backend(backend: str, tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "m.onnx")
    call = ["inspect", str(tmp_path / "m.onnx"), "--html", str(tmp_path / "m.html"), "--profile", "--backend"]
    assert RUNNER.invoke(app, [*call, backend]).exit_code == 0
    text = (tmp_path / "m.html").read_text()
    assert f"time on {'the cpu' if backend == 'cpu' else backend}" in text
    assert RUNNER.invoke(app, [*call, "gpu"]).exit_code == 2


@pytest.mark.slow
def test_a_number_in_a_real_model(shared: Path, tmp_path: Path) -> None:
    proto = onnx.load(shared / "models" / "ultraface_rfb_320.onnx")
    weights = next(one for one in proto.graph.initializer if one.name == "base_net.4.3.weight")
    values = numpy_helper.to_array(weights).copy()
    values[3, 0, 0, 0] += 0.5
    weights.CopyFrom(numpy_helper.from_array(values, weights.name))
    x = np.random.default_rng(0).standard_normal((1, 3, 240, 320)).astype(np.float32)
    found = pf.compare(proto, {"input": x}, against=shared / "models" / "ultraface_rfb_320.onnx")
    assert origins(found)[0] == "Conv_24"


def accumulating() -> onnx.ModelProto:
    return graph(
        [node("Mul", "state half", "less"), node("Add", "less x", "next")], {"x": [4], "state": [4]}, HALF, "next"
    )


def test_the_run_that_is_compared_reads_the_states_of_earlier_runs(
    tmp_path: Path, backend: str, backend_context: Any
) -> None:
    model, x, begin = pf.load(accumulating()), random(4), random(4, seed=3)
    wanted = begin
    for _ in range(5):
        wanted = wanted / 2 + x
    for runs, agrees in ((5, True), (4, False)):
        (found,) = pf.compare(
            model,
            {"x": x, "state": begin},
            backend,
            backend_context,
            {"next": wanted},
            carry={"next": "state"},
            runs=runs,
        )
        assert found.agrees is agrees
    layers = pf.compare(model, {"x": x}, backend, backend_context, carry={"next": "state"}, runs=3)
    assert layers and all(one.agrees for one in layers)
    with pytest.raises(pf.InputError, match="at least 1, and got 0"):
        pf.compare(model, {"x": x}, backend, backend_context, carry={"next": "state"}, runs=0)
    onnx.save(accumulating(), tmp_path / "sums.onnx")
    shown = RUNNER.invoke(
        app, ["compare", str(tmp_path / "sums.onnx"), "--backend", backend, "--carry", "next=state", "--runs", "3"]
    )
    assert shown.exit_code == 0, shown.output
