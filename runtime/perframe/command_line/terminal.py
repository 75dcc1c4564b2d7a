"""The terminal of the command line: consoles, tables, progress bars, sizes and times as text, and signals."""

from __future__ import annotations

import codecs
import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import typer

from perframe.safety.names import shown

if TYPE_CHECKING:
    import rich.console
    import rich.table

    Console: TypeAlias = rich.console.Console
    Table: TypeAlias = rich.table.Table
else:  # without importing rich
    Console = Table = Any

Progress = Callable[[str, float], None]  # the current activity, and the fraction that is done
# plain characters for signs that some encodings lack, as on Windows
PLAIN = {"→": "->", "✓": "+", "✗": "x", "×": "x", "–": "-", "…": "...", "█": "#", "•": "*"}
_NAME = "perframe.plain"


def console(stderr: bool = False) -> Console:
    """The console that a command prints on. Texts are what they are, and no markup; see `safety.names.shown`."""
    from perframe.safety.console import SafeConsole

    return SafeConsole(stderr=stderr)


def say(text: str) -> None:
    """Print a line, whose names of files and models may be of others."""
    typer.echo(shown(text, lines=True))


def say_json(report: Any) -> None:
    """Print a report for a machine."""
    typer.echo(json.dumps(report, indent=2))


def table(*columns: str, right: Sequence[str] = (), **settings: Any) -> Table:
    """A table without lines. The columns `right` come last; their numbers are aligned to the right."""
    from rich.table import Table

    made = Table(*columns, **{"box": None, "header_style": "dim", "padding": (0, 2, 0, 0), **settings})
    for column in right:
        made.add_column(column, justify="right", no_wrap=True)
    return made


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show a bar on stderr until the block ends; on a terminal only. It leaves nothing behind."""
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    on = console(stderr=True)
    what_column = TextColumn("{task.description}", style="progress.description", markup=False)
    columns = (what_column, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    try:
        with Bar(*columns, console=on, transient=True, disable=not on.is_terminal) as bar:
            task = bar.add_task("", total=1)

            def report(what: str, done: float) -> None:
                bar.update(task, description=what, completed=done)

            yield report
    finally:
        on.show_cursor()  # a signal may come while the bar begins, which then has no end


def seconds_text(seconds: float | None) -> str:
    """A time as text with three significant digits, such as "12.3 ms"; "–" for None."""
    if seconds is None:
        return "–"
    unit, value = next(
        (unit, seconds * factor)
        for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6))
        if seconds * factor >= 1 or unit == "µs"
    )
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f} {unit}"


def let_print(streams: Iterable[IO[Any]] | None = None) -> None:
    """Let streams, by default the process', write plain characters instead of those that they cannot encode."""
    codecs.register_error(_NAME, _plain)
    for stream in (sys.stdout, sys.stderr) if streams is None else streams:
        if hasattr(stream, "reconfigure"):  # another program's stream may be of another kind
            stream.reconfigure(errors=_NAME)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign, "?") for sign in lost), error.end


def end_in_order() -> None:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does: with the ends of all blocks. A second one ends it at once.

    A signal that is ignored, as `nohup` ignores SIGHUP, stays so.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    sys.exit(128 + number)
