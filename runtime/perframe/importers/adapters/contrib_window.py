"""Adapters of com.microsoft: the positions of cached keys, and caches that hold the last keys alone.

Positions are int32, as the node's lengths are: a GPU has no larger integers.
"""

from __future__ import annotations

import numpy as np

from perframe.importers.adapters.chain import Chain
from perframe.importers.onnx_node import constant
from perframe.ir import Value
from perframe.tensor import DataType

NEVER = (1 << 31) - 1  # the position of a row without a key: after all queries


def number(value: int) -> Value:
    """Return a constant number."""
    return constant(value, np.int32)


def size(chain: Chain, x: Value | None, axis: int) -> Value:
    """Add nodes that give a dim."""
    return chain("Cast", chain.dims(x, axis), to=DataType.INT32)


def count(chain: Chain, end: Value) -> Value:
    """Add nodes for the numbers from 0 up to, and without, `end`."""
    return chain("Range", number(0), end, number(1))


class WindowedCache:
    """A cache of the last keys or values, with rows for some more than the `window`. Each line of the batch has seen
    `before` keys before this run, and `after` with the `new` ones.

    The keys lie in the first rows, in their order. A run that finds no room for its keys moves the last `window` ones
    to the front. An empty cache gets its rows at the first run. Source: onnxruntime's `sliding_window_cache`.
    """

    def __init__(self, chain: Chain, past: Value, new: Value, before: Value, after: Value) -> None:
        self._chain = chain
        self._rows, self._window = size(chain, past, 2), number(chain.get("local_window_size", -1))
        self._capacity = chain("Max", self._rows, self._window)
        held, kept = self._held(before), self._held(after)
        self._before, self._first = self._column(before), self._column(chain("Sub", before, held))
        rows, tokens = count(chain, self._rows), size(chain, new, 2)
        is_key = chain("Less", rows, self._column(held))
        old = chain("Where", is_key, chain("Add", rows, self._first), number(NEVER))
        self.positions = chain("Concat", old, chain("Add", count(chain, tokens), self._before), axis=-1)
        self._kept = self._places(self._column(chain("Sub", after, kept)), chain("Add", self._rows, tokens))

    def joined(self, past: Value, new: Value) -> Value:
        """All that queries may read."""
        return self._chain("Concat", past, new, axis=2)

    def next(self, joined: Value) -> Value:
        """The rows of the next cache."""
        chain = self._chain
        batch, heads, width = (chain("Shape", joined, start=at, end=at + 1) for at in (0, 1, 3))
        lines = chain("Cast", chain("Squeeze", chain("Mul", batch, heads)), to=DataType.INT32)
        firsts = chain("Mul", count(chain, lines), size(chain, joined, 2))
        firsts = chain("Reshape", firsts, chain("Concat", batch, heads, chain.ints(1), axis=0))
        places = chain("Add", chain("Unsqueeze", self._kept, chain.ints(1)), firsts)
        return chain("Gather", chain("Reshape", joined, chain("Concat", chain.ints(-1), width, axis=0)), places, axis=0)

    def _held(self, seen: Value) -> Value:
        """How many of the keys are in the cache."""
        chain = self._chain
        laps = chain("Add", chain("Sub", self._capacity, self._window), number(1))
        since = chain("Mod", chain("Sub", chain("Sub", seen, self._capacity), number(1)), laps)
        fits = chain("LessOrEqual", seen, self._capacity)
        return chain("Where", fits, seen, chain("Add", self._window, since))

    def _places(self, first: Value, rows: Value) -> Value:
        """Where the keys from position `first` on lie among all rows. A row without a key takes any row."""
        chain = self._chain
        positions = chain("Add", count(chain, self._capacity), first)
        old = chain("Sub", positions, self._first)
        new = chain("Add", chain("Sub", positions, self._before), self._rows)
        places = chain("Where", chain("Less", positions, self._before), old, new)
        return chain("Min", chain("Max", places, number(0)), chain("Sub", rows, number(1)))

    def _column(self, numbers: Value) -> Value:
        return self._chain("Unsqueeze", numbers, self._chain.ints(1))
