"""What a declaration says beside an operator's inputs, attributes and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perframe.safety.records import dataclass

FAMILIES_OF_NUMBERS = {"elementwise", "quantize", "random", "reduce", "requantize", "rotary", "select"}


@dataclass(eq=False, kw_only=True)
class Traits:
    """What passes, plans and backends may assume of an operator.

    - `host` names the inputs whose values must be known before the layer can be planned (a shape, axes, ...).
    - `followed` names those of them whose numbers are sizes or positions: templates of plans can follow these numbers.
    - `spatial` names the inputs of dims (batch, channels, *spatial). They and the outputs may have the channels last.
    - `alias`: the output is the first input's data with another shape.
    - `pure`: equal inputs give equal outputs, which random layers do not.
    - `on_host`: the layer runs between plans, on arrays, because its output's shape depends on data or its values are
      not tensors.
    - `joins`: the output is the inputs side by side. `cuts`: each output may be a range of the first input. A backend
      need not copy the values if it can store them that way.
    - `strings`: inputs may be strings, in a family that computes with numbers.
    - `reads_values` is false if only the inputs' shapes matter.
    - `body_for` takes the value of a branch's first input and returns the name of the body that runs.
    """

    host: frozenset[str] = frozenset()
    followed: frozenset[str] = frozenset()
    spatial: frozenset[str] = frozenset()
    alias: bool = False
    pure: bool = True
    on_host: bool = False
    joins: bool = False
    cuts: bool = False
    strings: bool = False
    reads_values: bool = True
    body_for: Callable[[Any], str] | None = None


@dataclass(eq=False, kw_only=True)
class Pointwise:
    """The formula of an operator that computes each element from the elements at its place.

    - `choose(attributes, present, kind)` picks another formula, for an attribute that selects and for absent inputs.
    - `channelwise` names the inputs that hold one number for each channel (axis 1).
    - `limits` takes the formula's parameters and returns the two numbers between which it clips its first input.
    """

    formula: Callable[..., Any] | None = None
    choose: Callable[..., Callable[..., Any] | None] | None = None
    channelwise: tuple[str, ...] = ()
    limits: Callable[..., tuple[float, float]] | None = None


@dataclass(eq=False, kw_only=True)
class Drawn:
    """From what tests draw a formula's inputs: a range for each, of which the last repeats, and the kinds of dtypes
    that it takes.
    """

    ranges: tuple[tuple[float, float], ...] = ()
    dtypes: str = "float"
