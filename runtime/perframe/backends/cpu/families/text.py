"""Strings on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
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
    """Drop stop words. If no word is left, return one empty string."""
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


_COMPUTE: dict[str, Callable[[Sequence[Any], Attributes], list[Any]]] = {
    "StringConcat": _concat,
    "StringSplit": _split,
    "StringNormalizer": _normalize,
    "RegexFullMatch": _full_match,
}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute by operator."""
    return _COMPUTE[layer.op](inputs, layer.declaration.with_defaults(layer.attributes))
