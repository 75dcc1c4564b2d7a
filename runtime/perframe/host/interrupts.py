"""Ctrl-C in a frame loop: the traceback shows the user's files and none of ours."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType

_PACKAGE = str(Path(__file__).resolve().parents[1])


def without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package."""
    if traceback is None:
        return None
    rest = without_own_frames(traceback.tb_next)
    if str(Path(traceback.tb_frame.f_code.co_filename).resolve()).startswith(_PACKAGE):
        return rest
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


def hide_own_frames(interrupt: KeyboardInterrupt) -> None:
    """Let Python print this interrupt, if nothing catches it, without the frames of this package."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if error is interrupt:
            traceback = without_own_frames(traceback)
            error.__traceback__ = traceback
        previous(kind, error, traceback)

    sys.excepthook = hook
