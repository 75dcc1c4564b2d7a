"""Hands: networks follow the 21 joints of two hands, and a pinch carries a ball."""

from __future__ import annotations

import sys
from pathlib import Path

FRAMES = 118  # of a recording


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.stage import parser_of, perform

    parser = parser_of(
        "hands",
        "A detector finds palms, a second network finds the joints of each hand in a rotated crop, and a pinch of "
        "thumb and index finger carries a ball. On a GPU nothing is read back, from the picture to the marks on it.",
    )
    parser.add_argument(
        "--source",
        metavar="PATH|camera|camera:N",
        help="a picture, a folder, a video or a camera (default: hands that the demo draws)",
    )
    for name, kind in (("detector", "palm_detection"), ("landmarks", "hand_landmark")):
        parser.add_argument(
            f"--{name}",
            type=Path,
            metavar="FILE",
            help=f"your own MediaPipe {kind}, as .onnx or .tflite (default: the project's own)",
        )
    options = parser.parse_args(argv)

    from .view import HandsView

    return perform(options, "hands", HandsView, FRAMES)


if __name__ == "__main__":  # python demos/hands
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("hands")(sys.argv[1:]))
