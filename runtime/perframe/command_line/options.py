"""Options that several commands have: backends, inputs, and the keys of encrypted models."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perframe.errors import InputError
from perframe.safety.names import shown

if TYPE_CHECKING:
    from perframe.tensor import BackendType

BACKENDS = ("cpu", "gpu_compute", "gpu_pixel")
AUTO = "auto"
Dims = Annotated[
    str, typer.Option(metavar="NAME=N,...", help="Sizes of open dims; INPUT:AXIS=N sets one without a name.")
]
KeptDims = Annotated[
    str,
    typer.Option(metavar="NAME=N,...", help="Sizes of open dims, which OUT keeps; INPUT:AXIS=N sets a nameless one."),
]
Signature = Annotated[str | None, typer.Option(metavar="NAME", help="Signature of a LiteRT file that has several.")]
Carry = Annotated[
    str, typer.Option(metavar="OUTPUT=INPUT,...", help="States: outputs that the next run reads as inputs.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed for inputs and for weights of light_ models.")]
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
Scale = Annotated[float, typer.Option(metavar="N", help="Multiply picture values by this (255 for a 0-255 model).")]
HtmlPage = Annotated[Path | None, typer.Option("--html", metavar="OUT.html", help="Write the graph as an HTML page.")]
Weights = Annotated[str, typer.Option(metavar="float32|float16", help="GPU storage type of weights.")]
Activations = Annotated[
    str,
    typer.Option(
        metavar="float32|float16|bfloat16",
        help="GPU storage type of values between layers; bfloat16: what products on the CPU multiply.",
    ),
]
BackendOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"Where to run: {', '.join(BACKENDS)}, or auto: a GPU if there is one, or the CPU."
    ),
]
ModelName = Annotated[str, typer.Argument(metavar="MODEL", help="Model file, or the name of a known model.")]
KEY_FILE, PASSPHRASE_ENV = "PERFRAME_KEY_FILE", "PERFRAME_PASSPHRASE_ENV"
_KEY = 32  # bytes
KeyFile = Annotated[
    Path | None,
    typer.Option(metavar="F", help="File with the key of an encrypted model: 32 bytes or 64 hex digits."),
]
PassphraseEnv = Annotated[
    str | None, typer.Option(metavar="NAME", help="Environment variable that holds the passphrase.")
]


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


def takes_key(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options --key-file and --passphrase-env for the encrypted models that it loads."""

    @functools.wraps(command)
    def run(*arguments: Any, key_file: Path | None, passphrase_env: str | None, **options: Any) -> None:
        if key_file or passphrase_env:
            os.environ[KEY_FILE], os.environ[PASSPHRASE_ENV] = str(key_file or ""), passphrase_env or ""
        command(*arguments, **options)

    added = {"key_file": KeyFile, "passphrase_env": PassphraseEnv}
    signature = inspect.signature(command, eval_str=True)
    more = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=a) for n, a in added.items()]
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, **added}
    return run


def given_key() -> str | bytes | None:
    """Return the key that the environment names; None if it names none. Raises InputError."""
    return read_key(os.environ.get(KEY_FILE, ""), os.environ.get(PASSPHRASE_ENV, ""))


def read_key(file: str | Path | None, passphrase_env: str | None) -> str | bytes | None:
    """Return the key in a file, or the passphrase in a variable; None if neither is named. Raises InputError."""
    if file and passphrase_env:
        raise InputError("give --key-file or --passphrase-env, not both")
    if passphrase_env:
        found = os.environ.get(passphrase_env, "")
        if not found:
            raise InputError(f"the environment has no passphrase in {passphrase_env}")
        return found
    return _in_file(Path(file)) if file else None


def _in_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(4 * _KEY)
    except OSError as error:
        raise InputError(f"the key file cannot be read: {error}") from error
    if len(data) == _KEY:
        return data
    try:
        found = bytes.fromhex(data.decode("ascii"))
    except ValueError:
        found = b""
    if len(found) != _KEY:
        raise InputError(f"{str(path)!r} is not a key: a key is {_KEY} bytes, or {2 * _KEY} hex digits")
    return found
