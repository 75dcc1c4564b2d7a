"""Segment: a mask puts people before another background."""

from __future__ import annotations

import sys

FRAMES = 8  # of a recording


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.seen import add_options
    from ..common.stage import parser_of, perform

    parser = parser_of(
        "segment",
        "A network tells people from what is behind them, and the demo puts something else there. 1 is a picture, 2 is "
        "blur, 3 is a colour; space takes the next one.",
    )
    add_options(parser, "selfie segmentation model")
    parser.add_argument(
        "--background", default="", metavar="PATH|blur|RRGGBB", help="what to begin with (default: our own picture)"
    )
    options = parser.parse_args(argv)

    from .view import SegmentView

    return perform(options, "segment", SegmentView, FRAMES)


if __name__ == "__main__":  # python demos/segment
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("segment")(sys.argv[1:]))
