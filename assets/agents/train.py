"""Train the policy by which a creature turns and speeds up, from what it senses. Writes ONNX.

    python train.py --out agents.onnx [--minutes 4] [--seed 0]

A few small worlds live for two seconds or three. What makes a creature's life good is differentiable, and so is the
world, so the gradient flows back through all steps to the policy that all creatures share. The world is that of the
demo, demos/agents/flock.py. Needs torch, onnx and onnxscript; runs on one core of a CPU.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "demos" / "agents"))
from flock import CLOSE, FEAR, NEAR, SENSES, moved, senses

WORLDS, CREATURES = 3, 80
STEPS, SECONDS = 44, 0.06
HIDDEN = 32
CRUISE = 0.42
"""The speed at which a creature likes to go."""


class Policy(nn.Module):
    """Two hidden layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(SENSES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2), nn.Tanh()
        )

    def forward(self, senses: Tensor) -> Tensor:
        """(worlds, creatures, 12) → (worlds, creatures, 2), -1..1: how to turn, and how to speed up."""
        action: Tensor = self.layers(senses)
        return action


def beginning(half: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Worlds in which creatures go anywhere, and where a hawk is, and goes."""
    angle = torch.rand(WORLDS, CREATURES) * 2 * math.pi
    place = [(torch.rand(WORLDS, CREATURES) * 2 - 1) * side for side in half]
    state = torch.stack([*place, CRUISE * torch.cos(angle), CRUISE * torch.sin(angle)], 1)
    hawk = torch.stack([(torch.rand(WORLDS, 1) * 2 - 1) * side for side in half] + [torch.ones(WORLDS, 1)], 1)
    hawk[0, 2] = 0  # a world without
    return state, hawk


def cost(state: Tensor, action: Tensor, hawk: Tensor, half: tuple[float, float]) -> dict[str, Tensor]:
    """What is bad about a moment, by name."""
    x, y, speed_x, speed_y = state.unbind(1)
    across, down = x.unsqueeze(1) - x.unsqueeze(2), y.unsqueeze(1) - y.unsqueeze(2)
    distance = (across**2 + down**2 + 1e-8).sqrt() + 10 * torch.eye(x.shape[1])
    near = torch.exp(-0.5 * (distance / NEAR) ** 2)
    count = near.sum(2)
    speed = (speed_x**2 + speed_y**2 + 1e-6).sqrt()
    ahead = torch.stack([speed_x / speed, speed_y / speed], 2)
    like = (near * (ahead @ ahead.transpose(1, 2))).sum(2) / (count + 0.3)
    hawk_away = ((x - hawk[:, 0]) ** 2 + (y - hawk[:, 1]) ** 2 + 1e-6).sqrt()
    return {
        "strangers": 0.8 * (1 - like).mean(),
        "alone": 1.0 * torch.exp(-count / 3).mean(),
        "crowded": 1.2 * (torch.relu(1 - distance / (2.2 * CLOSE)) ** 2).sum(2).mean(),
        "hawk": 6.0 * (torch.relu(1 - hawk_away / (1.4 * FEAR)) ** 2 * hawk[:, 2]).mean(),
        "walls": 12.0
        * sum((torch.relu(at.abs() - side + 0.07) / 0.07).square().mean() for at, side in ((x, half[0]), (y, half[1]))),
        "slow": 3.0 * ((speed - CRUISE) ** 2).mean(),
        "effort": 0.06 * action.square().mean(),
    }


def train(minutes: float, seed: int) -> Policy:
    """Train for so many minutes of one core. The learning rate follows the clock."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters())
    step, begun = 0, time.process_time()
    kept: tuple[Tensor, Tensor, tuple[float, float]] | None = None
    while (spent := (time.process_time() - begun) / (60 * minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * (1 - spent) + 1e-4
        if kept is None or step % 4 == 0:  # lives go on for four rounds
            half = (float(torch.empty(1).uniform_(0.4, 0.9)), float(torch.empty(1).uniform_(0.4, 0.7)))
            state, hawk = beginning(half)
        else:
            state, hawk, half = kept
        costs: dict[str, Tensor] = {}
        for _ in range(STEPS):
            action = policy(senses(torch, state, hawk, half))
            state = moved(torch, state, action, half, SECONDS)
            for name, value in cost(state, action, hawk, half).items():
                costs[name] = costs.get(name, 0) + value / STEPS
        loss = sum(costs.values())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        kept = state.detach(), hawk, half
        step += 1
        if step % 20 == 0:
            told = ", ".join(f"{name} {float(value):.3f}" for name, value in costs.items())
            print(f"{spent:4.0%} step {step}: {float(loss):.3f} ({told})", flush=True)
    return policy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("agents.onnx"))
    parser.add_argument("--minutes", type=float, default=4.0, help="of one core's time")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    policy = train(arguments.minutes, arguments.seed).eval()
    torch.onnx.export(
        policy,
        (torch.zeros(2, 9, SENSES),),
        arguments.out,
        input_names=["senses"],
        output_names=["action"],
        dynamic_shapes=({0: torch.export.Dim("worlds"), 1: torch.export.Dim("creatures")},),
        external_data=False,
        verbose=False,
    )
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
