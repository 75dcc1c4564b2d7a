"""`perframe run`: the report on a model's outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perframe.command_line.units import seconds_text
from perframe.media.picture import write_whole
from perframe.safety.archives import write_npz

if TYPE_CHECKING:
    from rich.console import Console

Outputs = Mapping[str, Any]  # an array; a list of them for a sequence; None for an absent optional


def summary(outputs: Outputs, backend: str, load: float, run: float) -> dict[str, Any]:
    """The outputs' shapes, dtypes and ranges, and the times in seconds."""
    return {
        "backend": backend,
        "seconds": {"load": load, "run": run},
        "outputs": {name: _facts(value) for name, value in outputs.items()},
    }


def save_outputs(path: Path, outputs: Outputs) -> None:
    """Write the outputs to an .npz file, a sequence as NAME.0, NAME.1, ..."""
    arrays = {}
    for name, value in outputs.items():
        if isinstance(value, list):
            arrays.update({f"{name}.{index}": item for index, item in enumerate(value)})
        elif value is not None:
            arrays[name] = value

    def save(beside: Path) -> None:
        with beside.open("wb") as file:
            write_npz(file, arrays)

    write_whole(path, save)


def show(report: Mapping[str, Any], console: Console) -> None:
    """Print the summary for a person."""
    from rich.table import Table
    from rich.text import Text

    table = Table("output", "dtype", "shape", box=None, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("min", "max", "mean"):
        table.add_column(column, justify="right")
    for name, facts in report["outputs"].items():
        shape = f"({', '.join(map(str, facts['shape']))})" if "shape" in facts else facts["kind"]
        figures = [f"{facts[key]:.6g}" if facts.get(key) is not None else "" for key in ("min", "max", "mean")]
        table.add_row(Text(name), facts.get("dtype", ""), shape, *figures)
    console.print(table)
    times = report["seconds"]
    console.print(f"\n{report['backend']}: {seconds_text(times['run'])}, after {seconds_text(times['load'])} to load")


def _facts(value: Any) -> dict[str, Any]:
    if value is None:
        return {"kind": "absent"}
    if isinstance(value, list):
        return {"kind": f"sequence of {len(value)}", "items": [_facts(item) for item in value]}
    facts: dict[str, Any] = {"kind": "tensor", "dtype": str(value.dtype), "shape": list(value.shape)}
    if value.size and value.dtype.kind in "biuf":
        numbers = value.astype(np.float64)
        facts |= {"min": float(numbers.min()), "max": float(numbers.max()), "mean": float(numbers.mean())}
    return facts
