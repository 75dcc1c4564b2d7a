"""What `perframe tune` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perframe.command_line.units import seconds_text

if TYPE_CHECKING:
    from rich.console import Console

    from perframe.execution.tuning import Trial


def show(found: Sequence[Trial], console: Console) -> None:
    """Print a table: the time of a run with each variant of each kernel, and which one was chosen."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("kernel", "chosen", "before", "a run with each variant"):
        table.add_column(column)
    for trial in found:
        times = ", ".join(f"{variant} {seconds_text(time)}" for variant, time in sorted(trial.seconds.items()))
        table.add_row(trial.kernel, trial.chosen, trial.before, times)
    console.print(table)
