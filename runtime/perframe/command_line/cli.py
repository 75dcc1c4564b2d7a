"""The command line: `perframe run | compare | inspect | optimize | save | bench | ...`.

Exit status: 0 for success, 1 if something failed, 2 if the command was not understood. Each command imports its modules
in its function, so that `perframe --help` answers at once.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from perframe.command_line.convert import convert
from perframe.command_line.keys import KeyFile, PassphraseEnv, takes_key
from perframe.errors import PerframeError

BACKENDS = ("cpu", "gpu_compute", "gpu_pixel")
FORMATS = ("onnx", "litert")

app = typer.Typer(
    help="Neural networks inside a frame loop.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Dims = Annotated[str, typer.Option(metavar="NAME=N,...", help="Values for the model's named dims.")]
Seed = Annotated[int, typer.Option(help="Seed of the random inputs, and of the weights of light_ models.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail where a layer would fall back to the CPU.")]
GivenInputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME=VALUE", help=".npy, picture, number, random (the default), or random:2x3."),
]
HtmlPage = Annotated[Path | None, typer.Option("--html", metavar="OUT.html", help="Draw the graph on a page.")]
BackendName = Annotated[str, typer.Option(metavar="|".join(BACKENDS))]
ModelName = Annotated[str, typer.Argument(help="A model file, or the name of a known model.")]


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False) -> None:
    """Declare the options of all commands. `main` reads them."""


@app.command()
@takes_key
def run(
    model: ModelName,
    given: GivenInputs = None,
    backend: BackendName = "cpu",
    strict: Strict = False,
    save: Annotated[Path | None, typer.Option(metavar="OUT.npz", help="Write the outputs.")] = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Run a model once and show its outputs."""
    import perframe as pf
    from perframe.command_line.run_report import save_outputs, show, summary
    from perframe.command_line.sources import input_arrays, loaded_model, parse_dims

    _check_backends([backend])
    start = time.perf_counter()
    loaded = loaded_model(model, seed)
    arrays = input_arrays(loaded.inputs, given or (), parse_dims(dims), seed)
    begin = time.perf_counter()
    outputs = pf.run(loaded, arrays, backend=backend, strict=strict)
    report = summary(outputs, backend, load=begin - start, run=time.perf_counter() - begin)
    if save:
        save_outputs(save, outputs)
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        show(report, _console())


@app.command()
@takes_key
def compare(
    model: ModelName,
    given: GivenInputs = None,
    backend: BackendName = "cpu",
    against: Annotated[
        str, typer.Option(metavar="onnxruntime|unoptimized|MODEL", help="Compare with its values, and not definitions.")
    ] = "",
    html: HtmlPage = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Run a model layer by layer, and compare each layer with its definition, or with another model that has the same
    values; exit status 1 if one differs.
    """
    from perframe.command_line.compare import as_json as to_json
    from perframe.command_line.compare import examine, show, write
    from perframe.command_line.sources import parse_dims

    _check_backends([backend])
    found = examine(model, against, given or (), backend, parse_dims(dims), seed)
    if html is not None:
        write(html, found)
    typer.echo(to_json(found)) if as_json else show(found, _console())
    if not found.agrees:
        raise typer.Exit(1)


@app.command()
@takes_key
def optimize(
    model: ModelName,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result: .perframe, or .onnx.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each pass did, and what it refused.")] = False,
    stop_after: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Let so many passes change it: to find one that is at fault.")
    ] = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Make a model smaller and faster without changing what it computes, and say how."""
    import perframe as pf
    from perframe.command_line.optimize import report_of, show
    from perframe.command_line.sources import loaded_model, parse_dims

    loaded = loaded_model(model, seed, dims=parse_dims(dims), stop_after=stop_after)
    report = report_of(loaded)
    if out is not None:
        pf.save(loaded, out)
    if as_json:
        typer.echo(json.dumps(report.as_json(), indent=2))
    else:
        show(loaded.name, report, _console(), explain)


@app.command()
def save(
    model: ModelName,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="m.perframe, or m.onnx.")],
    key_file: KeyFile = None,
    passphrase_env: PassphraseEnv = None,
    no_optimize: Annotated[
        bool, typer.Option("--no-optimize", help="Save the layers as they are in the file.")
    ] = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Save a model, optimised, in another file; encrypted if there is a key.

    A model that is itself encrypted is read with the key that PERFRAME_KEY_FILE or PERFRAME_PASSPHRASE_ENV names.
    """
    import perframe as pf
    from perframe.command_line.keys import read_key
    from perframe.command_line.sources import loaded_model, parse_dims

    key = read_key(key_file, passphrase_env)
    loaded = loaded_model(model, seed, not no_optimize, parse_dims(dims))
    pf.save(loaded, out, key)
    typer.echo(f"{out}: {out.stat().st_size:,} bytes, {len(loaded.layers)} layers{', encrypted' if key else ''}")


@app.command()
@takes_key
def check(
    model: ModelName,
    given: GivenInputs = None,
    backend: Annotated[str, typer.Option(metavar="NAME,...", help=f"Of {', '.join(BACKENDS)}.")] = ",".join(BACKENDS),
    strict: Strict = False,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Say whether a model runs here: on which backends, what falls back to the CPU, and what memory it takes.

    Exit status 1 if one of the backends cannot run it, or with --strict if a layer falls back.
    """
    from perframe.command_line.check import as_json as to_json
    from perframe.command_line.check import examine, passes, show
    from perframe.command_line.sources import parse_dims

    found = examine(model, _check_backends(backend.split(",")), given or (), parse_dims(dims), seed)
    if as_json:
        typer.echo(to_json(found))
    else:
        show(model, found, _console())
    if not passes(found, strict):
        raise typer.Exit(1)


