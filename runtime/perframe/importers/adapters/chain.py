"""Chains: adapters of composite operators replace one node by several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perframe.importers.adapters import node_like

if TYPE_CHECKING:
    from perframe.importers.onnx import Importer, Node
    from perframe.sizes.partial import PartialTensor


class Chain:
    """The nodes that replace one node, added one after the other."""

    def __init__(self, node: Node, graph: Importer) -> None:
        self.node, self.graph, self.nodes = node, graph, list[Any]()

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        return self.several(1, op, *inputs, **attributes)[0]

    def several(self, count: int, op: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with `count` outputs, and return their names."""
        names = [self.graph.value_name(self.node.outputs[0]) for _ in range(count)]
        self.nodes.append(node_like(self.node, op, list(inputs), names, **attributes))
        return names

    def inputs(self, count: int) -> list[str]:
        """Return the names of the node's first `count` inputs; the name of an absent one is ""."""
        return (self.node.inputs + [""] * count)[:count]

    def get(self, attribute: str, default: Any) -> Any:
        """Return an attribute of the node, or the default."""
        return self.node.attributes.get(attribute, default)

    def refuse(self, *attributes: str) -> None:
        """Raise NotImplementedError if the node sets one of these attributes."""
        for name in attributes:
            if self.node.attributes.get(name):
                raise NotImplementedError(f"{name}={self.node.attributes[name]!r} is not supported")

    def wants(self, index: int) -> bool:
        """Whether the node has this output."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index])

    def spec(self, name: str) -> PartialTensor:
        """Return the spec of a value that goes into the node. Raises NotImplementedError if there is none."""
        found = self.graph.find(name)
        if found is None:
            raise NotImplementedError(f"its input {name!r} is unknown")
        return found

    def rank(self, name: str) -> int:
        """Return the rank of a value. Raises NotImplementedError if it is unknown."""
        shape = self.spec(name).shape
        if shape is None:
            raise NotImplementedError(f"the rank of its input {name!r} is unknown")
        return len(shape)

    def size(self, name: str, axis: int) -> int:
        """Return a dim of a value. Raises NotImplementedError if it is unknown."""
        shape = self.spec(name).shape
        size = None if shape is None else shape[axis]
        if not isinstance(size, int):
            raise NotImplementedError(f"dim {axis} of its input {name!r} is unknown")
        return size

    def value(self, name: str) -> NDArray[Any]:
        """Return the value of an input. Raises NotImplementedError if it is not a constant."""
        self.graph.find(name)
        if name not in self.graph.constants:
            raise NotImplementedError(f"its input {name!r} is not a constant")
        return self.graph.constants[name]

    def ints(self, *values: int) -> str:
        """Add a constant list of integers."""
        return self.graph.constant(values, np.int64)

    def number(self, value: Any, like: str = "") -> str:
        """Add a constant with the dtype of the value `like`, else float32."""
        return self.graph.constant(value, self.spec(like).dtype.numpy if like else np.float32)

    def dims(self, name: str, axis: int) -> str:
        """Add nodes that give a dim as a scalar at run time."""
        return self("Squeeze", self("Shape", name, start=axis, end=axis + 1 or None))

    def sum(self, *names: str) -> str:
        """Add nodes that sum up the values with a name."""
        present = [name for name in names if name]
        total = present[0]
        for name in present[1:]:
            total = self("Add", total, name)
        return total

    def done(self, *results: str) -> list[Node]:
        """Return the nodes; `results` become the outputs of the replaced node. Nodes that no output needs are left out.

        Raises NotImplementedError if an output has no result.
        """
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
