"""Adapters bring older forms of ONNX operators to the newest opset, and replace composites by other operators.

An adapter changes the node, or returns the nodes that replace it. Each file holds a group of families.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perframe.importers.onnx_node import Node, constant
from perframe.importers.onnx_values import data_type

Adapter = Callable[[Node], list[Node] | None]

_ADAPTERS: dict[str, list[Adapter]] = {}

# hints of old opsets to training frameworks; inference does not need them
IGNORED_ATTRIBUTES = {"consumed_inputs"}


def adapter(*ops: str, before: int = 10**6) -> Callable[[Adapter], Adapter]:
    """Declare an adapter for these operators, in opsets before the given one."""

    def declare(function: Adapter) -> Adapter:
        for op in ops:
            _ADAPTERS.setdefault(op, []).append(lambda node: function(node) if node.opset < before else None)
        return function

    return declare


def to_input(node: Node, attribute: str, position: int, dtype: Any = np.int64) -> None:
    """Turn an attribute into an input, as newer opsets have it."""
    if attribute in node.attributes:
        value = node.attributes.pop(attribute)
        node.inputs += [None] * (position + 1 - len(node.inputs))
        node.inputs[position] = constant(value, dtype)


def to_data_types(node: Node, *names: str) -> None:
    """Turn attributes that are ONNX's numbers of types into DataTypes. Raises ModelError for an unknown number."""
    for name in names:
        number = node.attributes.get(name)
        if isinstance(number, (int, np.integer)):
            node.attributes[name] = data_type(int(number))


@functools.cache
def adapters() -> Mapping[str, Sequence[Adapter]]:
    """Return all adapters by operator, in the order in which they are declared."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return _ADAPTERS
