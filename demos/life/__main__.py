"""Life: cells grow into butterflies; cut one, and it heals."""

from __future__ import annotations

import sys

SIZE = (160, 90)  # cells
FRAMES = 150  # of a recording


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.stage import parser_of, perform, positive

    parser = parser_of(
        "life",
        "Cells that know only their neighbors grow into butterflies. The left mouse button wounds them, the right one "
        "sets a new cell, and space begins anew.",
    )
    parser.add_argument(
        "--steps", type=positive, default=8, metavar="N", help="steps of all cells a frame (default: 8)"
    )
    options = parser.parse_args(argv)

    from .view import LifeView

    return perform(options, "life", lambda stage: LifeView(stage, SIZE, options.steps), FRAMES)


if __name__ == "__main__":  # python demos/life
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("life")(sys.argv[1:]))
