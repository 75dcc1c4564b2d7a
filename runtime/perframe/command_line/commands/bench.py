"""The command `perframe bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perframe.command_line.keys import takes_key
from perframe.command_line.options import (
    BACKENDS,
    Activations,
    Dims,
    Seed,
    Strict,
    Weights,
    check_backends,
    console,
)


@takes_key
def bench(
    models: Annotated[list[str], typer.Argument(help="Model files, or names of known models.")],
    backend: Annotated[
        str, typer.Option(metavar="NAME,...", help=f"Comma-separated backends: {', '.join(BACKENDS)}.")
    ] = "cpu",
    against: Annotated[
        str, typer.Option(metavar="PEER,...", help="Comma-separated runtimes: onnxruntime, openvino, litert.")
    ] = "",
    rounds: Annotated[int, typer.Option(min=1, help="Number of alternating rounds.")] = 15,
    strict: Strict = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write JSON to OUT; - for stdout.")
    ] = None,
    seed: Seed = 0,
    dims: Dims = "",
    weights: Weights = "float32",
    activations: Activations = "float32",
) -> None:
    """Time backends and other runtimes. A ratio above 1 means: faster than the fastest other runtime."""
    from perframe.command_line.bench import as_json, measure, show
    from perframe.command_line.bench_side import PEERS
    from perframe.command_line.progress import progress_bar
    from perframe.command_line.sources import parse_dims

    backends = check_backends(backend.split(","))
    peers = [peer for peer in against.split(",") if peer]
    for peer in peers:
        if peer not in PEERS:
            raise typer.BadParameter(f"{peer!r} is not one of {', '.join(PEERS)}", param_hint="--against")
    options = {"strict": strict, "weights": weights, "activations": activations}
    timings = []
    with progress_bar() as step:
        for measured in measure(models, backends, peers, rounds, parse_dims(dims), seed, options, step):
            timings += measured
    if json_file:
        text = as_json(timings, {"rounds": rounds, "dims": dims, "seed": seed, **options})
        typer.echo(text) if str(json_file) == "-" else json_file.write_text(text, encoding="utf-8")
    if str(json_file) != "-":
        show(timings, console())
    if any(timing.error for timing in timings):
        raise typer.Exit(1)
