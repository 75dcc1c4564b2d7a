"""Agents: one batched network steers a thousand creatures; the mouse is a hawk."""

from __future__ import annotations

import sys

FRAMES = 330  # of a recording


def main(argv: list[str]) -> int:
    """Run it. Returns the exit status: 0, or 1 where something failed; argparse exits with 2 by itself."""
    from ..common.stage import parser_of, perform, positive

    parser = parser_of(
        "agents",
        "A thousand creatures, each steered by the same network. They flee from the mouse; while the left button is "
        "held, the creatures do not flee. Space scatters them.",
    )
    parser.add_argument("--creatures", type=positive, default=1000, metavar="N", help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the places at which they begin (default: 0)")
    options = parser.parse_args(argv)

    from .view import AgentsView

    return perform(options, "agents", lambda stage: AgentsView(stage, options.creatures, options.seed), FRAMES)


if __name__ == "__main__":  # python demos/agents
    from perframe.command_line.commands.demo import load_demo

    sys.exit(load_demo("agents")(sys.argv[1:]))
