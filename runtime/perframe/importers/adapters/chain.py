"""Several nodes in the place of one, as adapters of composite operators write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perframe.importers.adapters import node_like

if TYPE_CHECKING:
    from perframe.importers.onnx import Importer, Node
    from perframe.tensor.partial import PartialTensor


class Chain:
    """Nodes in the place of one, made one after the other."""

    def __init__(self, node: Node, graph: Importer) -> None:
        self.node, self.graph, self.nodes = node, graph, list[Any]()

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; returns its output."""
        return self.several(1, op, *inputs, **attributes)[0]

    def several(self, count: int, op: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node of more than one output."""
        names = [self.graph.value_name(self.node.outputs[0]) for _ in range(count)]
        self.nodes.append(node_like(self.node, op, list(inputs), names, **attributes))
        return names

    def inputs(self, count: int) -> list[str]:
        """The node's inputs; those that it leaves out have no name."""
        return (self.node.inputs + [""] * count)[:count]

    def get(self, attribute: str, default: Any) -> Any:
        """An attribute."""
        return self.node.attributes.get(attribute, default)

    def refuse(self, *attributes: str) -> None:
        """Attributes that nothing here does."""
        for name in attributes:
            if self.node.attributes.get(name):
                raise NotImplementedError(f"{name}={self.node.attributes[name]!r} is not supported")

    def wants(self, index: int) -> bool:
        """Whether the model asks for this output."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index])

    def spec(self, name: str) -> PartialTensor:
        """What is known of a value that goes into the node."""
        found = self.graph.find(name)
        if found is None:
            raise NotImplementedError(f"nothing is known of its input {name!r}")
        return found

    def rank(self, name: str) -> int:
        """How many dims a value has."""
        shape = self.spec(name).shape
        if shape is None:
            raise NotImplementedError(f"the rank of its input {name!r} is unknown")
        return len(shape)

    def size(self, name: str, axis: int) -> int:
        """A dim that has to be known."""
        shape = self.spec(name).shape
        size = None if shape is None else shape[axis]
        if not isinstance(size, int):
            raise NotImplementedError(f"dim {axis} of its input {name!r} is unknown")
        return size

    def value(self, name: str) -> NDArray[Any]:
        """An input that has to be a constant."""
        self.graph.find(name)
        if name not in self.graph.constants:
            raise NotImplementedError(f"its input {name!r} is no constant")
        return self.graph.constants[name]

    def ints(self, *values: int) -> str:
        """A constant list of whole numbers."""
        return self.graph.constant(values, np.int64)

    def number(self, value: Any, like: str = "") -> str:
        """A constant of an input's dtype."""
        return self.graph.constant(value, self.spec(like).dtype.numpy if like else np.float32)

    def dims(self, name: str, axis: int) -> str:
        """A dim as a scalar, at run time."""
        return self("Squeeze", self("Shape", name, start=axis, end=axis + 1 or None))

    def sum(self, *names: str) -> str:
        """The sum of those that are there."""
        present = [name for name in names if name]
        total = present[0]
        for name in present[1:]:
            total = self("Add", total, name)
        return total

    def done(self, *results: str) -> list[Node]:
        """The nodes, of which these values are the node's outputs. What no output needs is left out."""
        renamed: dict[str, str] = {}
        made = {name for node in self.nodes for name in node.outputs}
        for index, output in enumerate(self.node.outputs):
            if not output:
                continue
            if index >= len(results) or not results[index]:
                raise NotImplementedError(f"its output {index} is not supported")
            if results[index] in made and results[index] not in renamed:
                renamed[results[index]] = output
            else:
                self.nodes.append(node_like(self.node, "Identity", [results[index]], [output]))
        needed, kept = {name for name in self.node.outputs if name}, list[Any]()
        for node in reversed(self.nodes):
            node.outputs = [renamed.get(name, name) for name in node.outputs]
            node.inputs = [renamed.get(name, name) for name in node.inputs]
            if needed.intersection(node.outputs):
                needed.update(node.inputs)
                kept.append(node)
        return kept[::-1]
