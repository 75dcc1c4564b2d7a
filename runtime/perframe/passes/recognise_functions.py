"""Elementwise layers that together are a known function become that function: Gelu, Swish, HardSwish, Mish and others.

What they compute on probes decides, so that it does not matter how an exporter spelled the function.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any

import numpy as np

from perframe.layers.epilogue import Stage, apply
from perframe.model import Array, Evaluate, Layer, Model
from perframe.passes.match import Graph
from perframe.passes.regions import agree, is_plain_formula, regions, replace_region

FUNCTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Gelu", {}),
    ("Gelu", {"approximate": "tanh"}),
    ("Swish", {}),
    ("Swish", {"alpha": 1.702}),  # OpenAI's quick form of Gelu
    ("HardSwish", {}),
    ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
    ("Mish", {}),
    ("Softplus", {}),
    ("Softsign", {}),
    ("Sigmoid", {}),
)
TOLERANCE = 2e-6  # of a spelling in float32


@cache
def _probes() -> Array:
    """Values of all sizes, dense where the functions bend."""
    small = np.linspace(-12, 12, 481)
    large = np.array([0.0, 1e-6, 1e-3, 15.0, 20.0, 40.0, 80.0, 100.0, 1e3, 1e4, np.inf])
    return np.concatenate([small, large, -large, [np.nan]]).astype(np.float32)


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of layers that were removed."""
    graph, removed = Graph(model), 0
    known: dict[Hashable, tuple[str, dict[str, Any]] | None] = {}
    for region in regions(graph, model, is_plain_formula, fewest=2):
        key = region.key(graph)
        if key not in known:
            known[key] = _function(region.values(graph, evaluate, {region.source: _probes()}), evaluate)
        found = known[key]
        if found is not None:
            op, attributes = found
            root = region.root
            replace_region(graph, region, [Layer(op, root.name, [region.source], list(root.outputs), dict(attributes))])
            removed += len(region.layers) - 1
    return removed + sum(_in_epilogue(layer, evaluate) for layer in model.layers)


def _in_epilogue(layer: Layer, evaluate: Evaluate) -> int:
    """Replace gates within an epilogue, and return their number: a fusion may have come first."""
    stages, replaced = list(layer.epilogue), 0
    for index, stage in enumerate(stages):
        if any(isinstance(operand, tuple) for operand in stage.operands):
            with np.errstate(all="ignore"):
                found = _function(apply((stage,), _probes()), evaluate)
            if found is not None:
                op, attributes = found
                stages[index] = Stage(op, tuple(sorted(attributes.items())), (None,))
                replaced += 1
    if replaced:
        layer.epilogue = tuple(stages)
    return replaced


def _function(values: Array | None, evaluate: Evaluate) -> tuple[str, dict[str, Any]] | None:
    for op, attributes in FUNCTIONS:
        with np.errstate(all="ignore"):
            expected = evaluate(Layer(op, op, ["x"], ["y"], dict(attributes)), [_probes()])[0]
        if agree(values, expected, TOLERANCE):
            return op, attributes
    return None
