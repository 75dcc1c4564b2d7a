"""Names of classes, as exporters write them into a model's metadata, and the best classes by name."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from perframe.errors import InputError
from perframe.ir import Model

_KEYS = ("names", "label_names", "labels", "classes", "id2label")  # the first is that of Ultralytics


def labels_of(model: Model) -> list[str]:
    """Return the names of a model's classes, which its metadata lists by their index.

    The entry is "names" (Ultralytics writes a dict of Python there), "label_names", "labels", "classes" or "id2label":
    a dict or list of Python or JSON, or a text with a name a line. Raises InputError for a model without names.
    """
    for key in _KEYS:
        if key in model.metadata:
            return _listed(model.metadata[key], f"the entry {key!r} of {model.name}'s metadata")
    raise InputError(
        f"{model.name} names no classes: its metadata has {', '.join(sorted(model.metadata)) or 'no entries'}, and "
        f"none of {', '.join(_KEYS)}. Give the labels as a list"
    )


def top_labels(scores: ArrayLike, labels: Sequence[str] | Model, k: int = 5) -> list[tuple[str, float]]:
    """Return the best k classes by name, each with its score, best first. `scores` is (classes,), or (1, classes).

    Of equal scores the lower index comes first, and NaN comes last. On the device, `functional.topk` does the same with
    indices. Raises InputError for labels that are not as many as the scores.
    """
    values = np.asarray(scores)
    flat = values.reshape(-1)
    if not values.ndim or flat.size != values.shape[-1]:
        raise InputError(f"scores are (classes,) or (1, classes), not {values.shape}: take the row of one picture")
    names = labels_of(labels) if isinstance(labels, Model) else list(labels)
    if len(names) != flat.size:
        raise InputError(f"{len(names)} labels do not fit {flat.size} scores")
    if k < 1:
        raise InputError(f"k is a number of classes from 1, not {k!r}")
    return [(names[index], float(flat[index])) for index in np.argsort(-flat, kind="stable")[:k]]


def _listed(text: str, where: str) -> list[str]:
    """Return the names in a text, in the order of their indices. Raises InputError if an index has no name."""
    found = _parsed(text)
    if isinstance(found, dict):
        try:
            by_index = {int(index): str(name) for index, name in found.items()}
        except (TypeError, ValueError):
            raise InputError(f"{where} is not a dict of names by index: {text:.80}") from None
        if sorted(by_index) != list(range(len(by_index))):
            raise InputError(f"{where} does not name each index from 0 on: {text:.80}")
        return [by_index[index] for index in range(len(by_index))]
    if isinstance(found, (list, tuple)):
        return [str(name) for name in found]
    return [line.strip() for line in text.splitlines() if line.strip()]


def _parsed(text: str) -> Any:
    """Return what a text of JSON or Python stands for; None if it is neither."""
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    return None
