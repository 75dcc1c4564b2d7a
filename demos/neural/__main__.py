"""Neural: a network inside the fragment shader is the texture of a marble."""

from __future__ import annotations

import sys

FRAMES = 60  # of a recording


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.stage import parser_of, perform, positive

    parser = parser_of(
        "neural",
        "A small network computes the color of each pixel of a marble, inside the fragment shader that draws it. Left "
        "of the line a texture of as many bytes does; the discs magnify the same spot of both. Drag the line with the "
        "mouse, and zoom with the wheel. The worker on --backend fills the texture.",
    )
    parser.add_argument(
        "--magnify", type=positive, default=5, metavar="N", help="magnification of the discs (default: 5)"
    )
    options = parser.parse_args(argv)

    from .view import NeuralView

    return perform(options, "neural", lambda stage: NeuralView(stage), FRAMES)


if __name__ == "__main__":  # python demos/neural
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("neural")(sys.argv[1:]))
