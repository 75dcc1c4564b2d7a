"""A model under construction: layers, constants, and the spec of each value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.model import Layer, Names
from perframe.sizes.partial import PartialTensor
from perframe.tensor import DataType

Array = NDArray[Any]


class Builder:
    """The layers of one model or body. Bodies share the names of values and layers with the model around them."""

    def __init__(self, outer: Builder | None = None) -> None:
        self.outer = outer
        self.names: Names = outer.names if outer is not None else Names()
        self.titles: Names = outer.titles if outer is not None else Names()
        self.layers: list[Layer] = []
        self.constants: dict[str, Array] = {}
        self.specs: dict[str, PartialTensor] = {}
        self.captures: dict[str, PartialTensor] = {}  # the values of outer models that a body reads
        self.made: dict[Any, str] = {}  # values that several operators share, by a key

    def constant(self, value: Any, dtype: Any = None, like: str = "constant") -> str:
        """Add a constant, and return its name. Equal small constants are one."""
        array = np.asarray(value, dtype)
        key = ("constant", array.dtype.str, array.shape, array.tobytes()) if array.size <= 16 else None
        if key in self.made:
            return self.made[key]
        name = self.names.free(like)
        self.constants[name], self.specs[name] = array, PartialTensor.of(array)
        if key is not None:
            self.made[key] = name
        return name

    def layer(
        self, op: str, name: str, inputs: list[str], count: int, like: str, attributes: dict[str, Any]
    ) -> list[str]:
        """Add a layer, and return the names of its outputs. Raises InferenceError."""
        outputs = [self.names.free(like) for _ in range(count)]
        while inputs and not inputs[-1]:
            inputs.pop()
        layer = Layer(op, self.titles.free(name), inputs, outputs, attributes)
        results = layer.infer([self.find(value) if value else None for value in inputs])
        self.specs.update(zip(outputs, results, strict=False))
        self.layers.append(layer)
        return outputs

    def find(self, name: str) -> PartialTensor:
        """Return the spec of a value. One of an outer model becomes an input of this one, or a constant of it."""
        if name in self.specs:
            return self.specs[name]
        assert self.outer is not None, name
        found = self.outer.find(name)
        if name in self.outer.constants:
            self.constants[name] = self.outer.constants[name]
            self.specs[name] = found
        else:
            self.specs[name] = self.captures[name] = PartialTensor(found.dtype, found.shape, kind=found.kind)
        return self.specs[name]

    def input(self, like: str, dtype: DataType, shape: Any) -> str:
        """Add an input, and return its name."""
        name = self.names.free(like)
        self.specs[name] = PartialTensor(dtype, shape)
        return name

    def rename(self, old: str, new: str) -> None:
        """Give a value that a layer makes another name."""
        for layer in self.layers:
            layer.inputs = [new if name == old else name for name in layer.inputs]
            layer.outputs = [new if name == old else name for name in layer.outputs]
            if old in layer.attributes.get("captures", ()):
                raise AssertionError(old)
        self.specs[new] = self.specs.pop(old)
