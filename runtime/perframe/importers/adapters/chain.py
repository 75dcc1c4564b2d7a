"""Chains: adapters of composite operators replace one node by several."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.importers.filling import settle
from perframe.importers.onnx_node import Node, constant
from perframe.ir import Value
from perframe.ir.sizes.partial import PartialTensor


class Chain:
    """The nodes that replace one node, added one after the other."""

    def __init__(self, node: Node) -> None:
        self.node, self.nodes = node, list[Node]()
        self._made: set[Value] = set()

    def __call__(self, op: str, *inputs: Value | None, **attributes: Any) -> Value:
        """Add a node, and return its output."""
        return self.several(1, op, *inputs, **attributes)[0]

    def several(self, count: int, op: str, *inputs: Value | None, **attributes: Any) -> list[Value]:
        """Add a node with `count` outputs, and return them."""
        made = [self.node.fresh() for _ in range(count)]
        self.nodes.append(self.node.like(op, list(inputs), [*made], **attributes))
        self._made.update(made)
        return made

    def inputs(self, count: int) -> list[Value | None]:
        """Return the node's first `count` inputs, None for each absent one."""
        return (self.node.inputs + [None] * count)[:count]

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
        return index < len(self.node.outputs) and self.node.outputs[index] is not None

    def spec(self, value: Value | None) -> PartialTensor:
        """Return the spec of a value that goes into the node. Raises NotImplementedError if there is none."""
        if value is None:
            raise NotImplementedError("an input that it needs is missing")
        if value in self._made:
            raise NotImplementedError(f"its input {value.name!r} is unknown")
        return value.spec

    def rank(self, value: Value | None) -> int:
        """Return the rank of a value. Raises NotImplementedError if it is unknown."""
        shape = self.spec(value).shape
        if shape is None:
            raise NotImplementedError(f"the rank of its input {_name(value)!r} is unknown")
        return len(shape)

    def size(self, value: Value | None, axis: int) -> int:
        """Return a dim of a value. Raises NotImplementedError if it is unknown."""
        shape = self.spec(value).shape
        size = None if shape is None else shape[axis]
        if not isinstance(size, int):
            raise NotImplementedError(f"dim {axis} of its input {_name(value)!r} is unknown")
        return size

    def value(self, value: Value | None) -> NDArray[Any]:
        """Return the array of an input. Raises NotImplementedError unless it is a constant, reshaped or not."""
        made = None if value is None else value.producer
        source = made.input(0) if made is not None and made.op == "Reshape" else value
        if value is None or source is None or source.constant is None:
            raise NotImplementedError(f"its input {_name(value)!r} is not a constant")
        settle([source.constant])
        shape = value.spec.shape
        if source is value or shape is None or not shape.is_static:
            return source.constant
        return source.constant.reshape(shape.to_shape())

    def ints(self, *values: int) -> Value:
        """Return a constant list of integers."""
        return constant(values, np.int64)

    def number(self, value: Any, like: Value | None = None) -> Value:
        """Return a constant with the dtype of the value `like`, else float32."""
        return constant(value, np.float32 if like is None else self.spec(like).dtype.numpy)

    def dims(self, value: Value | None, axis: int) -> Value:
        """Add nodes that give a dim as a scalar at run time."""
        return self("Squeeze", self("Shape", value, start=axis, end=axis + 1 or None))

    def sum(self, *values: Value | None) -> Value:
        """Add nodes that sum up the values that are not absent."""
        present = [value for value in values if value is not None]
        total = present[0]
        for value in present[1:]:
            total = self("Add", total, value)
        return total

    def done(self, *results: Value | None) -> list[Node]:
        """Return the nodes; `results` become the outputs of the replaced node. Nodes that no output needs are left out.

        Raises NotImplementedError if an output has no result.
        """
        replaced: dict[Value | None, Value | None] = {}
        for index, output in enumerate(self.node.outputs):
            if output is None:
                continue
            result = results[index] if index < len(results) else None
            if result is None:
                raise NotImplementedError(f"its output {index} is not supported")
            if result in self._made and result not in replaced:
                replaced[result] = output
            else:
                self.nodes.append(self.node.like("Identity", [result], [output]))
        needed, kept = {value for value in self.node.outputs if value is not None}, list[Node]()
        for node in reversed(self.nodes):
            node.outputs = [replaced.get(value, value) for value in node.outputs]
            node.inputs = [replaced.get(value, value) for value in node.inputs]
            if not needed.isdisjoint(node.outputs):
                needed.update(value for value in node.inputs if value is not None)
                kept.append(node)
        return kept[::-1]


def _name(value: Value | None) -> str:
    return "" if value is None else value.name
