"""The command `perframe compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from perframe.command_line.keys import takes_key
from perframe.command_line.options import (
    Activations,
    AsJson,
    BackendOption,
    Dims,
    GivenInputs,
    HtmlPage,
    ModelName,
    Seed,
    Weights,
    check_backends,
    console,
)


@takes_key
def compare(
    model: ModelName,
    given: GivenInputs = None,
    backend: BackendOption = "auto",
    against: Annotated[
        str,
        typer.Option(
            metavar="onnxruntime|unoptimized|MODEL", help="Reference to compare with. Default: each layer's definition."
        ),
    ] = "",
    html: HtmlPage = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
    weights: Weights = "float32",
    activations: Activations = "float32",
) -> None:
    """Run a model layer by layer, and compare each layer with its definition, or with another model that has the same
    values, or, for float16, with a run in float32; exit status 1 if one differs.
    """
    from perframe.backends.precision import Precision
    from perframe.command_line.compare import as_json as to_json
    from perframe.command_line.compare import examine, show, write
    from perframe.command_line.sources import parse_dims

    (place,) = check_backends([backend])
    found = examine(model, against, given or (), place, parse_dims(dims), seed, Precision(weights, activations))
    if html is not None:
        write(html, found)
    typer.echo(to_json(found)) if as_json else show(found, console())
    if not found.agrees:
        raise typer.Exit(1)
