"""Names of classes from metadata, and the best classes by name."""

from __future__ import annotations

import numpy as np
import pytest

import perframe as pf
from perframe.vision import labels_of, top_labels


def model_with(**metadata: str) -> pf.Model:
    graph = pf.FunctionalGraph("net")
    graph.metadata = metadata
    return graph.compile(graph.add_input("float32", (1, 3), "x") * 2)


@pytest.mark.parametrize(
    "metadata",
    [
        {"stride": "32", "names": "{0: 'cat', 1: \"dog's\", 2: 'a, b'}"},  # as Ultralytics writes it
        {"names": '["cat", "dog\'s", "a, b"]'},
        {"label_names": "('cat', \"dog's\", 'a, b')"},
        {"id2label": '{"1": "dog\'s", "0": "cat", "2": "a, b"}'},
        {"labels": "cat\n dog's \na, b\n\n"},
    ],
    ids=str,
)
def test_names_in_metadata(metadata: dict[str, str]) -> None:
    model = model_with(**metadata)
    assert labels_of(model) == ["cat", "dog's", "a, b"]
    assert top_labels(np.array([[0.25, 0.5, 0.25]]), model, 2) == [("dog's", 0.5), ("cat", 0.25)]


def test_nan_comes_last_and_k_may_be_large() -> None:
    assert [name for name, _ in top_labels([np.nan, 1.0, 3.0], ["a", "b", "c"])] == ["c", "b", "a"]
    assert top_labels(np.array([1, 2], np.int32), ("a", "b"), 1) == [("b", 2.0)]


@pytest.mark.parametrize(
    ("scores", "metadata", "said"),
    [
        ([1, 2, 3], {}, "names no classes: its metadata has no entries"),
        ([1, 2, 3], {"author": "x"}, "metadata has author"),
        ([1, 2, 3], {"names": "{0: 'a', 2: 'b'}"}, "each index"),
        ([1, 2, 3], {"names": "{'a': 'b'}"}, "not a dict"),
        ([1, 2], {"names": "['a']"}, "1 labels do not fit 2 scores"),
        (np.zeros((2, 2)), {"names": "['a', 'b']"}, "row of one picture"),
        (1.0, {"names": "['a']"}, "scores are"),
    ],
)
def test_what_does_not_fit_is_an_error(scores: object, metadata: dict[str, str], said: str) -> None:
    with pytest.raises(pf.InputError, match=said):
        top_labels(scores, model_with(**metadata))  # type: ignore[arg-type]


def test_k_is_a_number_of_classes() -> None:
    with pytest.raises(pf.InputError, match="from 1"):
        top_labels([1.0], ["a"], 0)
