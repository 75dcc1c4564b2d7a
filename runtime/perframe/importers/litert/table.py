"""The table of LiteRT's operators: an adapter each. Each file of `families` adds those of a group."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence

from perframe.importers.litert.node import LiteRTNode
from perframe.ir import Value
from perframe.safety.records import dataclass

Results = Value | Sequence[Value]
Adapter = Callable[[LiteRTNode], Results]


@dataclass(frozen=True)
class ImportRule:
    """How an operator is imported. With `moves` it only moves or chooses elements, and so takes quantized numbers."""

    adapter: Adapter
    family: str
    moves: bool


_TABLE: dict[str, ImportRule] = {}


def operator(*names: str, moves: bool = False) -> Callable[[Adapter], Adapter]:
    """Declare the adapter of these operators: it adds layers, and returns its results."""

    def declare(adapter: Adapter) -> Adapter:
        for name in names:
            assert name not in _TABLE, f"{name} is declared twice"
            _TABLE[name] = ImportRule(adapter, adapter.__module__.rpartition(".")[2], moves)
        return adapter

    return declare


def rows(
    words: Mapping[str, str], adapter: Callable[[LiteRTNode, str], Results], family: str, moves: bool = False
) -> None:
    """Declare operators that differ in one word, such as the name of their layer: `words` has it by operator."""
    for name, word in words.items():
        assert name not in _TABLE, f"{name} is declared twice"
        _TABLE[name] = ImportRule(_with(adapter, word), family.rpartition(".")[2], moves)


def _with(adapter: Callable[[LiteRTNode, str], Results], word: str) -> Adapter:
    return lambda node: adapter(node, word)


@functools.cache
def table() -> Mapping[str, ImportRule]:
    """All entries, by the operator's name in the schema, or the name of a custom operator."""
    from perframe.importers.litert import families

    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"{families.__name__}.{module.name}")
    return _TABLE
