"""Lowering a layer like one that was lowered before: the same steps on other operands.

Most of the time that a plan takes goes into working out blocks, strides and kernels' texts. Networks repeat themselves,
and layers that are alike but for their names and weights (see `layers/twins.py`) have the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perframe.backends.cpu.program.program import CpuStep, NativeStep
from perframe.backends.operand import Make, Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.twins import signature
from perframe.sizes.traced import look_up
from perframe.tensor import DataType, Storage

# where an operand comes from: ("given", 0), ("given", 1, "panels"), ("made", 0), ("scratch", 0) or ("fixed", storage)
Origin = tuple[Any, ...]

MAX_VALUES = 64  # of a constant that a lowering looks at; longer ones are not compared


@dataclass(frozen=True)
class _Recipe:
    """A layer's steps, each with the origins of its operands, and what else it needs. `values` are those of constants
    that the lowering looked at, by the input.
    """

    steps: list[tuple[NativeStep, list[Origin]]]
    scratch: list[tuple[Sequence[int], DataType]]
    derived: dict[tuple[int, str], Make]
    values: list[tuple[int, Any]]

    def suits(self, given: Sequence[Operand | None]) -> bool:
        """Whether the values that mattered are the same."""
        others = [(given[index], value) for index, value in self.values]
        return all(other is not None and np.array_equal(np.asarray(other.value), value) for other, value in others)

    def follow(
        self, layer: LayerLike, given: Sequence[Operand | None], made: Sequence[Operand], scratch: Scratch
    ) -> list[NativeStep]:
        """The steps for these operands."""
        between = [scratch(shape, dtype) for shape, dtype in self.scratch]
        operands: dict[str, Sequence[Any]] = {"given": given, "made": made, "scratch": between}

        def find(where: str, which: Any, kind: str = "") -> Storage:
            if where == "fixed":
                found: Storage = which
                return found
            operand = given[which].derived(kind, self.derived[which, kind]) if kind else operands[where][which]
            storage: Storage = operand.storage
            return storage

        return [step.on(layer.name, [find(*origin) for origin in origins]) for step, origins in self.steps]


class Recipes:
    """How the layers of one plan were lowered."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Recipe] = {}

    def lower(
        self,
        layer: LayerLike,
        given: Sequence[Operand | None],
        made: Sequence[Operand],
        scratch: Scratch,
        lower: Callable[[Scratch], Sequence[CpuStep]],
    ) -> Sequence[CpuStep]:
        """The steps of a layer: by a recipe, or by `lower`, which makes one."""
        key = _key(layer, given, made)
        key, recipe = look_up(self._known, key)
        if recipe is not None and recipe.suits(given):
            return recipe.follow(layer, given, made, scratch)
        between: list[Operand] = []

        def noted(shape: Sequence[int], dtype: DataType) -> Operand:
            between.append(scratch(shape, dtype))
            return between[-1]

        for value in given:
            if value is not None:
                value.was_read = False
        steps = lower(noted)
        recipe = None if key is None else _recipe(steps, given, made, between)
        if recipe is not None:
            self._known[key] = recipe
        return steps


def _key(layer: LayerLike, given: Sequence[Operand | None], made: Sequence[Operand]) -> Hashable | None:
    """What layers have in common that are lowered alike; None where that cannot be said."""
    same = signature(layer)
    if same is None:
        return None
    inputs = [value and (value.shape, value.dtype, value.is_constant, value.pitch) for value in given]
    return (same, *inputs, *[(value.shape, value.dtype, value.pitch) for value in made])


def _recipe(
    steps: Sequence[CpuStep], given: Sequence[Operand | None], made: Sequence[Operand], scratch: Sequence[Operand]
) -> _Recipe | None:
    """What other layers can do the same with; None where steps are bound to this one."""
    natives = [step for step in steps if isinstance(step, NativeStep) and step.check is None]
    present = [(index, value) for index, value in enumerate(given) if value is not None]
    values = [(index, np.asarray(value.value)) for index, value in present if value.was_read and value.is_constant]
    if len(natives) != len(steps) or any(value.size > MAX_VALUES for _, value in values):
        return None
    origins: dict[int, Origin] = {}
    derived: dict[tuple[int, str], Make] = {}
    for index, value in present:
        for kind, (make, operand) in value.derivations.items():
            origins[id(operand.storage)] = ("given", index, kind)
            derived[index, kind] = make
    for where, operands in (("given", present), ("made", enumerate(made)), ("scratch", enumerate(scratch))):
        for index, value in operands:
            if value.has_storage:
                if id(value.storage) in origins:  # one value twice: another layer may have two
                    return None
                origins[id(value.storage)] = (where, index)
    noted = [(step, [origins.get(id(x), ("fixed", x)) for x in step.operands]) for step in natives]
    return _Recipe(noted, [(value.shape, value.dtype) for value in scratch], derived, values)
