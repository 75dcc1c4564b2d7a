"""The adapters of layer kinds. A kind without one becomes the layer of its name, with its arguments as attributes."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence

from perframe.importers.sentis.kinds import kinds
from perframe.importers.sentis.node import SentisNode
from perframe.ir import Value

Results = Value | Sequence[Value]
Adapter = Callable[[SentisNode], Results]

_TABLE: dict[str, Adapter] = {}


def adapter(*names: str) -> Callable[[Adapter], Adapter]:
    """Declare the adapter of these kinds: it adds layers, and returns their results."""

    def declare(function: Adapter) -> Adapter:
        for name in names:
            assert name in kinds() and name not in _TABLE, name
            _TABLE[name] = function
        return function

    return declare


def _same(node: SentisNode) -> Results:
    kind = node.kind
    inputs: list[Value | None] = [*node.all()] if kind.is_variadic else [node.optional(one.name) for one in kind.inputs]
    return node.several(len(kind.outputs), kind.name, *inputs, **node.attributes())


def find_adapter(name: str) -> Adapter:
    """Return the adapter of a kind."""
    return adapters().get(name, _same)


@functools.cache
def adapters() -> Mapping[str, Adapter]:
    """All declared adapters, by the kind. The other kinds are layers of the same name."""
    from perframe.importers.sentis import families

    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"{families.__name__}.{module.name}")
    return _TABLE
