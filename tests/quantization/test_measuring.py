"""Errors of layers and outputs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import perframe as pf
from passes.graphs import graph, node, random
from perframe.quantization.measuring import measure_errors
from quantization.networks import pictures, residual


def test_an_error_begins_where_it_is_planted() -> None:
    model = pf.load(residual())
    other = pf.quantize(model, "float16")
    other.value("k3").constant = other.constants["k3"] * np.float32(1.25)
    found = measure_errors(model, other, pictures(2))
    worst = max(found.layers, key=lambda one: one.own)
    assert (worst.output, worst.op) == ("i", "Conv")
    assert worst.relative == pytest.approx(0.25, rel=1e-2)
    assert worst.sqnr == pytest.approx(20 * math.log10(4), rel=1e-2)
    assert worst.inherited < 1e-3
    assert found.worst_output == found.outputs["y"] > 0
    assert [one.relative for one in found.layers] == sorted((one.relative for one in found.layers), reverse=True)


def test_equal_models_have_no_errors() -> None:
    model = pf.load(residual())
    found = measure_errors(model, model, pictures(1))
    assert found.runs == 1
    assert found.worst_output == 0
    assert {one.relative for one in found.layers} == {0}
    assert {one.sqnr for one in found.layers} == {math.inf}
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["layers"][0]["sqnr"] is None


def test_all_runs_count() -> None:
    model = pf.load(residual())
    other = pf.quantize(model)
    one, two = (measure_errors(model, other, [data]).outputs["y"] for data in pictures(2))
    both = measure_errors(model, other, pictures(2))
    assert both.runs == 2
    assert min(one, two) <= both.outputs["y"] <= max(one, two)


def test_models_without_a_common_value() -> None:
    one = pf.load(graph([node("Relu", "x", "y")], {"x": [3]}))
    other = pf.load(graph([node("Relu", "x", "z")], {"x": [3]}, outputs="z"))
    with pytest.raises(pf.InputError, match="have no value in common"):
        measure_errors(one, other, [random(3)])
