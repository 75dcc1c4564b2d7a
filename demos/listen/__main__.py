"""Listen: a ribbon of sound lights up while somebody speaks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

FRAMES = 138  # of a recording: its last seconds have talk, music, and talk again


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.stage import parser_of, perform

    parser = parser_of(
        "listen",
        "A recurrent network hears whether somebody speaks, thirty times a second, and the sound's ribbon lights up. "
        "Space pauses.",
    )
    parser.add_argument("--model", type=Path, metavar="FILE", help="your own Silero VAD (default: the project's own)")
    parser.add_argument(
        "--source",
        type=Path,
        metavar="FILE",
        help='a file with sound, or "microphone" (default: an evening that the demo makes)',
    )
    parser.add_argument("--mute", action="store_true", help="do not play the file")
    parser.add_argument("--at", type=_second, default=0.0, metavar="S", help="the second to begin at (default: 0)")
    options = parser.parse_args(argv)
    if options.at and str(options.source).startswith("microphone"):
        parser.error("--at is a second of a file: a microphone has none")

    from .view import ListenView

    return perform(options, "listen", ListenView, FRAMES)


def _second(text: str) -> float:
    try:
        second = float(text)
    except ValueError:
        second = -1.0
    if not 0 <= second < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return second


if __name__ == "__main__":  # python demos/listen
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("listen")(sys.argv[1:]))
