"""The command line: `perframe COMMAND ...`, with a file in `commands/` for each command.

Exit status: 0 for success, 1 if something failed, 2 if the command was not understood.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from perframe.command_line.commands.bench import bench
from perframe.command_line.commands.cache import cache
from perframe.command_line.commands.check import check
from perframe.command_line.commands.compare import compare
from perframe.command_line.commands.convert import convert
from perframe.command_line.commands.demo import demo
from perframe.command_line.commands.doctor import doctor
from perframe.command_line.commands.inspect import inspect
from perframe.command_line.commands.models import models
from perframe.command_line.commands.operators import operators
from perframe.command_line.commands.optimize import optimize
from perframe.command_line.commands.process import process
from perframe.command_line.commands.profile import profile
from perframe.command_line.commands.quantize import quantize
from perframe.command_line.commands.run import run
from perframe.command_line.commands.save import save
from perframe.command_line.commands.tune import tune
from perframe.command_line.commands.warmup import warmup
from perframe.command_line.options import console
from perframe.command_line.plain_text import let_print
from perframe.command_line.signals import end_in_order
from perframe.errors import PerframeError

app = typer.Typer(
    help="Neural networks inside a frame loop.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
COMMANDS = (
    run,
    check,
    inspect,
    optimize,
    compare,
    convert,
    quantize,
    save,
    bench,
    profile,
    process,
    warmup,
    tune,
    models,
    operators,
    doctor,
    cache,
)  # as the help lists them
OF_A_DEMO = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}

for command in COMMANDS:
    app.command()(command)
app.command(context_settings=OF_A_DEMO)(demo)


def _version(wanted: bool) -> None:
    if wanted:
        from perframe import __version__

        typer.echo(f"perframe {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Declare the options of all commands. `main` reads them."""


def main() -> None:
    """Run the command line. An error that perframe raises on purpose is printed as one message, with exit status 1."""
    let_print()
    end_in_order()
    try:
        app()
    except (PerframeError, OSError) as error:
        if "--debug" in sys.argv[1:2]:
            raise
        from rich.text import Text

        message = Text.assemble(("error:", "bold red"), f" {error}")
        console(stderr=True).print(message, highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
