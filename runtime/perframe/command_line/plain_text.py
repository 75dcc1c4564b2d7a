"""Output on terminals and in files whose encoding lacks our signs, as on Windows: plain ones take their places."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable
from typing import IO, Any

PLAIN = {"→": "->", "✓": "+", "✗": "x", "×": "x", "–": "-", "…": "...", "█": "#", "•": "*"}
_NAME = "perframe.plain"


def let_print(streams: Iterable[IO[Any]] | None = None) -> None:
    """Let streams, by default the process', write plain characters instead of those that they cannot encode."""
    codecs.register_error(_NAME, _plain)
    for stream in (sys.stdout, sys.stderr) if streams is None else streams:
        if hasattr(stream, "reconfigure"):  # another program's stream may be of another kind
            stream.reconfigure(errors=_NAME)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign, "?") for sign in lost), error.end
