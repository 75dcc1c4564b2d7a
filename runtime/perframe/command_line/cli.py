"""The command line: `perframe COMMAND ...`, with a file in `commands/` for each command.

Exit status: 0 for success, 1 if something failed, 2 if the command was not understood.
"""

from __future__ import annotations

import re
import sys
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

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
from perframe.command_line.terminal import console, end_in_order, let_print
from perframe.errors import PerframeError

if TYPE_CHECKING:
    Parent = TyperCommand
else:  # PlainHelp is mixed into both of Typer's classes
    Parent = object

COMMANDS = {
    function.__name__: function
    for function in (
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
        demo,
    )
}  # as the help lists them
SETTINGS = {"demo": {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}}
STYLE: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": "rich"}


class PlainHelp(Parent):
    """A command whose help has no types of Python: a flag takes no value, and a metavar names every other value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The arguments and options, as the help shows them."""
        params: list[Any] = [*super().get_params(ctx)]
        for param in params:
            if param.param_type_name == "argument":
                param.display_type_rich = lambda **_context: None
            elif param.metavar is None:
                param.metavar = ""  # a flag
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line; Typer's braces would mean a choice."""
        return [re.sub("[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]


class Command(PlainHelp, TyperCommand):
    """A command that tells its options to whoever gives too many arguments, as a second file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments that are left. Raises click's UsageError."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if "unexpected extra argument" in str(getattr(error, "message", "")):
                options = [(param.opts[0], getattr(param, "metavar", None)) for param in self.params]
                listed = ", ".join(f"{name} {value}" for name, value in options if value and name[:2] == "--")
                if listed:
                    error.message = f"{error.message}; options with values are {listed}"  # type: ignore[attr-defined]
            raise


def built(name: str) -> Any:
    """A command with its options."""
    one = typer.Typer(**STYLE)
    one.command(name, cls=Command, context_settings=SETTINGS.get(name))(COMMANDS[name])
    return typer.main.get_command(one)


class CommandGroup(PlainHelp, TyperGroup):
    """All commands. One gets its options when it is called, which takes time: the list of commands needs none."""

    def __init__(self, **arguments: Any) -> None:
        listed = {name: TyperCommand(name, help=getdoc(function)) for name, function in COMMANDS.items()}
        super().__init__(**arguments | {"commands": listed})

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The called command, and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, built(name) if name else command, rest


app = typer.Typer(cls=CommandGroup, help="Neural networks inside a frame loop.", no_args_is_help=True, **STYLE)


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


INTERRUPTED = 130  # the exit status after Ctrl-C, also Typer's


def main() -> None:
    """Run the command line. An error that perframe raises on purpose is printed as one message, with exit status 1."""
    let_print()
    end_in_order()
    try:
        app()
    except (PerframeError, OSError) as error:
        if "--debug" in sys.argv[1:2]:
            raise
        sys.last_type = type(error)  # as Python notes an error that it prints: nothing waits for compilers then
        from rich.text import Text

        message = Text.assemble(("error:", "bold red"), f" {error}")
        console(stderr=True).print(message, highlight=False, soft_wrap=True)
        sys.exit(1)
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        sys.last_type = KeyboardInterrupt
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
