"""A bar on stderr for work that takes a person's time. It leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, float], None]  # what is done now, and the fraction of it that is done


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show a bar until the block ends; on a terminal only."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        shown = bar.add_task("", total=1)

        def report(what: str, done: float) -> None:
            bar.update(shown, description=what, completed=done)

        yield report
