"""Depth: a network sees depth in one picture, and the mouse is a lamp in it."""

from __future__ import annotations

import sys

FRAMES = 40  # of a recording


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.seen import add_options
    from ..common.stage import parser_of, perform

    parser = parser_of(
        "depth",
        "A network estimates depth from one picture, which becomes a relief. The mouse is a lamp in it, and the wheel "
        "moves the lamp nearer or farther. Space takes the next scene, and D shows the depth.",
    )
    add_options(parser, "model of depth, such as MiDaS", "scenes that the project drew")
    parser.add_argument(
        "--normalize",
        choices=("unit", "imagenet", "half"),
        help="pixels of your model: 0..1, ImageNet's mean and deviation, or -1..1 (default: what the file's metadata "
        "says, or else imagenet)",
    )
    parser.add_argument("--size", type=_size, metavar="WxH", help="input of a model whose sizes are open")
    parser.add_argument("--distance", action="store_true", help="your model's output is distance, not inverse depth")
    parser.add_argument(
        "--budget", type=float, default=4.0, metavar="MS", help="the network's milliseconds a frame (default: 4)"
    )
    options = parser.parse_args(argv)
    if not 0 <= options.budget < float("inf"):
        parser.error(f"argument --budget: {options.budget} is no number of milliseconds")

    from .view import DepthView

    return perform(options, "depth", DepthView, FRAMES)


def _size(text: str) -> tuple[int, int]:
    from argparse import ArgumentTypeError

    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()) or not 16 <= min(int(width), int(height)) <= 4096:
        raise ArgumentTypeError(f"{text!r} is no size such as 384x224, of at least 16 elements a side")
    return int(width), int(height)


if __name__ == "__main__":  # python demos/depth
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("depth")(sys.argv[1:]))
