"""Some layers of a model, to be planned together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from perframe.ir.layer import Layer, Value
from perframe.ir.model import Model
from perframe.safety.records import dataclass
from perframe.tensor import Array


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A view of layers in run order, the values that they read from outside, and the values that are read outside."""

    name: str
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    layers: Sequence[Layer]
    constants: Mapping[Value, Array] = field(init=False)

    def __post_init__(self) -> None:
        read = dict.fromkeys(value for layer in self.layers for value in layer.operands)
        read.update(dict.fromkeys(self.outputs))
        found = {value: value.constant for value in read}
        object.__setattr__(self, "constants", {value: array for value, array in found.items() if array is not None})

    @classmethod
    def of(cls, model: Model) -> Subgraph:
        """Return all layers of a model. Plans bind tensors only: a sequence that is given back is an input."""
        inputs, outputs = ([v for v in values if v.kind == "tensor"] for values in (model.inputs, model.outputs))
        return cls(model.name, inputs, outputs, model.layers)

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return [value.name for value in self.outputs]

    @property
    def decisive_inputs(self) -> list[Value]:
        """The inputs whose values decide shapes: a layer must know these values before it can be planned."""
        needed: set[Value] = set()
        for layer in reversed(self.layers):
            if not needed.isdisjoint(layer.results) and layer.declaration.reads_values:
                needed.update(layer.operands)
            host = (value for index, value in enumerate(layer.inputs) if layer.declaration.is_host(index))
            needed.update(value for value in host if value is not None)
        return [value for value in self.inputs if value in needed]
