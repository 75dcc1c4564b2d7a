"""The command `perframe operators`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from perframe.command_line.options import AsJson
from perframe.command_line.terminal import console

FORMATS = ("onnx", "litert")


def operators(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Operators to show, such as Conv. Default: all.")
    ] = None,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    file_format: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="File format whose operators are listed.")
    ] = "onnx",
) -> None:
    """List the ONNX or LiteRT operators that perframe supports, and their backends."""
    import json
    from dataclasses import asdict

    from rich.table import Table

    from perframe.backends import gl_dtypes
    from perframe.importers import operators as onnx
    from perframe.importers.litert import operators as litert
    from perframe.safety.wording import did_you_mean

    if file_format not in FORMATS:
        raise typer.BadParameter(f"{file_format!r} is not one of {', '.join(FORMATS)}", param_hint="--format")
    rows: list[Any] = onnx.operators(gl_dtypes) if file_format == "onnx" else litert.operators()
    wanted = {name.lower() for name in names or ()}
    unknown = wanted - {row.name.lower() for row in rows}
    if unknown:
        asked = next(name for name in names or () if name.lower() in unknown)
        close = did_you_mean(asked, [row.name for row in rows])
        raise typer.BadParameter(f"there is no operator {asked!r}; {close}`perframe operators` lists them")
    rows = [row for row in rows if not wanted or row.name.lower() in wanted]
    listing: Any = onnx if file_format == "onnx" else litert
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=1))
    elif as_markdown:
        typer.echo(listing.markdown(rows), nl=False)
    else:
        table = Table(*listing.HEADERS)
        for row in rows:
            table.add_row(*row.row)
        console().print(table)
