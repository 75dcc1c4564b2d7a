"""Layers over strings. Strings are objects, so these layers run on the CPU."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

from perframe.errors import InferenceError, MissingExtraError
from perframe.ir.attributes import Flag, Natural
from perframe.ir.declaration import layer
from perframe.ir.sizes.partial import PartialTensor, broadcast
from perframe.tensor import DataType


@functools.lru_cache(maxsize=64)
def regular_expression(pattern: str) -> Any:
    """Compile an expression with RE2, whose `fullmatch` takes time in proportion to the text.

    Raises InferenceError for a wrong expression, and MissingExtraError if google-re2 is not installed.
    """
    try:
        import re2
    except ImportError:
        raise MissingExtraError("google-re2", "text", "RegexFullMatch") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise InferenceError(f"{pattern!r:.200} is not a regular expression of RE2: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    (said,) = error.args[:1] or ("",)
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


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
