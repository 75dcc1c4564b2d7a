"""A console that shows texts of files, whatever characters they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.table import Table

from perframe.safety.names import shown

_LONGEST_NUMBER = 16  # characters


class SafeConsole(Console):
    """Rich's console without markup or control characters in texts: a name must not move the cursor, or change colors.

    Styles are given as arguments, or by rich.text.Text.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, **given})

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print as Rich does. Tables wrap long words to fit the width, and cut nothing; numbers stay in one piece."""
        for table in objects:
            if isinstance(table, Table):
                for column in table.columns:
                    column.overflow = "fold"
                    if column.justify == "right":
                        words = " ".join(str(cell) for cell in column._cells).split()
                        column.min_width = min(max(map(len, words), default=1), _LONGEST_NUMBER)
        super().print(*objects, **settings)

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """Render as Rich does, and clean all texts. Rich's own control segments stay."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown(text, lines=True), style, control)
