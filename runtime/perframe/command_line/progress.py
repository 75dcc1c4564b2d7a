"""A bar on stderr for work that takes a person's time. It leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from perframe.command_line.options import console

Progress = Callable[[str, float], None]  # what is done now, and the fraction of it that is done


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show a bar until the block ends; on a terminal only."""
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    on = console(stderr=True)
    what_column = TextColumn("{task.description}", style="progress.description", markup=False)
    columns = (what_column, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    try:
        with Bar(*columns, console=on, transient=True, disable=not on.is_terminal) as bar:
            shown = bar.add_task("", total=1)

            def report(what: str, done: float) -> None:
                bar.update(shown, description=what, completed=done)

            yield report
    finally:
        on.show_cursor()  # a signal may come while the bar begins, which then has no end