@app.command()
@takes_key
def inspect(
    model: ModelName,
    as_json: AsJson = False,
    no_optimize: Annotated[bool, typer.Option("--no-optimize", help="Show the model as it is in the file.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Run it once, and show its memory.")] = False,
    html: HtmlPage = None,
    profile: Annotated[bool, typer.Option("--profile", help="With --html: time the layers on the CPU.")] = False,
    dims: Dims = "",
) -> None:
    """Show a model's layers and the effect of the passes; with --memory, its weights and the peak within a run."""
    from perframe.command_line.inspect import as_json as to_json
    from perframe.command_line.inspect import examine, examine_memory, show, show_memory, write_graph
    from perframe.command_line.sources import parse_dims

    if memory:
        used = examine_memory(model, parse_dims(dims))
        typer.echo(to_json(used)) if as_json else show_memory(used, _console())
        return
    if html is not None:
        write_graph(html, model, not no_optimize, parse_dims(dims), profile)
        typer.echo(f"{html}: {html.stat().st_size:,} bytes; open it in a browser")
        return
    facts = examine(model, not no_optimize, parse_dims(dims))
    if as_json:
        typer.echo(to_json(facts))
    else:
        show(facts, _console())


@app.command()
@takes_key
def bench(
    models: Annotated[list[str], typer.Argument(help="Model files, or names of known models.")],
    backend: Annotated[str, typer.Option(metavar="NAME,...", help=f"Of {', '.join(BACKENDS)}.")] = "cpu",
    against: Annotated[str, typer.Option(metavar="PEER,...", help="Of onnxruntime, openvino, litert.")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which all sides take turns.")] = 15,
    strict: Strict = False,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Write JSON; - for stdout.")] = None,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Time backends and other runtimes. The ratio compares a backend with the fastest of the other runtimes."""
    from perframe.command_line.bench import as_json, measure, show
    from perframe.command_line.bench_side import PEERS
    from perframe.command_line.progress import progress_bar
    from perframe.command_line.sources import parse_dims

    backends = _check_backends(backend.split(","))
    peers = [peer for peer in against.split(",") if peer]
    for peer in peers:
        if peer not in PEERS:
            raise typer.BadParameter(f"{peer!r} is none of {', '.join(PEERS)}", param_hint="--against")
    timings = []
    with progress_bar() as step:
        for measured in measure(models, backends, peers, rounds, parse_dims(dims), seed, strict, step):
            timings += measured
    if json_file:
        text = as_json(timings, {"rounds": rounds, "dims": dims, "seed": seed, "strict": strict})
        typer.echo(text) if str(json_file) == "-" else json_file.write_text(text)
    if str(json_file) != "-":
        show(timings, _console())
    if any(timing.error for timing in timings):
        raise typer.Exit(1)


@app.command()
@takes_key
def warmup(
    models: Annotated[list[str], typer.Argument(help="Model files, or names of known models.")],
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Compile the CPU kernels that models need, so that their first frame does not wait."""
    from perframe.command_line.sources import parse_dims
    from perframe.command_line.warmup import as_json_value, folder, show, warm_up

    found = []
    for model in models:
        found.append(warm_up(model, parse_dims(dims), seed))
        if not as_json:
            show(found[-1], _console())
    typer.echo(json.dumps(as_json_value(found), indent=2) if as_json else f"kernels are kept in {folder()}")


app.command()(convert)


@app.command()
def operators(
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of the documentation.")] = False,
    file_format: Annotated[str, typer.Option("--format", metavar="|".join(FORMATS))] = "onnx",
) -> None:
    """Show which of ONNX's or LiteRT's operators perframe has, and where they run."""
    import json
    from dataclasses import asdict

    from rich.table import Table

    from perframe.backends import gl_dtypes
    from perframe.importers import operators as onnx
    from perframe.importers.litert import operators as litert

    if file_format not in FORMATS:
        raise typer.BadParameter(f"{file_format!r} is none of {', '.join(FORMATS)}", param_hint="--format")
    rows: list[Any] = onnx.operators(gl_dtypes) if file_format == "onnx" else litert.operators()
    listing: Any = onnx if file_format == "onnx" else litert
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=1))
    elif as_markdown:
        typer.echo(listing.markdown(rows), nl=False)
    else:
        table = Table(*listing.HEADERS)
        for row in rows:
            table.add_row(*row.row)
        _console().print(table)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Show which packages, drivers and backends this machine has, and which are missing."""
    from perframe.command_line.doctor import as_json as to_json
    from perframe.command_line.doctor import examine, healthy, show

    checks = examine()
    if as_json:
        typer.echo(to_json(checks))
    else:
        show(checks, _console())
    if not healthy(checks):
        raise typer.Exit(1)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
)
def demo(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="The demo's name; without it, a list.")] = None,
) -> None:
    """Run a demo: perframe demo painter --help."""
    from perframe.command_line.demo import demos, load_demo

    if name is None:
        typer.echo("\n".join(demos()))
        return
    if name not in demos():
        raise typer.BadParameter(f"there is no demo {name!r}; there are {', '.join(demos())}", param_hint="NAME")
    raise typer.Exit(load_demo(name)(context.args))


def main() -> None:
    """Run the command line. An error that perframe raises on purpose is printed as one message, with exit status 1."""
    try:
        app()
    except (PerframeError, OSError) as error:
        if "--debug" in sys.argv[1:2]:
            raise
        _console(stderr=True).print(
            f"[bold red]error:[/bold red] {_escape(str(error))}", highlight=False, soft_wrap=True
        )
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _check_backends(names: list[str]) -> list[str]:
    for name in names:
        if name not in BACKENDS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(BACKENDS)}", param_hint="--backend")
    return names


def _console(stderr: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=stderr)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


if __name__ == "__main__":
    main()
