"""N-grams of numbers and of strings: skips, weights, columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import perframe as pf
from perframe.testing import Case, Draw, check
from perframe.testing.cases import Array

draw = Draw(97)

WORDS = {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]}

LONG = {
    "ngram_counts": [0, 2, 6],
    "ngram_indexes": [0, 1, 3, 1, 2, 0],
    "pool_int64s": [0, 1, 0, 1, 1, 2, 0, 1, 2, 2, 1, 0],
}


def tf_idf(name: str, x: Array, **attributes: Any) -> Case:
    given = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0} | WORDS | attributes
    return Case(name, "TfIdfVectorizer", [x], given, constants=[], reference="onnxruntime")


ROWS = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])
CASES = [
    *(tf_idf(f"{t} {m}", ROWS.astype(t), mode=m) for t in ("int32", "int64") for m in ("TF", "IDF", "TFIDF")),
    *(tf_idf(f"skip {count}", ROWS, max_skip_count=count) for count in (1, 5)),
    tf_idf("bigrams", ROWS, min_gram_length=2, max_skip_count=5),
    tf_idf("words alone", ROWS, max_gram_length=1, max_skip_count=5),
    tf_idf("one row", ROWS.reshape(-1), max_skip_count=3),
    tf_idf("columns", ROWS, ngram_indexes=[6, 0, 9, 1, 2, 3, 4], mode="TFIDF", weights=[1.0, 2, 3, 4, 5, 6, 7]),
    tf_idf("trigrams", draw(7, 37, low=0, high=2, dtype=np.int64), max_gram_length=3, max_skip_count=2, **LONG),
    tf_idf("one word", ROWS[:, :1], max_skip_count=3),
    tf_idf("many rows", draw(131, 5, low=2, high=6, dtype=np.int32)),
    tf_idf("seen", ROWS, mode="IDF", weights=[1.0, 2, 3, 4, 5, 6, 7], max_skip_count=5),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_grams(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


def test_words_are_no_further_apart_than_their_row_is_long(backend: str, backend_context: Any) -> None:
    few, many = (tf_idf("", ROWS, max_skip_count=count) for count in (5, 2**40))
    made = [pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context)["y0"] for case in (few, many)]
    np.testing.assert_array_equal(made[1], made[0])


def test_grams_of_strings(backend: str, backend_context: Any) -> None:
    attributes = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1}
    attributes |= {"ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2], "pool_strings": ["a", "b", "a", "c"]}
    given = [helper.make_tensor_value_info("x", TensorProto.STRING, (5,))]
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    made = pf.run(proto, {"x": np.array(["a", "b", "c", "a", "c"], object)}, backend=backend, ctx=backend_context)["y"]
    assert made.dtype == np.float32 and made.tolist() == [2, 1, 2]
