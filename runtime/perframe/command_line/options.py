"""Options that several commands have, and what they share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perframe.safety.names import shown

if TYPE_CHECKING:
    from perframe.tensor import BackendType

BACKENDS = ("cpu", "gpu_compute", "gpu_pixel")
AUTO = "auto"

Dims = Annotated[
    str, typer.Option(metavar="NAME=N,...", help="Sizes of open dims; INPUT:AXIS=N sets one without a name.")
]
Seed = Annotated[int, typer.Option(help="Random seed for inputs and for weights of light_ models.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail if a layer would fall back to the CPU.")]
GivenInputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME=VALUE", help="Value: .npy, picture, number, random (default), random:2x3."),
]
Mean = Annotated[str, typer.Option(metavar="M,...", help="Subtract this from picture values (0 to 1 times --scale).")]
Std = Annotated[
    str, typer.Option(metavar="S,...", help="Divide picture values by this, one number or one per channel.")
]
Scale = Annotated[float, typer.Option(help="Multiply picture values by this (255 for a 0-255 model).")]
HtmlPage = Annotated[Path | None, typer.Option("--html", metavar="OUT.html", help="Write the graph as an HTML page.")]
_HELD = "float32|float16"
Weights = Annotated[str, typer.Option(metavar=_HELD, help="GPU storage type of weights.")]
Activations = Annotated[str, typer.Option(metavar=_HELD, help="GPU storage type of values between layers.")]
BackendOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"Where to run: {', '.join(BACKENDS)}, or auto: a GPU if there is one, or the CPU."
    ),
]
ModelName = Annotated[str, typer.Argument(help="Model file, or the name of a known model.")]


def check_backends(names: list[str]) -> list[BackendType]:
    """Return the backends of these names, and print on a terminal which one "auto" is.

    Raises BadParameter for an unknown name.
    """
    return [_checked(name) for name in names]


def _checked(name: str) -> BackendType:
    from perframe.tensor import BackendType  # imported late: it brings NumPy

    if name == AUTO:
        from perframe.backends.choosing import choose_backend

        chosen, reason = choose_backend()
        if sys.stderr.isatty():  # and not into a file beside the result, which names the backend, too
            typer.echo(f"backend: {chosen}, because {shown(reason)}", err=True)
        return chosen
    if name not in BACKENDS:
        known = ", ".join((AUTO, *BACKENDS))
        raise typer.BadParameter(f"{name!r} is not one of {known}", param_hint="--backend")
    return BackendType(name)
