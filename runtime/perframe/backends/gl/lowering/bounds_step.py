"""Checks of indices before a layer reads by them. Known indices are checked when a plan is made. With checks enabled
(see perframe/tensor/checks.py), each run waits for its indices and checks them too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perframe.backends.gl.lowering.steps import Call
from perframe.backends.gl.replay import CommandList
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.errors import BackendError, InferenceError
from perframe.ir.bounds import Bounds
from perframe.ir.form import Bounded
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import Storage, checks


class BoundsStep:
    """Reads an input back, and raises BackendError if an index is outside its bounds."""

    block = b""  # without a kernel there are no numbers
    offset = 0
    rows = 1
    sizes: Sequence[tuple[int, Any]] = ()
    reads: Sequence[Any] = ()

    def __init__(self, layer: LayerLike, operand: Operand, bounds: Bounds) -> None:
        self.layer, self._op, self._bounds = layer.name, layer.op, bounds
        self._shape, self._dtype = operand.shape, operand.dtype
        self._storage = operand.storage

    def with_numbers(self, function: Callable[[Any], Any]) -> BoundsStep:
        """Return the step: a trace holds for one shape of what it reads."""
        return self

    def record(self, commands: CommandList, uniforms: int, rows: tuple[int, int] | None = None) -> None:
        """Record a pause for the check."""
        commands.pause(self._check, self._storage)

    def _check(self, storage: Storage) -> None:
        """Wait for the values and check them."""
        try:
            self._bounds.check(storage.download(self._shape, self._dtype))
        except InferenceError as error:
            raise BackendError(f"layer {self.layer!r} ({self._op}) failed: {error}") from None


def bounds_steps(call: Call[Any]) -> list[BoundsStep]:
    """The steps that check a layer's inputs, if checks are enabled. Raises InferenceError for a known wrong index."""
    steps = []
    for bounds in call.form.bounds if isinstance(call.form, Bounded) else ():
        operand = call.optional(bounds.input)
        if operand is None:
            continue
        if operand.is_constant:
            try:
                bounds.check(_numbers(operand))
            except InferenceError as error:
                raise InferenceError(f"layer {call.layer.name!r} ({call.layer.op}): {error}") from None
        elif checks.enabled():
            steps.append(BoundsStep(call.layer, operand, bounds))
    return steps


def _numbers(operand: Operand) -> Any:
    """The known numbers of an operand. Sizes of a trace stay symbolic: the check is then a guard."""
    return operand.value if operand.sizes is None else PartialTensor.of_values(operand.dtype, operand.sizes).values
