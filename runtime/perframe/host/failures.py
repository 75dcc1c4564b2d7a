"""Failures of scripts: logged once with their tracebacks, and shown on the screen; and the traceback of Ctrl-C."""

from __future__ import annotations

import logging
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from perframe.errors import PerframeError
from perframe.host.frame import Clock
from perframe.safety.notebooks import preformatted

log = logging.getLogger("perframe")
SECONDS_ON_SCREEN = 5.0
_PAPER, _INK = (96, 16, 24), (255, 255, 255)
_MOST_LINES = 8
_PACKAGE = str(Path(__file__).resolve().parents[1])
_INSTALLED = tuple({str(Path(sysconfig.get_path(name)).resolve()) for name in ("purelib", "platlib", "stdlib")})


@dataclass
class Failure:
    """An error of a hook, a task or a file that was reloaded, and how often it came."""

    where: str
    """The script and its hook, such as "Painter.update"; the task; or the file."""
    message: str
    """The error's type, its text, and the line of code that raised it."""
    count: int = 1
    latest: float = 0.0
    """The time by the app's clock, in seconds."""
    stays: bool = False
    """Whether it stays on the screen until it is fixed."""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" + (f" ({self.count} times)" if self.count > 1 else "")


class Failures:
    """The failures of an app. An error that comes again from the same line is counted and not logged again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[tuple[Any, ...], Failure] = {}
        self._shown: tuple[Any, Any] = (None, None)

    def __iter__(self) -> Iterator[Failure]:
        return iter(tuple(self._failures.values()))

    def __len__(self) -> int:
        return len(self._failures)

    def __getitem__(self, index: int) -> Failure:
        """The failure at this place, in the order of their first times."""
        return tuple(self._failures.values())[index]

    def __bool__(self) -> bool:
        return True  # an empty list of failures is one

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no failures"

    def _repr_html_(self) -> str:
        return preformatted(repr(self))

    def add(self, where: str, error: BaseException, stays: bool = False) -> None:
        """Log an error and show it, or count it if it came from the same line before."""
        place = _place(error)
        known = self._failures.get((where, type(error), place))
        if known is not None:
            known.count += 1
            known.latest = self._clock.now()
            return
        is_ours = isinstance(error, PerframeError) and of_user(error.__traceback__) is None
        file, line = ("", 0) if is_ours else place  # an error that tells what to do needs no line of ours
        said = error.msg if isinstance(error, SyntaxError) else error  # whose text has the line in it
        message = f"{type(error).__name__}: {said}" + (f" ({Path(file).name}, line {line})" if file else "")
        self._failures[where, type(error), place] = Failure(where, message, 1, self._clock.now(), stays)
        log.error("%s failed: %s", where, message, exc_info=(type(error), error, _from_user(error.__traceback__)))

    def forget(self, where: str) -> None:
        """Forget the failures of a script, of all that its name begins, or of a file: it is fixed."""
        self._failures = {
            key: failure
            for key, failure in self._failures.items()
            if failure.where != where and not failure.where.startswith(f"{where}.")
        }

    def show(self, surface: Any) -> None:
        """Draw the latest failures over the surface."""
        draw_over = getattr(surface, "draw_over", None)  # a surface of the caller's may have none
        if self._failures and draw_over is not None and (picture := self._picture(surface.size)) is not None:
            draw_over(picture)

    def _picture(self, size: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
        """The latest failures as a picture, H×W×3, that fits into `size`; None if none is to be shown."""
        oldest = self._clock.now() - SECONDS_ON_SCREEN
        lines = [str(failure) for failure in self if failure.stays or failure.latest >= oldest][-_MOST_LINES:]
        if not lines:
            return None
        if self._shown[0] != (lines, size):
            self._shown = (lines, size), _draw(lines, size)
        picture: np.ndarray[Any, np.dtype[np.uint8]] = self._shown[1]
        return picture


def _place(error: BaseException) -> tuple[str, int]:
    """The file and line of the user's code that raised the error, or of ours without any; for a syntax error, those of
    the wrong line.
    """
    if isinstance(error, SyntaxError):
        return error.filename or "", error.lineno or 0
    frames = traceback.extract_tb(of_user(error.__traceback__) or error.__traceback__)
    return (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)


def _draw(lines: list[str], size: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=min(16, max(11, size[1] // 40)))
    pad = 8
    text = "\n".join(short for line in lines for short in _wrap(line, size[0] - 2 * pad, font))
    _, _, right, bottom = ImageDraw.Draw(Image.new("RGB", (1, 1))).multiline_textbbox((0, 0), text, font=font)
    picture = Image.new("RGB", (min(size[0], int(right) + 2 * pad), min(size[1], int(bottom) + 2 * pad)), _PAPER)
    ImageDraw.Draw(picture).multiline_text((pad, pad), text, fill=_INK, font=font)
    return np.asarray(picture)


def _wrap(line: str, width: int, font: Any) -> Iterator[str]:
    """Wrap a line at `width` pixels, between words where possible."""
    short = ""
    for word in line.replace("\n", " ").split(" "):
        longer = f"{short} {word}" if short else word
        if short and font.getlength(longer) > width:
            yield short
            longer = f"    {word}"
        short = longer
    yield short


def of_user(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package and of installed ones."""
    if traceback is None:
        return None
    rest = of_user(traceback.tb_next)
    if not is_of_user(traceback.tb_frame):
        return rest
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


def _from_user(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame of the user's code on; all of it without one."""
    rest = traceback
    while rest is not None and not is_of_user(rest.tb_frame):
        rest = rest.tb_next
    return rest or traceback


def is_of_user(frame: FrameType) -> bool:
    """Whether code is neither of this package nor installed."""
    file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
    if file.startswith("<"):  # of a shell or a notebook, of an import, or generated, as a dataclass's __init__ is
        return not file.startswith("<frozen") and module.partition(".")[0] != "perframe"
    return not str(Path(file).resolve()).startswith((_PACKAGE, *_INSTALLED))


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
