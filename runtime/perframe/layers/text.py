"""Layers over strings, which are objects and live on the CPU."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Literal

from perframe.errors import InferenceError
from perframe.layers.attributes import Flag, Natural
from perframe.layers.automaton import Automaton
from perframe.layers.base import layer
from perframe.spec import PartialTensor, broadcast
from perframe.tensor import DataType

# what RE2 understands and Python writes differently; classes like [:alpha:] stand inside brackets of their own
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_RE2_ONLY = re.compile(r"\\Q(?P<quoted>.*?)(?:\\E|$)|\[:(?P<posix>\w+):\]|(?P<escape>\\.)", re.DOTALL)


def _python_syntax(match: re.Match[str]) -> str:
    if match["quoted"] is not None:
        return re.escape(match["quoted"])
    if match["posix"] is not None:
        if match["posix"] not in _POSIX:
            raise InferenceError(f"a regular expression knows no class [:{match['posix']}:]")
        return _POSIX[match["posix"]]
    return r"\Z" if match["escape"] == r"\z" else match["escape"]


@functools.lru_cache(maxsize=64)
def regular_expression(pattern: str) -> Automaton:
    """An expression in RE2's syntax, whose classes are those of ASCII. Raises InferenceError."""
    return Automaton(_RE2_ONLY.sub(_python_syntax, pattern), re.ASCII)


def _strings(x: PartialTensor, what: str) -> None:
    if x.dtype is not DataType.STRING:
        raise InferenceError(f"{what} takes strings, not {x}")


@layer()
def StringConcat(a: PartialTensor, b: PartialTensor) -> PartialTensor:
    _strings(a, "StringConcat")
    _strings(b, "StringConcat")
    return a.with_shape(broadcast(a.shape, b.shape))


@layer(on_host=True)
def StringSplit(
    x: PartialTensor, *, delimiter: str = "", maxsplit: Natural | None = None
) -> tuple[PartialTensor, PartialTensor]:
    _strings(x, "StringSplit")
    return x.with_shape(None if x.shape is None else (*x.shape, None)), x.with_shape(x.shape, DataType.INT64)


@layer(on_host=True)
def StringNormalizer(
    x: PartialTensor,
    *,
    case_change_action: Literal["NONE", "LOWER", "UPPER"] = "NONE",
    is_case_sensitive: Flag = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> PartialTensor:
    _strings(x, "StringNormalizer")
    if x.shape is None:
        return x.with_shape(None)
    if len(x.shape) not in (1, 2) or (len(x.shape) == 2 and isinstance(x.shape[0], int) and x.shape[0] != 1):
        raise InferenceError(f"StringNormalizer takes strings of shape (count) or (1, count), not {x}")
    return x.with_shape((None,) if len(x.shape) == 1 else (1, None))


@layer()
def RegexFullMatch(x: PartialTensor, *, pattern: str = "") -> PartialTensor:
    _strings(x, "RegexFullMatch")
    regular_expression(pattern)
    return x.with_shape(x.shape, DataType.BOOL)
