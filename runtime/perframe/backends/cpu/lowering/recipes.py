"""Recipes reuse the steps of a lowered layer, with other operands, for the layers that are like it.

Planning spends most of its time on blocks, strides and the texts of kernels. Networks repeat themselves, and layers
that differ only in names and weights (see `ir/equality.py`) have the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.program.program import CpuStep, NativeStep
from perframe.backends.operand import Make, Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.equality import signature
from perframe.ir.sizes.tables import look_up
from perframe.safety.records import dataclass
from perframe.tensor import DataType, Storage

# the origin of an operand: ("given", 0), ("given", 1, "panels"), ("made", 0), ("scratch", 0) or ("fixed", storage)
Origin = tuple[Any, ...]

MAX_VALUES = 64  # elements: a layer whose lowering reads a longer constant gets no recipe


@dataclass(frozen=True)
class _Recipe:
    """A layer's steps, each with the origins of its operands. `scratch` are the shapes and dtypes of its scratch, and
    `derived` the functions that derive operands from constants. `values` are the constants that the lowering read, by
    input.
    """

    steps: list[tuple[NativeStep, list[Origin]]]
    scratch: list[tuple[Sequence[int], DataType]]
    derived: dict[tuple[int, str], Make]
    values: list[tuple[int, Any]]

    def suits(self, given: Sequence[Operand | None]) -> bool:
        """Whether the constants that the lowering read have the same values here."""
        others = [(given[index], value) for index, value in self.values]
        return all(other is not None and np.array_equal(np.asarray(other.value), value) for other, value in others)

    def follow(
        self, layer: LayerLike, given: Sequence[Operand | None], made: Sequence[Operand], scratch: Scratch
    ) -> list[NativeStep]:
        """Return the steps for these operands."""
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
    """The recipes of the layers of one plan."""

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
        """Return the steps of a layer: by its recipe, or else from `lower`. Keep a recipe of the latter."""
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
    """A key that is equal for layers with the same recipe; None if the layer has no signature."""
    same = signature(layer)
    if same is None:
        return None
    inputs = [value and (value.shape, value.dtype, value.is_constant, value.pitch, value.sizes) for value in given]
    return (same, *inputs, *[(value.shape, value.dtype, value.pitch) for value in made])


def _recipe(
    steps: Sequence[CpuStep], given: Sequence[Operand | None], made: Sequence[Operand], scratch: Sequence[Operand]
) -> _Recipe | None:
    """The recipe of these steps; None if they are bound to this layer, or read a constant of many elements."""
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
                if id(value.storage) in origins:  # one storage for two operands: another layer may have two storages
                    return None
                origins[id(value.storage)] = (where, index)
    noted = [(step, [origins.get(id(x), ("fixed", x)) for x in step.operands]) for step in natives]
    return _Recipe(noted, [(value.shape, value.dtype) for value in scratch], derived, values)
