"""A node of an ONNX file on its way to a layer."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from perframe.importers.filling import settle
from perframe.ir import Value
from perframe.safety.records import dataclass

if TYPE_CHECKING:
    import onnx


@dataclass(eq=False)
class Node:
    """An operator with its values, in the form of an opset. Adapters change it, or replace it by other nodes."""

    op: str
    name: str
    inputs: list[Value | None]
    outputs: list[Value | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 0
    domain: str = ""
    proto: onnx.NodeProto | None = None  # as it stands in the file; None for a node that an adapter made

    def input(self, index: int) -> Value:
        """Return an input. Raises NotImplementedError if it is absent."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise NotImplementedError(f"its input {index} is missing")
        return value

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the first input."""
        return self.input(0).spec.dtype.numpy

    def settle(self) -> None:
        """Wait for the numbers of its constants, which something is about to read. Raises ModelError."""
        settle(value.constant for value in self.inputs if value is not None)

    def fresh(self) -> Value:
        """Return a value between two nodes that replace this one."""
        return Value(next((value.name for value in self.outputs if value is not None), self.name))

    def like(self, op: str, inputs: list[Value | None], outputs: list[Value | None], **attributes: Any) -> Node:
        """Return a node of the newest opset that replaces this one."""
        return Node(op, f"{self.name}/{op}" if op != self.op else self.name, inputs, outputs, attributes, 10**5)


def constant(value: Any, dtype: Any = None) -> Value:
    """Return a new constant."""
    return Value("constant", constant=np.asarray(value, dtype))
