"""Faces: a network finds faces within a budget of milliseconds a frame."""

from __future__ import annotations

import sys

FRAMES = 20  # of a recording


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.seen import add_options
    from ..common.stage import parser_of, perform

    parser = parser_of(
        "faces",
        "A network finds the faces of a camera, a video or a picture, within the milliseconds of a frame that you give "
        "it. Boxes and landmarks lie over the picture in which they were found.",
    )
    add_options(parser, "BlazeFace or UltraFace, as .onnx or .tflite")
    parser.add_argument(
        "--budget", type=float, default=4.0, metavar="MS", help="the network's milliseconds a frame (default: 4)"
    )
    parser.add_argument("--scores", action="store_true", help="draw each face's score; S shows and hides them")
    options = parser.parse_args(argv)
    if not 0 <= options.budget < float("inf"):
        parser.error(f"argument --budget: {options.budget} is no number of milliseconds")

    from .view import FacesView

    return perform(options, "faces", FacesView, FRAMES)


if __name__ == "__main__":  # python demos/faces
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("faces")(sys.argv[1:]))
