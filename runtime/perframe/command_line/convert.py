"""`perframe convert`: what was converted, from what, and how well it agrees."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from perframe.conversion.converting import Conversion

SHOWN = 8  # inputs or outputs, on the screen


def as_json_value(made: Conversion) -> dict[str, Any]:
    """The report for a machine. An error without bound is null."""
    return {
        "source": str(made.source),
        "kind": made.kind,
        "target": str(made.target),
        "bytes": made.bytes,
        "opset": made.opset,
        "made_with": made.made_with,
        "inputs": [*made.inputs],
        "outputs": [*made.outputs],
        "verified": bool(made.errors),
        "agrees": made.agrees,
        "errors": [
            {
                "output": error.output,
                "shape": [*error.shape],
                "apart": error.apart if math.isfinite(error.apart) else None,
                "relative": error.relative if math.isfinite(error.relative) else None,
                "agrees": error.agrees,
            }
            for error in made.errors
        ],
    }


def show(made: Conversion, console: Console) -> None:
    """Print the report for a person."""
    from rich.table import Table
    from rich.text import Text

    from perframe.command_line.units import bytes_text
    from perframe.conversion.kinds import KINDS

    opset = f", opset {made.opset}" if made.opset else ""
    console.print(Text(f"{made.source} is {KINDS[made.kind].words}"))
    console.print(Text(f"{made.target}: {bytes_text(made.bytes)}{opset}, made with {made.made_with}"), soft_wrap=True)
    for what, names in (("inputs", made.inputs), ("outputs", made.outputs)):
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        console.print(Text(f"  {what}: {', '.join(names[:SHOWN])}{more}"))
    if not made.errors:
        return
    table = Table("output", "shape", "largest error", "of the largest value", "", box=None, header_style="dim")
    for error in made.errors:
        verdict = Text("agrees", "green") if error.agrees else Text("differs", "bold red")
        table.add_row(error.output, str(error.shape), f"{error.apart:.3g}", f"{error.relative:.2g}", verdict)
    console.print(table)
