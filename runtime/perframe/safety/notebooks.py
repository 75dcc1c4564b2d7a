"""HTML for notebooks, which show an object by its `_repr_html_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

pages: dict[str, Callable[[Any], str]] = {}
"""Pages of objects whose packages may not know the package that draws them, by the class's name. The package
`perframe` itself fills this."""


def preformatted(text: str) -> str:
    """A text whose columns stay in place."""
    return f'<pre style="line-height: 1.25; overflow-x: auto">{_escaped(text.rstrip())}</pre>'


def framed(page: str) -> str:
    """A separate page within the cell. It can run its scripts, but not reach the notebook."""
    return (
        f'<iframe srcdoc="{_escaped(page)}" sandbox="allow-scripts" style="width: 100%; height: 480px; '
        'border: 1px solid #8884; border-radius: 4px"></iframe>'
    )


def _escaped(text: str) -> str:
    from html import escape  # imported late: its table of entities takes as long as all of perframe's import

    return escape(text)
