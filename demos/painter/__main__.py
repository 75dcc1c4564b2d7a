"""The painter: a network repaints pictures, videos and cameras in oil. `perframe demo painter --help`."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from perframe.errors import PerframeError

if TYPE_CHECKING:
    from perframe.host import App

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
    from ..common.stage import parser_of

    parser = parser_of(
        "painter",
        "A network repaints in oil what it sees: before and after, with the frame time on top. In a window the line "
        "can be dragged with the mouse.",
    )
    parser.add_argument("--source", metavar="PATH|camera|camera:N", help="also a folder (default: our own picture)")
    parser.add_argument(
        "--size",
        type=_size,
        default=(640, 360),
        metavar="WxH",
        help="the network's resolution (default: 640x360)",
    )
    return parser.parse_args(argv)


def _size(text: str) -> tuple[int, int]:
    try:
        width, height = (int(side) for side in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 640x360") from None
    if min(width, height) < 16:
        raise argparse.ArgumentTypeError(f"{text}: both sides must be at least 16")
    return width, height


def _run(options: argparse.Namespace) -> None:
    from perframe.host import App, ManualClock
    from perframe.media import open_source
    from perframe.profiling import ProfileOverlay
    from perframe.resources import resource

    from ..common.backend import choose
    from ..common.stage import check_save, open_surface
    from .view import PainterView, Recording

    width, height = options.size
    check_save(options.save)
    with ExitStack() as stack:
        name = options.source or str(resource("assets", "painter", "scene.jpg"))
        enough = (width * 5 // 2, height * 5 // 2)  # sharp beside the painting, yet never aliased
        source = open_source(name, enough, loop=True)
        stack.callback(source.release)
        enlarged = max(1, min(1280 // width, 720 // height))
        surface, is_window = open_surface(
            (width * enlarged, height * enlarged), "perframe: the painter", options.headless
        )
        stack.callback(surface.release)
        backend = choose(options.backend, surface.ctx, "painting")
        recording = Recording(options.frames, options.save, in_step=not is_window)
        if not is_window:
            recording.frames, recording.save = options.frames or FRAMES, options.save or Path("painter.png")
        view = PainterView(source, backend, options.size, recording)
        app = App(surface=surface, clock=None if is_window else ManualClock(STEP), stop_on_error=True)
        if is_window:
            app.run(view, ProfileOverlay())
        else:
            _record(app, view, recording)
    if view.timer.milliseconds is not None:
        print(f"a frame takes {view.timer.milliseconds:.1f} ms")
    if recording.save:
        print(f"the picture is in {recording.save.absolute()}")


def _record(app: App, view: PainterView, recording: Recording) -> None:
    from perframe.profiling import ProfileOverlay

    from ..common.progress import recording_progress

    with recording_progress(recording.frames or FRAMES) as recording.on_frame:
        app.run(view, ProfileOverlay())


if __name__ == "__main__":  # python demos/painter
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("painter")(sys.argv[1:]))
