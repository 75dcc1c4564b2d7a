"""Strings and n-grams on the CPU."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.layers.text import regular_expression

Attributes = Mapping[str, Any]


def _objects(values: Sequence[Any], shape: Sequence[int]) -> Any:
    """A tensor of strings."""
    result = np.empty(len(values), object)
    result[:] = values
    return result.reshape(tuple(shape))


def _concat(inputs: Sequence[Any], attributes: Attributes) -> list[Any]:
    a, b = np.broadcast_arrays(*inputs)
    return [_objects([str(x) + str(y) for x, y in zip(a.flat, b.flat, strict=True)], a.shape)]


def _split(inputs: Sequence[Any], attributes: Attributes) -> list[Any]:
    x, limit = inputs[0], attributes["maxsplit"]
    parts = [str(text).split(attributes["delimiter"] or None, -1 if limit is None else limit) for text in x.flat]
    counts = np.array([len(part) for part in parts], np.int64)
    width = int(counts.max(initial=0))
    flat = [text for part in parts for text in (*part, *[""] * (width - len(part)))]
    return [_objects(flat, (*x.shape, width)), counts.reshape(x.shape)]


_CASES: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}


def _normalize(inputs: Sequence[Any], attributes: Attributes) -> list[Any]:
    """Words that are stop words go; if none is left, one empty string is the result."""
    x = inputs[0]
    fold: Callable[[str], str] = str if attributes["is_case_sensitive"] else str.lower
    stopwords = {fold(word) for word in attributes["stopwords"]}
    change = _CASES[attributes["case_change_action"]]
    kept = [change(text) for text in map(str, x.flat) if fold(text) not in stopwords] or [""]
    return [_objects(kept, (*x.shape[:-1], len(kept)))]


def _full_match(inputs: Sequence[Any], attributes: Attributes) -> list[Any]:
    expression = regular_expression(attributes["pattern"])
    found = [expression.fullmatch(str(text)) is not None for text in inputs[0].flat]
    return [np.array(found, bool).reshape(inputs[0].shape)]


def _pool(attributes: Attributes) -> dict[tuple[Any, ...], int]:
    """For each n-gram of a wanted length, its number in the pool."""
    items = attributes["pool_int64s"] or attributes["pool_strings"]
    bounds = [*attributes["ngram_counts"], len(items)]
    pool, number = {}, 0
    for length, (begin, end) in enumerate(itertools.pairwise(bounds), 1):
        for at in range(begin, end - length + 1, length):
            if attributes["min_gram_length"] <= length <= attributes["max_gram_length"]:
                pool[tuple(items[at : at + length])] = number
            number += 1
    return pool


def _grams(words: Sequence[Any], attributes: Attributes) -> Counter[tuple[Any, ...]]:
    """How often each n-gram occurs, at every distance between its words; those of one word have none."""
    found: Counter[tuple[Any, ...]] = Counter()
    for length in range(attributes["min_gram_length"], attributes["max_gram_length"] + 1):
        for distance in range(1, attributes["max_skip_count"] + 2 if length > 1 else 2):
            reach = distance * (length - 1) + 1
            found.update(tuple(words[at : at + reach : distance]) for at in range(len(words) - reach + 1))
    return found


def _tf_idf(inputs: Sequence[Any], attributes: Attributes) -> list[Any]:
    x, columns, mode = inputs[0], attributes["ngram_indexes"], attributes["mode"]
    pool = _pool(attributes)
    weights = attributes["weights"] if mode != "TF" and attributes["weights"] else [1.0] * len(columns)
    rows = x.reshape(-1, x.shape[-1] if x.ndim else 1).tolist() if x.ndim == 2 else [x.reshape(-1).tolist()]
    counts = np.zeros((len(rows), max(columns) + 1), np.float32)
    for row, words in enumerate(rows):
        for gram, count in _grams(words, attributes).items():
            if gram in pool:
                number = pool[gram]
                counts[row, columns[number]] += weights[number] * (min(count, 1) if mode == "IDF" else count)
    return [counts.reshape(*x.shape[:-1], counts.shape[1])]


_COMPUTE: dict[str, Callable[[Sequence[Any], Attributes], list[Any]]] = {
    "StringConcat": _concat,
    "StringSplit": _split,
    "StringNormalizer": _normalize,
    "RegexFullMatch": _full_match,
    "TfIdfVectorizer": _tf_idf,
}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """By operator."""
    return _COMPUTE[layer.op](inputs, layer.declaration.bind(layer.attributes))
