"""A model under construction: its layers, and the values that a body reads from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.ir import Layer, Names, Value
from perframe.tensor import DataType


class Builder:
    """The layers of one model or body. Bodies share the names of values and layers with the model around them."""

    def __init__(self, outer: Builder | None = None) -> None:
        self.outer = outer
        self.names: Names = outer.names if outer is not None else Names()
        self.titles: Names = outer.titles if outer is not None else Names()
        self.layers: list[Layer] = []
        self.captures: dict[Value, Value] = {}  # a body's inputs, by the outer values that they stand for
        self.made: dict[Any, Value] = {}  # values that several operators share, by a key
        self._own: set[Value] = set()

    def constant(self, value: Any, dtype: Any = None, like: str = "constant") -> Value:
        """Return a constant. Equal small constants are one."""
        array = np.asarray(value, dtype)
        key = ("constant", array.dtype.str, array.shape, array.tobytes()) if array.size <= 16 else None
        found = self.made.get(key)
        if found is None:
            found = Value(self.names.free(like), constant=array)
            if key is not None:
                self.made[key] = found
        return found

    def layer(
        self, op: str, name: str, inputs: Sequence[Value | None], count: int, like: str, attributes: dict[str, Any]
    ) -> list[Value]:
        """Add a layer, and return its outputs. Raises InferenceError."""
        outputs = [Value(self.names.free(like)) for _ in range(count)]
        given = [None if value is None else self.local(value) for value in inputs]
        while given and given[-1] is None:
            given.pop()
        layer = Layer(op, self.titles.free(name), given, outputs, attributes)
        layer.infer_outputs()
        self._own.update(outputs)
        self.layers.append(layer)
        return outputs

    def local(self, value: Value) -> Value:
        """Return a value as this model reads it: one of an outer model becomes an input of this one."""
        if value in self._own or value.constant is not None or self.outer is None:
            return value
        found = self.captures.get(value)
        if found is None:
            outer = self.outer.local(value)
            spec = outer.spec
            found = self.captures[value] = Value(outer.name, spec.dtype, spec.shape, spec.kind)
            self._own.add(found)
        return found

    def input(self, like: str, dtype: DataType, shape: Any) -> Value:
        """Return a new input."""
        value = Value(self.names.free(like), dtype, shape)
        self._own.add(value)
        return value
