"""The keys of encrypted models on the command line: files and variables of the environment, never arguments.

Other users of a machine see arguments. The environment carries the choice to the processes that a command starts.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from perframe.errors import InputError

KEY_FILE, PASSPHRASE_ENV = "PERFRAME_KEY_FILE", "PERFRAME_PASSPHRASE_ENV"
_KEY = 32  # bytes

KeyFile = Annotated[
    Path | None,
    typer.Option(metavar="F", help="File with the key of an encrypted model: 32 bytes or 64 hex digits."),
]
PassphraseEnv = Annotated[
    str | None, typer.Option(metavar="NAME", help="Environment variable that holds the passphrase.")
]


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
