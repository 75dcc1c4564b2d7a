"""Train the classifier of digits on digits that `strokes.py` writes, each seen once. Writes ONNX.

    python train.py --out digits.onnx [--minutes 3] [--seed 0]

Needs torch, onnx, onnxscript and Pillow; runs on one core of a CPU.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from strokes import SIDE, write
from torch import Tensor, nn
from torch.nn import functional as F

BATCH = 64
MEASURED = 2000


class Digits(nn.Module):
    """Two convolutions, each with a rectifier and a pool, and two products."""

    def __init__(self) -> None:
        super().__init__()
        self.edges = nn.Conv2d(1, 16, 5, padding=2)
        self.parts = nn.Conv2d(16, 24, 3, padding=1)
        self.shapes = nn.Linear(24 * 49, 64)
        self.digits = nn.Linear(64, 10)

    def forward(self, ink: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(batch, 1, 28, 28), 1 for ink → (batch, 10), the probability of each digit, and before it the layers'
        activations: (batch, 16, 28, 28), (batch, 24, 14, 14) and (batch, 64)."""
        edges = F.relu(self.edges(ink))
        parts = F.relu(self.parts(F.max_pool2d(edges, 2)))
        shapes = F.relu(self.shapes(F.max_pool2d(parts, 2).flatten(1)))
        return F.softmax(self.digits(shapes), 1), edges, parts, shapes


def sample(count: int, random: np.random.Generator) -> tuple[Tensor, Tensor]:
    """So many written digits, and which they are."""
    wanted = random.integers(0, 10, count)
    ink = np.stack([write(int(digit), random) for digit in wanted])
    return torch.from_numpy(ink).reshape(count, 1, SIDE, SIDE), torch.from_numpy(wanted)


def train(minutes: float, seed: int) -> Digits:
    """Train for so many minutes of one core. The learning rate follows the clock."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    random = np.random.default_rng(seed)
    network = Digits()
    optimizer = torch.optim.Adam(network.parameters())
    step, begun = 0, time.process_time()
    while (spent := (time.process_time() - begun) / (60 * minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * (1 - spent) + 1e-5
        ink, wanted = sample(BATCH, random)
        loss = F.nll_loss(torch.log(network(ink)[0] + 1e-6), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 200 == 0:
            print(f"{spent:4.0%} step {step}: loss {loss.item():.4f}", flush=True)
    return network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("digits.onnx"))
    parser.add_argument("--minutes", type=float, default=3.0, help="of one core's time")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    network = train(arguments.minutes, arguments.seed).eval()
    ink, wanted = sample(MEASURED, np.random.default_rng(arguments.seed + 1))
    with torch.no_grad():
        right = (network(ink)[0].argmax(1) == wanted).float().mean()
    print(f"{MEASURED} digits of other hands: {right:.1%} are recognised")
    torch.onnx.export(
        network,
        (torch.zeros(2, 1, SIDE, SIDE),),
        arguments.out,
        input_names=["ink"],
        output_names=["probabilities", "edges", "parts", "shapes"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        external_data=False,
        verbose=False,
    )
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
