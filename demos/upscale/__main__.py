"""Upscale: a 3D scene is rendered at half size, and a network enlarges it."""

from __future__ import annotations

import argparse
import sys

FRAMES = 3  # of a recording


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.stage import parser_of, perform

    parser = parser_of(
        "upscale",
        "A 3D scene is rendered at half of the window's size. Left of the line it is enlarged by bilinear sampling, "
        "right of it by a network. The loupe, which follows the mouse, shows both; drag the line with the mouse.",
    )
    parser.add_argument(
        "--size", type=_size, default=(640, 360), metavar="WxH", help="what the scene is rendered at (default: 640x360)"
    )
    parser.add_argument(
        "--budget", type=float, default=8.0, metavar="MS", help="the network's milliseconds a frame (default: 8)"
    )
    parser.add_argument(
        "--at", type=float, default=3.0, metavar="S", help="the scene's second to begin at (default: 3)"
    )
    options = parser.parse_args(argv)
    if options.budget < 0:
        parser.error(f"argument --budget: {options.budget} milliseconds are less than none")

    from .view import UpscaleView

    width, height = options.size
    return perform(options, "upscale", lambda stage: UpscaleView(stage), FRAMES, (2 * width, 2 * height))


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()) or not 16 <= min(int(width), int(height)) <= 4096:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 640x360, of at least 16 pixels a side")
    return int(width), int(height)


if __name__ == "__main__":  # python demos/upscale
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("upscale")(sys.argv[1:]))
