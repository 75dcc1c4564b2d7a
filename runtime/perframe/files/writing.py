"""Writing of files: whole, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from perframe.errors import ModelError
from perframe.files.tensors import Buffer


def write(files: Mapping[Path, Iterable[Buffer]]) -> None:
    """Write files beside their places, and put them there when all are whole and on the disk. Raises ModelError.

    A model that was loaded from one of these paths keeps the old file's bytes. Windows does not replace a file that is
    mapped, and so raises.
    """
    for path in files:
        if not path.parent.is_dir():
            raise ModelError(f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}")
    mark = secrets.token_hex(4)
    beside = {path: path.with_name(f".{path.name}.{mark}") for path in files}
    path = Path()
    try:
        for path, pieces in files.items():
            with open(beside[path], "xb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
        for path in files:
            os.replace(beside[path], path)
    except OSError as error:
        raise ModelError(f"{str(path)!r} cannot be written: {error}") from error
    finally:
        for other in beside.values():
            with suppress(OSError):  # it has its place, or was never made
                other.unlink()
