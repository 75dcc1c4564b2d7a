"""The command line that demos share, and the stage on which their scripts play: a window, or a recording off screen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import perframe as pf
from perframe.errors import BackendError, InputError, PerframeError
from perframe.host import CloseEvent, Event, KeyEvent, ManualClock
from perframe.host.pixels import picture_format
from perframe.host.surface import BlankSurface
from perframe.host.surface import open_surface as opened

from .backend import choose
from .overlay import FrameTimer
from .progress import recording_progress

if TYPE_CHECKING:
    from perframe.host import Surface

STEP = 1 / 30  # seconds that a frame of a recording stands for


@dataclass
class Stage:
    """Where a script plays. `in_step` waits for each result, so that every recording is alike; a window never waits."""

    backend: pf.BackendType
    ctx: Any
    in_step: bool
    options: argparse.Namespace

    @property
    def on_cpu(self) -> bool:
        """Whether the networks run on the CPU."""
        return self.backend is pf.BackendType.CPU

    @property
    def worker_ctx(self) -> Any:
        """The context for a worker: None for the CPU."""
        return None if self.on_cpu else self.ctx

    def asked(self, tensor: pf.Tensor) -> pf.Readback:
        """A request for the tensor's values. In a recording it is done already."""
        request = tensor.readback_request()
        while self.in_step and not request.done:
            sleep(0.0002)
        return request


def parser_of(name: str, description: str) -> argparse.ArgumentParser:
    """A parser with the options that all demos have."""
    parser = argparse.ArgumentParser(
        prog=f"perframe demo {name}",
        description=f"{description} Escape ends it, and F1 shows where the time goes. Without a display it writes a "
        "picture.",
    )
    backends = ("auto", "cpu", "gpu_compute", "gpu_pixel")
    parser.add_argument("--backend", choices=backends, default="auto", help="default: the fastest for this machine")
    parser.add_argument("--headless", action="store_true", help="no window, although there is a display")
    parser.add_argument("--frames", type=positive, metavar="N", help="end after N frames")
    parser.add_argument(
        "--save", type=Path, metavar="OUT.png", help=f"write the last frame there (headless: {name}.png)"
    )
    return parser


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def perform(
    options: argparse.Namespace,
    name: str,
    make: Callable[[Stage], pf.Script],
    frames: int,
    size: tuple[int, int] = (1280, 720),
    typed: bool = False,
) -> int:
    """Let the script that `make` returns play, off screen for `frames` frames unless the options say how many.

    Escape and Q end it; with `typed` the user types text, and Q is a letter. Returns the exit status: 0, or 1 where
    something failed, which is then printed.
    """
    try:
        _perform(options, name, make, frames, size, ("escape",) if typed else ("escape", "q"))
    except (PerframeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _perform(
    options: argparse.Namespace,
    name: str,
    make: Callable[[Stage], pf.Script],
    frames: int,
    size: tuple[int, int],
    keys: tuple[str, ...],
) -> None:
    check_save(options.save)
    surface, is_window = open_surface(size, f"perframe: {name}", options.headless)
    try:
        if surface.ctx is None:
            raise BackendError(f"the demo {name} draws with OpenGL 3.3, and there is none here: see perframe doctor")
        stage = Stage(choose(options.backend, surface.ctx), surface.ctx, not is_window, options)
        save = options.save if is_window else options.save or Path(f"{name}.png")
        count = options.frames if is_window else options.frames or frames
        app = pf.App(surface=surface, clock=None if is_window else ManualClock(STEP), stop_on_error=not is_window)
        with nullcontext() if is_window else recording_progress(count) as advance:
            end = End(count, save, advance, keys)
            app.run(make(stage), pf.profiling.ProfileOverlay(), end)
    finally:
        surface.release()
    if end.timer.milliseconds is not None:
        print(f"a frame takes {end.timer.milliseconds:.1f} ms")
    if save:
        print(f"the picture is in {save.absolute()}")


def check_save(path: Path | None) -> None:
    """Raise InputError if a picture could not be written there at the end."""
    if path and not path.absolute().parent.is_dir():
        raise InputError(f"--save {path}: there is no folder {path.absolute().parent}")
    if path:
        picture_format(path)


def open_surface(size: tuple[int, int], title: str, headless: bool) -> tuple[Surface, bool]:
    """(surface, whether it is a window): a window if possible, else the best that is. Prints what is missing."""
    if not headless:
        try:
            return opened(size, title, headless=False), True
        except BackendError as error:
            print(f"drawing off screen: {error}")
    try:
        return opened(size, "", headless=True), False
    except BackendError as error:
        print(f"drawing without OpenGL: {error}")
    return BlankSurface(size), False


SLOW = 2000.0  # milliseconds of a frame that a user should know of


class End(pf.Script):
    """Ends the app after `frames` frames, or when the user wants it, and saves the last frame. Calls `advance` after
    each frame.
    """

    def __init__(
        self,
        frames: int | None,
        save: Path | None,
        advance: Callable[[], None] | None = None,
        keys: tuple[str, ...] = ("escape", "q"),
    ) -> None:
        self._frames, self._save, self._advance, self._keys = frames, save, advance, keys
        self._seen, self._is_told = 0, False
        self.timer = FrameTimer()

    def render(self, frame: pf.Frame) -> None:
        """Count frames, and end with the last one."""
        self._seen += 1
        if self._advance is not None and (ctx := self.app.surface.ctx) is not None:
            ctx.finish()  # drivers put drawing off; a recording shows how far it is
        self.timer.tick()
        milliseconds = self.timer.milliseconds or 0.0
        if milliseconds > SLOW and self._seen > 2 and not self._is_told:  # the first one compiles
            self._is_told = True
            print(f"a frame takes {milliseconds / 1000:.1f} s here; another --backend may be faster", flush=True)
        if self._advance is not None:
            self._advance()
        if self._seen == self._frames:
            self._end()

    def on_event(self, event: Event) -> None:
        """The user ends it."""
        escaped = isinstance(event, KeyEvent) and event.pressed and event.key in self._keys
        if escaped or isinstance(event, CloseEvent):
            self._end()

    def _end(self) -> None:
        self.app.quit()
        if self._save:
            self.app.screenshot(self._save)
