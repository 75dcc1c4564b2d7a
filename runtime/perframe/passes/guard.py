"""Runs passes one by one, and turns what goes wrong in one into an error that names it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from perframe.errors import ModelError, PassError, PerframeError
from perframe.ir import Evaluate, Model

FIRST = ("inline_branches",)  # a branch that does not run may not fit, and goes


class Guard:
    """Runs the passes of one model. `purpose` says what they are for, as "to optimize it".

    An error of the file stays unchanged: its shapes do not fit together, or the values of its constants are wrong.
    Every other error is a fault of a pass, and becomes a PassError. `added` names the passes that are not perframe's.
    """

    def __init__(self, model: Model, evaluate: Evaluate, purpose: str, added: Collection[str] = ()) -> None:
        self._model, self._evaluate, self._purpose, self._added = model, evaluate, purpose, added
        self._changed: list[str] = []  # the passes that changed it
        self._of_values: PerframeError | None = None
        self._is_inferred = False  # whether the specs describe the current layers
        self._is_sound: bool | None = None  # whether its shapes fitted together before the passes

    def run(self, name: str, function: Callable[[Model, Evaluate], int]) -> int:
        """Run a pass, verify the model if that changed it, and return the number of changes. Raises PassError."""
        if self._is_sound is None and name not in FIRST:
            self._is_sound = self._fits()
        try:
            if not self._is_inferred and name not in FIRST:
                self._model.infer()
                self._is_inferred = True
            changes = function(self._model, self._noting)
            if changes:
                self._is_inferred = False
                self._model.verify()
        except (RecursionError, MemoryError):
            raise
        except PerframeError as error:
            if error is self._of_values or not self._is_sound:
                raise
            raise self._error(name, error) from error
        except Exception as error:
            raise self._error(name, error) from error
        if changes:
            self._changed.append(name)
        return changes

    def _fits(self) -> bool:
        try:
            self._model.infer()
        except PerframeError:
            return False
        self._is_inferred = True
        return True

    def _noting(self, layer: Any, inputs: Sequence[Any]) -> list[Any]:
        """Evaluate a layer, and remember the error of its values."""
        try:
            return self._evaluate(layer, inputs)
        except PerframeError as error:
            self._of_values = error
            raise

    def _error(self, name: str, error: Exception) -> PassError:
        said = str(error) if isinstance(error, PerframeError) else f"{type(error).__name__}: {error}"
        before = f" after {', '.join(dict.fromkeys(self._changed))}" if self._changed else ""
        own = [one for one in (*self._changed, name) if one in self._added]
        fault = f"The fault may be in your pass {own[-1]!r}" if own else "This is a fault of perframe: please report it"
        return PassError(
            f"{self._model.name}: the pass {name!r}, which runs{before} {self._purpose}, failed: {said}"
            f"{self._inconsistency(said)}. {fault}. load(..., optimize=False) "
            "loads the model without passes, and `perframe optimize --stop-after N` stops before this one"
        )

    def _inconsistency(self, said: str) -> str:
        """What is wrong with the model after the pass, if that can be said."""
        try:
            self._model.verify()
        except ModelError as error:
            return "" if str(error) in said else f" ({error})"
        return ""
