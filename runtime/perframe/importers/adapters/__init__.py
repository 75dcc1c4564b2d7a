"""Adapters bring older forms of ONNX operators to the newest opset, and replace composites by other operators.

An adapter changes the node, or returns the nodes that replace it. Each file holds a group of families.
`importers/adapter_index.py` tells which files a model needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from perframe.importers.adapter_index import ADAPTERS
from perframe.importers.onnx_node import Node, constant
from perframe.importers.onnx_values import data_type

Adapter = Callable[[Node], list[Node] | None]

_ADAPTERS: dict[str, list[partial[list[Node] | None]]] = {}

# hints of old opsets to training frameworks; inference does not need them
IGNORED_ATTRIBUTES = {"consumed_inputs"}


def adapter(*ops: str, before: int = 10**6) -> Callable[[Adapter], Adapter]:
    """Declare an adapter for these operators, in opsets before the given one."""

    def declare(function: Adapter) -> Adapter:
        for op in ops:
            _ADAPTERS.setdefault(op, []).append(partial(_adapted, function, before))
        return function

    return declare


def _adapted(function: Adapter, before: int, node: Node) -> list[Node] | None:
    return function(node) if node.opset < before else None


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


@cache
def adapters_of(op: str) -> Sequence[Adapter]:
    """Return the adapters of an operator, in the order in which they are declared. It imports only their files."""
    for stem, operators in ADAPTERS.items():
        if op in operators.split():
            import_module(f"{__name__}.{stem}")
    return tuple(_ADAPTERS.get(op, ()))
