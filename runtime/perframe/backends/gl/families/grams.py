"""N-grams of numbers on GL."""

from __future__ import annotations

from collections import Counter

import numpy as np

from perframe.backends.gl.lowering.steps import Binding, Call, Tools
from perframe.layers.grams import Counting


def supports(call: Call[Counting]) -> str | None:
    """Supports grams of int32, and rows that fit a shader's rounds."""
    form = call.form
    if any(abs(word) > np.iinfo(np.int32).max for gram in form.grams for word in gram.words):
        return "a gram has a number outside int32"
    rounds = Counter[int]()
    for gram in form.grams:
        rounds[gram.column] += (1 + form.reach) * (1 + form.length * (1 + len(gram.words)))
    most = 4 * max(rounds.values(), default=0)
    return None if most <= call.rounds else f"{most} comparisons for one element are too many for one shader"


def lower(call: Call[Counting], tools: Tools) -> list[Binding]:
    """One kernel. Tables hold the grams in order of their columns, with their words one after the other."""
    form = call.form
    grams = sorted(form.grams, key=lambda gram: gram.column)
    begins = np.cumsum([0, *(len(gram.words) for gram in grams)])
    first = np.searchsorted([gram.column for gram in grams], np.arange(form.columns + 1))
    tables = {
        "G": [word for gram in grams for word in gram.words] or [0],
        "B": begins,
        "C": first,
    }
    given = {name: tools.constant(np.array(table, np.int32)) for name, table in tables.items()}
    given["W"] = tools.constant(np.array([gram.weight for gram in grams] or [0], np.float32))
    return [call.bind("grams", {"X": call.x, **given}, call.y)]
