"""The command `perframe inspect`."""

from __future__ import annotations

from typing import Annotated

import typer

from perframe.command_line.keys import takes_key
from perframe.command_line.options import BACKENDS, AsJson, Dims, HtmlPage, ModelName, check_backends, console, say


@takes_key
def inspect(
    model: ModelName,
    as_json: AsJson = False,
    no_optimize: Annotated[bool, typer.Option("--no-optimize", help="Show the model without optimization.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Run once and show memory use.")] = False,
    html: HtmlPage = None,
    profile: Annotated[bool, typer.Option("--profile", help="With --html: color layers by their time.")] = False,
    backend: Annotated[
        str, typer.Option(help=f"With --profile: the backend. One of auto, {', '.join(BACKENDS)}.")
    ] = "auto",
    dims: Dims = "",
) -> None:
    """Show a model's layers and what optimization changes; with --memory, its memory use."""
    from perframe.command_line.inspect import as_json as to_json
    from perframe.command_line.inspect import examine, examine_memory, show, show_memory, write_graph
    from perframe.command_line.sources import parse_dims

    if memory:
        used = examine_memory(model, parse_dims(dims))
        typer.echo(to_json(used)) if as_json else show_memory(used, console())
        return
    if html is not None:
        place = check_backends([backend])[0] if profile else None
        write_graph(html, model, not no_optimize, parse_dims(dims), place)
        say(f"{html}: {html.stat().st_size:,} bytes; open it in a browser")
        return
    facts = examine(model, not no_optimize, parse_dims(dims))
    if as_json:
        typer.echo(to_json(facts))
    else:
        show(facts, console())
