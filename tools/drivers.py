"""perframe on drivers of GPUs that this machine does not have (driver_environments.py).

`python tools/drivers.py run NAME COMMAND...` runs a command on a driver, `isa` shows what a GPU's compiler makes of
perframe's shaders (isa.py), `compile` compiles shaders on each driver, and `unpack` only unpacks the drivers, once:
200 MiB, a minute. Needs Debian and its packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from driver_environments import DRIVERS, driver_environment, unpack
from isa import PRINT_CODE, read_codes, show
from rich.console import Console
from shader_texts import BEGIN, USES

from perframe.errors import BackendError, PerframeError

cli = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)


@cli.command("unpack")
def unpack_command() -> None:
    """Unpack the drivers, and print their folder."""
    print(unpack())


@cli.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    name: Annotated[str, typer.Argument(help=", ".join(DRIVERS))],
    command: Annotated[list[str], typer.Argument(help="the command, and its arguments")],
) -> None:
    """Run a command on a driver."""
    environment = {**os.environ, **driver_environment(name)}
    os.execvpe(command[0], command, environment)


@cli.command()
def isa(
    model: Annotated[str, typer.Argument(help="A file or a known name; without one, standard layers.")] = "",
    backend: Annotated[str, typer.Option(help="gpu_compute or gpu_pixel")] = "gpu_compute",
    gpu: Annotated[str, typer.Option(help="A driver for an AMD GPU.")] = "navi21",
    dims: Annotated[str, typer.Option(metavar="NAME=N,...")] = "",
    assembly: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Keep the shaders and the code.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Write JSON.")] = None,
) -> None:
    """Show what a GPU's compiler makes of the shaders that a model runs."""

    amd = [name for name, driver in DRIVERS.items() if driver.vulkan == "radeon.json"]
    if gpu not in amd:
        raise BackendError(f"{gpu!r} is no AMD GPU; there are {', '.join(amd)}")
    with tempfile.TemporaryDirectory(prefix="perframe-isa-") as temporary:
        folder = Path(assembly or temporary)
        done = _run_texts(gpu, "collect", str(folder), backend, model, dims)
        if done.returncode:
            raise BackendError(f"the model cannot be planned on {gpu}: {done.stderr[-2000:]}")
        uses = json.loads((folder / USES).read_text(encoding="utf-8"))
        done = _run_texts(gpu, "compile", str(folder), *uses, variables=PRINT_CODE)
        if assembly:
            (folder / "code.txt").write_text(done.stderr, encoding="utf-8")
        codes = list(read_codes(done.stderr))
    if len(codes) < len(uses):
        raise BackendError(f"{gpu} compiled {len(codes)} of {len(uses)} shaders: {done.stderr[-1000:]}")
    if json_file:
        json_file.write_text(json.dumps([{**asdict(code), "uses": uses[code.file]} for code in codes], indent=1))
    show(codes, uses, Console(width=120))


@cli.command("compile")
def compile_command(
    folder: Annotated[Path, typer.Argument(help="Shaders that tools/shader_texts.py has kept.")],
    drivers: Annotated[str, typer.Option(metavar="NAME,...")] = ",".join(DRIVERS),
) -> None:
    """Compile a folder of shaders on each driver, and print those that fail. The exit status is 1 if one does."""
    files = sorted(path.name for path in folder.glob("*.glsl"))
    if not files:
        raise BackendError(
            f"{folder} holds no shaders; `python tools/shader_texts.py collect {folder} BACKEND` keeps some"
        )
    failures = 0
    for driver in drivers.split(","):
        begin, found = time.monotonic(), list(compile_on(driver, folder, files))
        failed = [result for result in found if result["error"] is not None]
        skipped = sum("skipped" in result for result in found)
        more = f", {skipped} left out, which need OpenGL 4.3" if skipped else ""
        done = len(found) - len(failed) - skipped
        print(f"{driver}: {done} of {len(found)} compile{more}; {time.monotonic() - begin:.0f} s", flush=True)
        for result in failed:
            print(f"  {result['file']}: {result['error']}", flush=True)
        failures += len(failed)
    raise typer.Exit(1 if failures else 0)


def compile_on(driver: str, folder: Path, files: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Compile shaders on a driver; what became of each. A driver that crashes is started anew for the rest.

    Raises BackendError if it compiles none.
    """
    left = list(files)
    while left:
        done = _run_texts(driver, "compile", str(folder), *left)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        yield from results
        left = left[len(results) :]
        if left and not done.stderr.rpartition(BEGIN)[2].startswith(left[0]):
            raise BackendError(f"{driver} compiles nothing: {done.stderr[-2000:]}")
        if left:
            yield {"file": left.pop(0), "error": f"the driver ended with exit status {done.returncode}"}


def _run_texts(driver: str, *arguments: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    environment = {**os.environ, **driver_environment(driver), **(variables or {})}
    command = [sys.executable, str(Path(__file__).with_name("shader_texts.py")), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    try:
        cli(arguments)
    except PerframeError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
