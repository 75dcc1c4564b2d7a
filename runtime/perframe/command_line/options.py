"""Options that several commands have, and what they share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from perframe.safety.names import shown

BACKENDS = ("cpu", "gpu_compute", "gpu_pixel")

Dims = Annotated[str, typer.Option(metavar="NAME=N,...", help="Values for the model's named dims.")]
Seed = Annotated[int, typer.Option(help="Seed of the random inputs, and of the weights of light_ models.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail where a layer would fall back to the CPU.")]
GivenInputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME=VALUE", help=".npy, picture, number, random (the default), or random:2x3."),
]
Mean = Annotated[str, typer.Option(metavar="M,...", help="Of pictures: (value * scale - mean) / std.")]
Std = Annotated[str, typer.Option(metavar="S,...", help="Of pictures, whose values are 0 to 1.")]
Scale = Annotated[float, typer.Option(help="Of pictures: 255 for values of 0 to 255.")]
HtmlPage = Annotated[Path | None, typer.Option("--html", metavar="OUT.html", help="Draw the graph on a page.")]
_HELD = "float32|float16"
Weights = Annotated[str, typer.Option(metavar=_HELD, help="The dtype in which a GPU keeps weights.")]
Activations = Annotated[str, typer.Option(metavar=_HELD, help="The dtype in which a GPU keeps values between layers.")]
BackendName = Annotated[str, typer.Option(metavar="|".join(BACKENDS))]
ModelName = Annotated[str, typer.Argument(help="A model file, or the name of a known model.")]


def check_backends(names: list[str]) -> list[str]:
    """Return the names of backends. Raises BadParameter for a name that is none."""
    for name in names:
        if name not in BACKENDS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(BACKENDS)}", param_hint="--backend")
    return names


def console(stderr: bool = False) -> Any:
    """The console that a command prints on. Texts are what they are, and no markup; see `safety.names.shown`."""
    from perframe.safety.console import SafeConsole

    return SafeConsole(stderr=stderr)


def say(text: str) -> None:
    """Print a line, whose names of files and models may be of others."""
    typer.echo(shown(text, lines=True))
