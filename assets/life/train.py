"""Train the cells' rule: from one cell, a butterfly grows, stays, and heals. Writes one step of the rule as ONNX.

    python train.py --out life.onnx [--minutes 24] [--seed 0]

The method is that of A. Mordvintsev et al., Growing Neural Cellular Automata, Distill 2020: a pool of states, some of
them wounded, grows on from step to step, and the loss is the distance of the visible channels from the target. Here the
rule is learnt as a whole, perception included, and all cells step at once, so that every run is alike.
Needs torch, onnx, onnxscript and Pillow; runs on one core of a CPU.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from target import draw_target
from torch import Tensor, nn
from torch.nn import functional as F

CHANNELS, HIDDEN = 12, 48
POOL, BATCH = 48, 4
GROWING, HEALING = 0.1, 0.16
"""The shares of the time after which worlds are kept, and then wounded."""
ALIVE = 0.1
"""A cell with less alpha around it than this is empty."""


class Rule(nn.Module):
    """One step of all cells. The first four channels are red, green, blue and alpha, multiplied by alpha."""

    def __init__(self) -> None:
        super().__init__()
        self.perceive = nn.Conv2d(CHANNELS, HIDDEN, 3, padding=1)
        self.change = nn.Conv2d(HIDDEN, CHANNELS, 1, bias=False)
        nn.init.zeros_(self.change.weight)  # an untrained rule changes nothing

    def forward(self, state: Tensor) -> Tensor:
        """(batch, 12, height, width) → the state one step later."""
        changed = state + self.change(F.relu(self.perceive(state)))
        lives = torch.minimum(around(state), around(changed)) > ALIVE
        return changed * lives.to(changed.dtype)


def around(state: Tensor) -> Tensor:
    """The greatest alpha among a cell and its eight neighbors."""
    return F.max_pool2d(state[:, 3:4], 3, stride=1, padding=1)


def seeds(count: int, side: int) -> Tensor:
    """Worlds with one cell in the middle."""
    state = torch.zeros(count, CHANNELS, side, side)
    state[:, 3:, side // 2, side // 2] = 1
    return state


def wound(state: Tensor, random: np.random.Generator) -> Tensor:
    """Cut a disc out of every other world, and a stroke out of the others."""
    side = state.shape[-1]
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    worlds = []
    for index, world in enumerate(state):
        middle_x, middle_y = random.uniform(0.25 * side, 0.75 * side, 2)
        if index % 2:
            angle, along = random.uniform(0, np.pi), random.uniform(0.2, 0.6) * side
            radius = random.uniform(0.04, 0.12) * side
        else:
            angle, along, radius = 0.0, 0.0, random.uniform(0.08, 0.22) * side
        right, down = np.cos(angle), np.sin(angle)
        far = ((x - middle_x) * right + (y - middle_y) * down).clamp(-along, along)
        distance = (x - middle_x - far * right) ** 2 + (y - middle_y - far * down) ** 2
        worlds.append(world * (distance > radius**2))
    return torch.stack(worlds)


def train(minutes: float, seed: int) -> Rule:
    """Train for so many minutes of one core. The learning rate follows the clock."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    random = np.random.default_rng(seed)
    target = torch.from_numpy(draw_target())
    side = target.shape[-1]
    rule = Rule()
    optimizer = torch.optim.Adam(rule.parameters(), lr=2e-3)
    pool = seeds(POOL, side)
    step, begun = 0, time.process_time()
    while (spent := (time.process_time() - begun) / (60 * minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min(1.0, 2.0 * (1 - spent))
        # First it learns to grow. Each world is alike then, and one is enough.
        chosen = np.array([0]) if spent < GROWING else random.choice(POOL, BATCH, replace=False)
        state = pool[chosen]
        with torch.no_grad():
            worst = ((state[:, :4] - target) ** 2).mean((1, 2, 3)).argsort(descending=True)
            chosen, state = chosen[worst.numpy()], state[worst]
            state[:1] = seeds(1, side)
            if spent > HEALING:
                state[-2:] = wound(state[-2:], random)
        for _ in range(random.integers(32, 56)):
            state = rule(state)
        loss = ((state[:, :4] - target) ** 2).mean() + 1e-3 * (state.abs() - 2).clamp(min=0).mean()
        optimizer.zero_grad()
        loss.backward()
        for weights in rule.parameters():  # a step's gradient explodes over many steps: only its direction counts
            weights.grad /= weights.grad.norm() + 1e-8
        optimizer.step()
        if torch.isfinite(loss):
            pool[chosen] = state.detach()
        step += 1
        if step % 50 == 0:
            print(f"{spent:4.0%} step {step}: loss {loss.item():.5f}", flush=True)
    return rule


def measure(rule: Rule) -> None:
    """Print how far from the target worlds are: grown, left alone, wounded, and healed."""
    target = torch.from_numpy(draw_target())
    state = seeds(1, target.shape[-1])

    def tell(what: str) -> None:
        print(f"{what}: mean square error {((state[:, :4] - target) ** 2).mean():.5f}")

    with torch.no_grad():
        for count, what in ((64, "grown"), (1000, "left alone"), (0, "wounded"), (200, "healed"), (2000, "later")):
            if not count:
                state = wound(state.repeat(16, 1, 1, 1), np.random.default_rng(1))
            for _ in range(count):
                state = rule(state)
            tell(what)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("life.onnx"))
    parser.add_argument("--minutes", type=float, default=24.0, help="of one core's time")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rule = train(arguments.minutes, arguments.seed).eval()
    measure(rule)
    sides = {2: torch.export.Dim("height"), 3: torch.export.Dim("width")}
    torch.onnx.export(
        rule,
        (seeds(1, 40),),
        arguments.out,
        input_names=["state"],
        output_names=["next"],
        dynamic_shapes=(sides,),
        external_data=False,
        verbose=False,
    )
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
