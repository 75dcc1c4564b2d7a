"""Checks of the files of torch.export before PyTorch reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perframe.conversion.archives import zip_content
from perframe.errors import ConversionError

MAX_GRAPH = 512 << 20  # bytes
_ALLOWED = re.compile(r"[\w\s+\-*/(),.<>=!&|~%]*", re.ASCII)
_ATTRIBUTE = re.compile(r"(?<!\d)\.|\.(?![\de])")
_CALL = re.compile(r"\b([a-z_]\w*)\s*\(")
_SYMBOL = re.compile(r"\bSymbol\('\w+'", re.ASCII)  # as SymPy writes a variable
_FUNCTIONS = {"floor", "ceiling", "sqrt", "abs", "exp", "log", "sin", "cos", "tan"}


def check_formulas(path: Path, entries: list[str]) -> None:
    """Raise ConversionError if a size in these graphs is more than a formula.

    PyTorch hands the texts of sizes to SymPy, which evaluates them as Python: such a text could call anything.
    """
    for entry in entries:
        try:
            graph = json.loads(zip_content(path, entry, MAX_GRAPH))
            texts = [*_formulas(graph)]
        except (ValueError, RecursionError) as error:
            if isinstance(error, ConversionError):
                raise
            raise ConversionError(f"{path}: its graph {entry!r} is damaged: {error!s:.200}: copy it again") from error
        for text in texts:
            plain = _SYMBOL.sub("Symbol(", text)
            called = set(_CALL.findall(plain)) - _FUNCTIONS
            if called or "__" in text or _ATTRIBUTE.search(plain) or not _ALLOWED.fullmatch(plain):
                raise ConversionError(
                    f"{path}: the size {text!r:.200} in its graph is not a formula, and PyTorch would run it: do not "
                    "trust this file"
                )


def _formulas(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        for name, value in found.items():
            if name == "expr_str" and isinstance(value, str):
                yield value
            else:
                yield from _formulas(value)
    elif isinstance(found, list):
        for value in found:
            yield from _formulas(value)
