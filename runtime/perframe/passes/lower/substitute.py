"""Layers that replace one layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.ir import Layer, Model, Value


class Substitute:
    """Layers that replace one layer, in run order. Their names, and those of their constants, are made of its name."""

    def __init__(self, model: Model, layer: Layer) -> None:
        self._model, self._layer = model, layer
        self._made: list[Layer] = []

    def _then(self, op: str, *inputs: Value, **attributes: Any) -> Value:
        """Add a layer, and return its output."""
        name = f"{self._layer.name}/{len(self._made)}"
        self._made.append(Layer(op, name, inputs, [name], attributes))
        return self._made[-1].output

    def _ints(self, what: str, values: Any) -> Value:
        """Return a constant of int64: a shape, or axes."""
        return self._model.add_constant(f"{what} of {self._layer.name}", np.array(values, np.int64))
