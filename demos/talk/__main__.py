"""Talk: a language model answers letter by letter, and frames keep running."""

from __future__ import annotations

import argparse
import sys

FRAMES = 150  # of a recording


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.stage import parser_of, perform

    parser = parser_of(
        "talk",
        "A language model answers as the keeper of a lighthouse, and knows the weather of the scene. Type a question "
        "and press Enter; Tab changes the weather.",
    )
    parser.add_argument(
        "--budget", type=_amount, default=4.0, metavar="MS", help="the model's milliseconds a frame (default: 4)"
    )
    parser.add_argument(
        "--temperature", type=_amount, default=0.7, metavar="T", help="0 takes the likeliest letters (default: 0.7)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the answers (default: 0)")
    options = parser.parse_args(argv)

    from .view import TalkView

    return perform(options, "talk", TalkView, FRAMES, typed=True)


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return amount


if __name__ == "__main__":  # python demos/talk
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("talk")(sys.argv[1:]))
