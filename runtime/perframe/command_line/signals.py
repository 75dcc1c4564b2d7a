"""Signals that end a command: what it has begun is put in order first, such as the terminal's cursor."""

from __future__ import annotations

import signal
import sys
from types import FrameType


def end_in_order() -> None:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does: with the ends of all blocks. A second one ends it at once.

    A signal that is ignored, as `nohup` ignores SIGHUP, stays so.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    sys.exit(128 + number)
