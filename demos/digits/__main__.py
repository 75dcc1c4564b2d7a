"""Digits: draw with the mouse, and see the layers of a network light up."""

from __future__ import annotations

import sys

FRAMES = 50  # of a recording


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.stage import parser_of, perform

    parser = parser_of(
        "digits",
        "Draw a digit with the left mouse button: each layer of the network lights up as you draw. The right button or "
        "space wipes it away.",
    )
    options = parser.parse_args(argv)

    from .view import DigitsView

    return perform(options, "digits", DigitsView, FRAMES)


if __name__ == "__main__":  # python demos/digits
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("digits")(sys.argv[1:]))
