"""Train the network that finds 21 joints in a crop of a hand, on hands that the demo draws. Writes ONNX.

    python train_landmarks.py --out landmarks.onnx [--minutes 9] [--seed 0]

A heat map for each joint says where it is; the joint is the mean of the places, weighted by the map's softmax, so that
it falls between cells (X. Sun et al., Integral Human Pose Regression, 2018). Needs torch, onnx, onnxscript and Pillow;
runs on one core of a CPU.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from perframe.resources import resource

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from assets.common import training
from assets.hands.pictures import CROP, REGION, Crop, crop
from demos.hands.drawn import JOINTS, LENGTH

BATCH, MEASURED = 32, 600
DRAWN, KEPT = 10, 6000  # new crops a step, and the newest ones, of which a batch is chosen
CELLS = 16  # of a heat map's side


class Landmarks(nn.Module):
    """Convolutions down to 8 x 8 cells and back to 16 x 16, a heat map for each joint, and a score for the hand."""

    def __init__(self) -> None:
        super().__init__()
        self.fine = nn.Sequential(block(3, 16, 2), block(16, 32, 2), block(32, 32))
        self.coarse = nn.Sequential(block(32, 52, 2), block(52, 52), block(52, 52))
        self.back = nn.Conv2d(52, 40, 1)
        self.aside = nn.Conv2d(32, 40, 1)
        self.joined = nn.Sequential(block(40, 40), block(40, 40))
        self.maps = nn.Conv2d(40, JOINTS, 1)
        self.score = nn.Linear(52, 1)
        y, x = torch.meshgrid(*[(torch.arange(CELLS) + 0.5) * (CROP / CELLS)] * 2, indexing="ij")
        self.register_buffer("places", torch.stack([x, y], -1).reshape(-1, 2))

    def forward(self, crops: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, 64, 64, 3) in 0..1 → (batch, 42): x and y of joints in pixels; and (batch, 1): the score, 0..1."""
        fine = self.fine(crops.permute(0, 3, 1, 2) * 2 - 1)
        coarse = self.coarse(fine)
        x = F.interpolate(self.back(coarse), scale_factor=2.0, mode="nearest") + self.aside(fine)
        weights = torch.softmax(self.maps(self.joined(x)).flatten(2), -1)
        return (weights @ self.places).flatten(1), torch.sigmoid(self.score(coarse.mean((2, 3))))


def block(channels: int, width: int, stride: int = 1) -> nn.Module:
    """A convolution with a normalisation and a rectifier."""
    return nn.Sequential(nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())


def loss_of(network: Landmarks, batch: list[Crop], spent: float) -> Tensor:
    """The distance of visible joints, and the cross entropy of the score."""
    pixels = torch.from_numpy(np.stack([one.pixels for one in batch]))
    joints = torch.from_numpy(np.stack([one.joints for one in batch]).astype(np.float32))
    visible = torch.from_numpy(np.stack([one.visible for one in batch]).astype(np.float32))
    presence = torch.tensor([one.presence for one in batch])
    found, score = network(pixels)
    away = F.smooth_l1_loss(found.reshape(-1, JOINTS, 2), joints, reduction="none", beta=0.3).sum(-1)
    known = ~torch.isnan(presence)
    sure = F.binary_cross_entropy(score[known, 0].clamp(1e-6, 1 - 1e-6), presence[known].float())
    return (away * visible).sum() / visible.sum().clamp(min=1) + sure


def measure(network: Landmarks, random: np.random.Generator, scenery: Image.Image) -> str:
    """Compare what is found in new crops with what is there."""
    away, right, told = list[float](), 0, 0
    for _ in range(MEASURED):
        one = crop(random, scenery)
        with torch.no_grad():
            found, score = network(torch.from_numpy(one.pixels)[None])
        if not np.isnan(one.presence):
            told, right = told + 1, right + ((float(score) > 0.5) == (one.presence > 0.5))
        if one.presence == 1:
            distance = np.linalg.norm(found.numpy().reshape(JOINTS, 2) - one.joints, axis=1)
            away.extend(distance[one.visible])
    size = LENGTH * CROP / REGION
    return (
        f"{MEASURED} new crops: joints are off by {np.mean(away):.2f} pixels on average, {np.mean(away) / size:.2%} of "
        f"a stretched hand (95 % within {np.quantile(away, 0.95):.2f}), and {right / told:.1%} of the scores are right"
    )


def main() -> None:
    arguments = training.asked(__doc__, "landmarks.onnx", minutes=9)
    scenery = Image.open(resource("assets", "painter", "scene.jpg")).convert("RGB")
    random = training.begin(arguments.seed)
    network = Landmarks()
    amounts = {"batch": BATCH, "first": 2 * BATCH, "drawn": DRAWN, "kept": KEPT}
    draw, loss = partial(crop, random, scenery), partial(loss_of, network)
    training.train(network, draw, loss, random, arguments.minutes, **amounts, rate=3e-3, longest=5.0)
    network.eval()
    example = torch.zeros(2, CROP, CROP, 3)
    names = ["crops"], ["landmarks", "score"]
    training.write(arguments.out, network, (example,), *names, dynamic_shapes={"crops": {0: torch.export.Dim("hands")}})
    print(measure(network, np.random.default_rng(arguments.seed + 1), scenery))


if __name__ == "__main__":
    main()
