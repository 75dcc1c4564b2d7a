"""N-grams on the CPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.grams import Counting


def compute(layer: LayerLike, form: Counting, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Count row by row: find all n-grams of a row, then look up those of the form."""
    lengths = {len(gram.words) for gram in form.grams}
    counts = np.zeros((form.rows, form.columns), np.float32)
    for row, words in enumerate(inputs[0].reshape(form.rows, form.length).tolist()):
        found = _occurring(words, lengths, form.reach)
        for gram in form.grams:
            count = found[gram.words]
            counts[row, gram.column] += gram.weight * (min(count, 1) if form.once else count)
    return [counts]


def _occurring(words: Sequence[Any], lengths: set[int], reach: int) -> Counter[tuple[Any, ...]]:
    """The number of times that each n-gram occurs, at any distance between its words up to `reach`."""
    found: Counter[tuple[Any, ...]] = Counter()
    for length in lengths:
        for distance in range(1, reach + 1 if length > 1 else 2):
            extent = distance * (length - 1) + 1
            found.update(tuple(words[at : at + extent : distance]) for at in range(len(words) - extent + 1))
    return found
