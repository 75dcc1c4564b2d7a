"""The painter: a network repaints in oil what it sees, live. `perframe demo painter --help`."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from perframe.errors import BackendError, InputError, PerframeError

if TYPE_CHECKING:
    from perframe.host import App, Surface

    from .view import PainterView, Recording

FRAMES = 30  # of a recording, unless it is said
STEP = 1 / 30  # seconds that a frame of a recording stands for


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    options = _parse(argv)
    try:
        _run(options)
    except (PerframeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="perframe demo painter",
        description="A network repaints in oil what it sees: before and after, with the frame time on top. In a window "
        "the line can be dragged with the mouse, and Escape ends it. Without a display a picture is written.",
    )
    parser.add_argument("--source", metavar="PATH|camera|camera:N", help="also a folder (default: our own picture)")
    parser.add_argument(
        "--backend",
        choices=("auto", "cpu", "gpu_compute", "gpu_pixel"),
        default="auto",
        help="default: auto, the fastest for this machine",
    )
    parser.add_argument(
        "--size",
        type=_size,
        default=(640, 360),
        metavar="WxH",
        help="the network's resolution, multiples of 4 (default: 640x360)",
    )
    parser.add_argument("--headless", action="store_true", help="no window, although there is a display")
    parser.add_argument("--frames", type=_positive, metavar="N", help=f"end after N frames (headless: {FRAMES})")
    parser.add_argument(
        "--save", type=Path, metavar="OUT.png", help="write the last frame there (headless: painter.png)"
    )
    return parser.parse_args(argv)


def _size(text: str) -> tuple[int, int]:
    try:
        width, height = (int(side) for side in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 640x360") from None
    if min(width, height) < 16 or width % 4 or height % 4:
        raise argparse.ArgumentTypeError(f"{text}: both sides must be multiples of 4, and at least 16")
    return width, height


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of frames")
    return int(text)


def _run(options: argparse.Namespace) -> None:
    from perframe.host import App, ManualClock
    from perframe.media import open_source
    from perframe.resources import resource

    from .backend import choose
    from .view import PainterView, Recording

    width, height = options.size
    if options.save and not options.save.absolute().parent.is_dir():
        raise InputError(f"--save {options.save}: there is no folder {options.save.absolute().parent}")
    with ExitStack() as stack:
        name = options.source or str(resource("assets", "painter", "scene.png"))
        enough = (width * 5 // 2, height * 5 // 2)  # sharp beside the painting, yet never aliased
        source = open_source(name, enough, loop=True)
        stack.callback(source.release)
        enlarged = max(1, min(1280 // width, 720 // height))
        surface, is_window = _open_surface((width * enlarged, height * enlarged), options.headless)
        stack.callback(surface.release)
        backend = choose(options.backend, surface.ctx)
        recording = Recording(options.frames, options.save, in_step=not is_window)
        if not is_window:
            recording.frames, recording.save = options.frames or FRAMES, options.save or Path("painter.png")
        view = PainterView(source, backend, options.size, recording)
        app = App(surface=surface, clock=None if is_window else ManualClock(STEP), stop_on_error=True)
        if is_window:
            app.run(view)
        else:
            _record(app, view, recording)
    if view.timer.milliseconds is not None:
        print(f"a frame takes {view.timer.milliseconds:.1f} ms")
    if recording.save:
        print(f"the picture is in {recording.save.absolute()}")


def _record(app: App, view: PainterView, recording: Recording) -> None:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("painting", total=recording.frames)
        recording.on_frame = lambda: progress.advance(task)
        app.run(view)


def _open_surface(size: tuple[int, int], headless: bool) -> tuple[Surface, bool]:
    """(surface, whether it is a window): a window if possible, else the best that is. Prints what is missing."""
    from perframe.host import open_surface
    from perframe.host.blank import BlankSurface

    if not headless:
        try:
            return open_surface(size, "perframe: the painter", headless=False), True
        except BackendError as error:
            print(f"drawing off screen: {error}")
    try:
        return open_surface(size, "", headless=True), False
    except BackendError as error:
        print(f"drawing without OpenGL: {error}")
    return BlankSurface(size), False


if __name__ == "__main__":  # python demos/painter
    from perframe.command_line.demo import load_demo

    sys.exit(load_demo("painter")(sys.argv[1:]))
