"""Ctrl-C in a frame loop: the traceback shows the user's files alone."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import TracebackType

_PACKAGE = str(Path(__file__).resolve().parents[1])
_INSTALLED = tuple({str(Path(sysconfig.get_path(name)).resolve()) for name in ("purelib", "platlib", "stdlib")})


def of_user(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package and of installed ones."""
    if traceback is None:
        return None
    rest = of_user(traceback.tb_next)
    if str(Path(traceback.tb_frame.f_code.co_filename).resolve()).startswith((_PACKAGE, *_INSTALLED)):
        return rest
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


def show_user_alone(interrupt: KeyboardInterrupt) -> None:
    """Let Python print this interrupt, if nothing catches it, with the frames of the user's files alone."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if error is interrupt:
            traceback = of_user(traceback)
            error.__traceback__ = traceback
            error.__notes__ = []  # which hook or run it was
        previous(kind, error, traceback)

    sys.excepthook = hook
