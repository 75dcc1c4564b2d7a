"""Strings: joined, split, cleaned, matched and counted."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import perframe as pf
from perframe.layers.text import regular_expression
from perframe.testing.cases import Array

TYPES = {"int64": TensorProto.INT64, "int32": TensorProto.INT32, "object": TensorProto.STRING}


def strings(*values: Any) -> Array:
    return np.array(values, object)


def run(op: str, inputs: list[Array], kinds: list[int], backend: str, ctx: Any = None, **attributes: Any) -> list[Any]:
    """One node, by the CPU's way whatever the backend."""
    names = [f"x{index}" for index in range(len(inputs))]
    outputs = [f"y{index}" for index in range(len(kinds))]
    given = zip(names, inputs, strict=True)
    infos = [helper.make_tensor_value_info(name, TYPES[str(value.dtype)], value.shape) for name, value in given]
    ends = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(outputs, kinds, strict=True)]
    graph = helper.make_graph([helper.make_node(op, names, outputs, **attributes)], "text", infos, ends)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    made = pf.run(model, dict(zip(names, inputs, strict=True)), backend=backend, ctx=ctx)
    return list(made.values())


def same(made: Array, wanted: Any, shape: tuple[int, ...] | None = None) -> None:
    expected = np.array(wanted, object)
    assert made.shape == (expected.shape if shape is None else shape)
    assert made.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (strings("ab", "c"), strings("x", ""), ["abx", "c"]),
        (strings(["a"], ["b"]), strings("x", "y", "z"), [["ax", "ay", "az"], ["bx", "by", "bz"]]),
        (np.array("é", object), np.array("→", object), "é→"),
        (np.empty((0, 2), object), strings("x", "y"), np.empty((0, 2), object)),
    ],
)
def test_concat(a: Array, b: Array, wanted: Any, backend: str, backend_context: Any) -> None:
    (made,) = run("StringConcat", [a, b], [TensorProto.STRING], backend, backend_context)
    same(made, wanted)


@pytest.mark.parametrize(
    ("x", "attributes", "parts", "counts"),
    [
        (["a,b", "c"], {"delimiter": ","}, [["a", "b"], ["c", ""]], [2, 1]),
        (["a,,b"], {"delimiter": ","}, [["a", "", "b"]], [3]),
        (["a,b,c"], {"delimiter": ",", "maxsplit": 1}, [["a", "b,c"]], [2]),
        (["  a  b "], {}, [["a", "b"]], [2]),
        (["", " "], {}, np.empty((2, 0), object), [0, 0]),
    ],
)
def test_split(x: list[str], attributes: Any, parts: Any, counts: Any, backend: str, backend_context: Any) -> None:
    kinds = [TensorProto.STRING, TensorProto.INT64]
    made, lengths = run("StringSplit", [strings(*x)], kinds, backend, backend_context, **attributes)
    same(made, parts)
    assert lengths.dtype == np.int64 and lengths.tolist() == counts


@pytest.mark.parametrize(
    ("x", "attributes", "wanted"),
    [
        (["Mon", "", "tue"], {"case_change_action": "UPPER"}, ["MON", "", "TUE"]),
        (["Mon", "mon", "Tue"], {"stopwords": ["mon"], "is_case_sensitive": 1}, ["Mon", "Tue"]),
        (["Mon", "mon", "Tue"], {"stopwords": ["MON"], "case_change_action": "LOWER"}, ["tue"]),
        (["mon"], {"stopwords": ["mon"]}, [""]),
        ([["mon", "Tue"]], {"stopwords": ["mon"]}, [["Tue"]]),
    ],
)
def test_normalizer(x: list[Any], attributes: Any, wanted: Any, backend: str, backend_context: Any) -> None:
    (made,) = run("StringNormalizer", [strings(*x)], [TensorProto.STRING], backend, backend_context, **attributes)
    same(made, wanted)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"[[:alpha:]]+\z", "abc", "ab1"),
        (r"[^[:space:][:digit:]]+", "ab", "a b"),
        (r"\Qa.c\E", "a.c", "abc"),
        (r"\w+", "a_1", "é"),
        (r"a|ab", "ab", "abc"),
        (r"(?i)HELLO", "hello", "hell"),
        (r"\\Q", "\\Q", "Q"),
    ],
)
def test_regular_expressions(pattern: str, yes: str, no: str, backend: str, backend_context: Any) -> None:
    given = [strings([yes], [no])]
    (made,) = run("RegexFullMatch", given, [TensorProto.BOOL], backend, backend_context, pattern=pattern)
    assert made.dtype == bool and made.tolist() == [[True], [False]]


WAYS = ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*a){12}b", "(a?){30}a{30}", "(x+x+)+y|a"]


@pytest.mark.parametrize("pattern", WAYS)
def test_a_text_that_could_match_in_many_ways_takes_no_time(pattern: str) -> None:
    begun = time.thread_time()
    expression = regular_expression(pattern)
    assert not expression.fullmatch("a" * 400 + "!") and not expression.fullmatch("x" * 400)
    assert time.thread_time() - begun < 5


@pytest.mark.parametrize("pattern", [r"(a)\1", "a(?=b)", "(?<!a)b", "(?>a)", "(?x) a", r"(?P<n>a)(?P=n)"])
def test_what_is_not_of_re2_is_refused(pattern: str) -> None:
    with pytest.raises(pf.InferenceError, match="is not a regular expression of RE2"):
        regular_expression(pattern)


def test_an_expression_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(pf.InferenceError, match="is not a regular expression of RE2"):
        regular_expression("(a{1000}){1000}")


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    regular_expression.cache_clear()
    with pytest.raises(pf.MissingExtraError, match=r"pip install 'perframe\[text\]'"):
        regular_expression("a")


@pytest.mark.parametrize("pattern", ["(", "[[:nothing:]]", "a{2,1}"])
def test_broken_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(pf.InferenceError):
        regular_expression(pattern)
