"""Elementwise layers that form a known function become that function: Gelu, Swish, HardSwish, Mish and others.

What they compute on probes decides, so that it does not matter how an exporter spelled the function. Numbers alone
would overlook an epsilon or a clamp that guards a logarithm or a division behind them. So the values must agree
relative to their own size, in float64 too, and each layer must be needed: without it the values must not agree.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

import numpy as np

from perframe.ir import Array, Evaluate, Layer, Model
from perframe.ir.epilogue import Stage, apply
from perframe.passes.recognise.regions import Region, agree, is_plain_formula, regions, replace_region, within
from perframe.safety.records import dataclass

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
SATURATING = ("Sigmoid", "HardSigmoid", "Softsign")  # they come as close to 1 as float32 can
TOLERANCE = 2e-6  # of a spelling in float32, of values around 1
RELATIVE = 2e-5  # of a spelling in float64, with constants of float32, of any value
NOISE = 4e-16  # of a spelling in float64: 1 + erf(x) where erf(x) is almost -1
BESIDE_ONE = 2e-9  # between a value and 1; numbers of float32 just below 1 are 6e-8 apart


@cache
def _probes() -> Array:
    """Values of all sizes, dense where the functions bend."""
    small = np.linspace(-20, 20, 801)
    large = np.array([0.0, 1e-6, 1e-3, 15.0, 20.0, 40.0, 80.0, 100.0, 1e3, 1e4, np.inf])
    return np.concatenate([small, large, -large, [np.nan]]).astype(np.float32)


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of layers that were removed."""
    functions, removed = _Functions(evaluate), 0
    for region in regions(model, is_plain_formula, fewest=2):
        found = functions.find(region.key(), _Spelling(region, evaluate))
        if found is not None:
            op, attributes = found
            root = region.root
            replace_region(model, region, Layer(op, root.name, [region.source], root.outputs, attributes))
            removed += len(region.layers) - 1
    return removed + sum([_in_epilogue(layer, functions) for layer in model.layers if layer.epilogue])


def _in_epilogue(layer: Layer, functions: _Functions) -> int:
    """Replace gates within an epilogue, and return their number: a fusion may have come first."""
    stages, replaced = list(layer.epilogue), 0
    for index, stage in enumerate(stages):
        if any(isinstance(operand, tuple) for operand in stage.operands):
            found = functions.find(stage, _Gate(stage))
            if found is not None:
                op, attributes = found
                stages[index] = Stage(op, tuple(sorted(attributes.items())), (None,))
                replaced += 1
    if replaced:
        layer.epilogue = tuple(stages)
    return replaced


class _Unknown(Protocol):
    """Layers that may be a function."""

    def values(self, x: Array) -> Array | None:
        """Their result for x, in the dtype of x."""

    def shorter(self, x: Array) -> Iterator[Array | None]:
        """Their result for x without one of them, for each of them."""


@dataclass(frozen=True)
class _Spelling:
    """A region of a model."""

    region: Region
    evaluate: Evaluate

    def values(self, x: Array) -> Array | None:
        return self.region.values(self.evaluate, x)

    def shorter(self, x: Array) -> Iterator[Array | None]:
        for passed in self.region.operands():
            yield self.region.values(self.evaluate, x, passed)


@dataclass(frozen=True)
class _Gate:
    """A stage of an epilogue that combines the running value with functions of it."""

    stage: Stage

    def values(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            values: Array = apply((self.stage,), x)
        return values

    def shorter(self, x: Array) -> Iterator[Array]:
        for index, operand in enumerate(self.stage.operands):
            stages = operand if isinstance(operand, tuple) else ()
            for left_out in range(len(stages)):
                rest = (*stages[:left_out], *stages[left_out + 1 :])
                operands = (*self.stage.operands[:index], rest, *self.stage.operands[index + 1 :])
                yield _Gate(replace(self.stage, operands=operands)).values(x)


class _Functions:
    """Finds the function that layers compute. It evaluates each function, and layers that are alike, only once."""

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._found: dict[Hashable, tuple[str, dict[str, Any]] | None] = {}
        self._values: dict[tuple[int, type], Array] = {}  # by the function's index and the dtype

    def find(self, key: Hashable, unknown: _Unknown) -> tuple[str, dict[str, Any]] | None:
        """The function and its attributes; None if FUNCTIONS lacks it. Layers that are alike have the same `key`."""
        if key not in self._found:
            self._found[key] = self._find(unknown)
        return self._found[key]

    def _find(self, unknown: _Unknown) -> tuple[str, dict[str, Any]] | None:
        values = unknown.values(_probes())
        for index, (op, attributes) in enumerate(FUNCTIONS):
            expected = self._expected(index, np.float32)
            if not agree(values, expected, within(expected, TOLERANCE, 1)):
                continue
            exact, wide = self._expected(index, np.float64), _probes().astype(np.float64)
            if _is_same(unknown.values(wide), exact, op) and not any(
                _is_same(shorter, exact, op) for shorter in unknown.shorter(wide)
            ):
                return op, attributes
        return None

    def _expected(self, index: int, dtype: type) -> Array:
        """What a function makes of the probes."""
        if (index, dtype) not in self._values:
            op, attributes = FUNCTIONS[index]
            layer = Layer(op, op, ["x"], ["y"], attributes)
            with np.errstate(all="ignore"):
                self._values[index, dtype] = self._evaluate(layer, [_probes().astype(dtype)])[0]
        return self._values[index, dtype]


def _is_same(values: Array | None, exact: Array, op: str) -> bool:
    """Whether values on the probes are those of a function, relative to their size, and to what lacks to 1."""
    x = np.abs(_probes().astype(np.float64))
    allowed = RELATIVE * np.abs(exact) + NOISE * np.maximum(x, 1)
    if op in SATURATING:
        allowed = np.minimum(allowed, RELATIVE * (1 - np.abs(exact)) + BESIDE_ONE)
    return agree(values, exact, allowed)
