"""Changes of pages before mkdocs reads them: a list of all functions of `pf.functional`, and links out of the site."""

from __future__ import annotations

import inspect
import re
from typing import Any

MARK = "<!-- all functions -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put a list of all functions where a page has the mark. Links to files that are not pages keep their texts."""
    markdown = re.sub(r"\[([^\]]+)\]\((?:\.\./)+(?:demos|assets|tools|runtime)\b[^)]*\)", r"`\1`", markdown)
    return markdown.replace(MARK, functions()) if MARK in markdown else markdown


def functions() -> str:
    """Each function with its signature and its docstring."""
    import perframe.functional as functional

    parts = []
    for name in sorted(functional.__all__, key=str.lower):
        function = getattr(functional, name)
        signature = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", str(inspect.signature(function)).replace("'", ""))
        parts.append(f"### `{name}` {{ #{name} }}\n\n```python\n{name}{signature}\n```\n\n{inspect.getdoc(function)}\n")
    return "\n".join(parts)
