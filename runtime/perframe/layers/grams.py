"""Counts of n-grams. A word is a string or a number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from perframe.errors import InferenceError
from perframe.ir.attributes import Between, Natural, Positive
from perframe.ir.declaration import Known, layer
from perframe.ir.sizes.partial import Dim, PartialTensor
from perframe.ir.sizes.size import at_least, at_most
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class Gram:
    """Words that follow each other, the output column that counts them, and their weight."""

    words: tuple[Any, ...]
    column: int
    weight: float


@dataclass(frozen=True)
class Counting:
    """A count of `grams` in rows of `length` words.

    Each gram is searched with every distance between its words up to `reach`; a gram of a single word has no distance.
    Each gram that is found adds its weight to its column; with `once` a gram adds its weight at most once.
    """

    rows: int
    length: int
    columns: int
    grams: tuple[Gram, ...]
    reach: int
    once: bool


@layer()
def TfIdfVectorizer(
    x: PartialTensor,
    *,
    mode: Literal["TF", "IDF", "TFIDF"],
    ngram_indexes: Sequence[Natural],
    ngram_counts: Sequence[Natural],
    max_skip_count: Annotated[int, Between(0, 2**62)],
    min_gram_length: Positive,
    max_gram_length: Positive,
    pool_int64s: Sequence[int] = (),
    pool_strings: Sequence[str] = (),
    weights: Sequence[float] = (),
) -> PartialTensor:
    if bool(pool_int64s) == bool(pool_strings):
        raise InferenceError("TfIdfVectorizer needs either pool_int64s or pool_strings")
    if (x.dtype is DataType.STRING) != bool(pool_strings):
        raise InferenceError(f"{x} and the pool of n-grams do not have the same type")
    if not ngram_indexes:
        raise InferenceError("ngram_indexes must name the output's columns, from 0")
    if weights and len(weights) != len(ngram_indexes):
        raise InferenceError(f"{len(weights)} weights do not fit {len(ngram_indexes)} n-grams")
    if max_gram_length < min_gram_length:
        raise InferenceError(f"min_gram_length {min_gram_length} is more than max_gram_length {max_gram_length}")
    lengths = itertools.pairwise([*ngram_counts, len(pool_int64s) + len(pool_strings)])
    if sum((end - begin) // length for length, (begin, end) in enumerate(lengths, 1)) > len(ngram_indexes):
        raise InferenceError(f"{len(ngram_indexes)} ngram_indexes do not fit the pool of n-grams")
    if x.shape is not None and len(x.shape) > 2:
        raise InferenceError(f"{x} is not a sequence or a batch of sequences")
    columns: tuple[Dim, ...] = (max(ngram_indexes) + 1,)
    if x.shape is None:
        return x.with_shape(None, DataType.FLOAT32)
    return x.with_shape((*x.shape[:-1], *columns), DataType.FLOAT32)


@TfIdfVectorizer.form
def _tf_idf(inputs: Sequence[Known], outputs: Sequence[Known], **attributes: Any) -> Counting:
    shape = inputs[0].shape
    length = shape[-1] if shape else 1
    grams, columns, mode = tuple(_pool(attributes)), max(attributes["ngram_indexes"]) + 1, attributes["mode"]
    rows = math.prod(shape[:-1])
    reach = at_most(attributes["max_skip_count"] + 1, at_least(length, 1))  # no two words are further apart
    return Counting(rows, length, columns, grams, reach, mode == "IDF")


def _pool(attributes: Mapping[str, Any]) -> list[Gram]:
    """Return the n-grams of the pool that have a wanted length. Of equal n-grams only the last one counts."""
    items, columns = attributes["pool_int64s"] or attributes["pool_strings"], attributes["ngram_indexes"]
    weights = attributes["weights"] if attributes["mode"] != "TF" else ()
    bounds = [*attributes["ngram_counts"], len(items)]
    pool, number = dict[tuple[Any, ...], Gram](), 0
    for length, (begin, end) in enumerate(itertools.pairwise(bounds), 1):
        for at in range(begin, end - length + 1, length):
            if attributes["min_gram_length"] <= length <= attributes["max_gram_length"]:
                words = tuple(items[at : at + length])
                pool[words] = Gram(words, columns[number], weights[number] if weights else 1.0)
            number += 1
    return list(pool.values())
