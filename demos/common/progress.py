"""How far a recording is: a bar on a terminal, and elsewhere one line if it takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

MEASURED = 3  # frames; the first one compiles
LONG = 5.0  # seconds that a user should know of


@contextmanager
def recording_progress(frames: int) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each frame of a recording."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("recording frames", total=frames)
        done, began = 0, 0.0

        def advance() -> None:
            nonlocal done, began
            done += 1
            progress.advance(task)
            if done == 1:
                began = perf_counter()
            elif done == 1 + MEASURED and not console.is_terminal:
                left = (perf_counter() - began) / MEASURED * (frames - done)
                if left > LONG:
                    print(f"{frames - done} more frames take about {left:.0f} s", flush=True)

        yield advance
