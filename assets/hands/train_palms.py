"""Train the detector of palms on hands that the demo draws, before any clutter. Writes ONNX.

    python train_palms.py --out palms.onnx [--minutes 10] [--seed 0]

Inputs and outputs are those of MediaPipe's BlazePalm (F. Zhang et al., MediaPipe Hands: On-device Real-time Hand
Tracking, 2020) for a smaller picture, so the demo reads both with one decoder: 896 anchors, two in each cell of a grid
of 16 x 16 and six in each cell of a grid of 8 x 8. Here all anchors of a cell say the same. Needs torch, onnx,
onnxscript and Pillow; runs on one core of a CPU.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

import perframe as pf
from perframe.resources import resource

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from assets.common import training
from assets.hands.pictures import SIDE, Palm, picture

BATCH, MEASURED = 32, 500
DRAWN, KEPT = 8, 4000  # new pictures a step, and the newest ones, of which a batch is chosen
GRIDS = ((16, 2, 0.04, 0.19), (8, 6, 0.13, 0.6))
"""Cells a side, anchors a cell, and the sizes of palms that it is for, as shares of the picture."""
NUMBERS = 18  # of an anchor: the middle and the size of the box, and seven points
UNIT = 16.0  # pixels for 1 of what the network's last convolutions say
Array = np.ndarray[Any, Any]


class Palms(nn.Module):
    """Nine convolutions, each with a normalisation and a rectifier, and one of 19 channels on each grid."""

    def __init__(self) -> None:
        super().__init__()
        widths = (
            (3, 12, 2), (12, 20, 2), (20, 24, 1), (24, 36, 2), (36, 40, 1), (40, 40, 1), (40, 48, 2), (48, 48, 1),
            (48, 48, 1),
        )  # fmt: skip
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
            for a, b, stride in widths
        )
        self.fine, self.coarse = nn.Conv2d(40, NUMBERS + 1, 1), nn.Conv2d(48, NUMBERS + 1, 1)
        for head in (self.fine, self.coarse):
            nn.init.constant_(head.bias[:1], -3.0)  # most cells have no palm

    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, 128, 128, 3) in 0..1 → (batch, 896, 18): the box's middle and size, then seven points, in pixels from
        the anchor; and (batch, 896, 1): logits."""
        x = picture.permute(0, 3, 1, 2) * 2 - 1
        for layer in self.layers[:6]:
            x = layer(x)
        fine = self.fine(x)
        for layer in self.layers[6:]:
            x = layer(x)
        found = torch.cat([spread(fine, 2), spread(self.coarse(x), 6)], 1)
        return found[..., 1:] * UNIT, found[..., :1]


def spread(grid: Tensor, anchors: int) -> Tensor:
    """(batch, 19, rows, columns) → (batch, rows * columns * anchors, 19)."""
    cells = grid.flatten(2).transpose(1, 2)
    return cells.unsqueeze(2).expand(-1, -1, anchors, -1).reshape(grid.shape[0], -1, NUMBERS + 1)


ANCHORS = pf.vision.ssd_anchors(SIDE, (8, 16, 16, 16))
PLACES = ANCHORS[:, :2] * SIDE
LIMITS = np.concatenate([np.tile([1 / side, low, high], (side * side * n, 1)) for side, n, low, high in GRIDS]) * SIDE


def answers(palms: list[Palm]) -> tuple[Array, Array, Array]:
    """Of each anchor: whether it has a palm (896), what it should say (896, 18), and whether it counts (896)."""
    has, says, counts = np.zeros(896, np.float32), np.zeros((896, NUMBERS), np.float32), np.ones(896, np.float32)
    for palm in palms:
        low, high = palm.box[:2], palm.box[2:]
        middle, size = (low + high) / 2, float(high[0] - low[0])
        away = np.abs(PLACES - middle).max(1)
        fits = (size > LIMITS[:, 1]) & (size < LIMITS[:, 2])
        near = fits & (away < np.maximum(0.3 * size, 0.55 * LIMITS[:, 0]))
        counts[(away < 0.6 * size) & (has == 0)] = 0
        has[near], counts[near] = 1, 1
        targets = np.concatenate([middle[None], palm.points])[None] - PLACES[near][:, None]
        says[near] = np.insert(targets.reshape(-1, NUMBERS - 2), [2, 2], size, 1)
    return has, says, counts


def loss_of(network: Palms, batch: list[tuple[Array, list[Palm]]], spent: float) -> Tensor:
    """How wrong the network is about these pictures."""
    pixels = torch.from_numpy(np.stack([pixels for pixels, _ in batch]))
    has, says, counts = (
        torch.from_numpy(np.stack(part)) for part in zip(*(answers(palms) for _, palms in batch), strict=True)
    )
    numbers, logits = network(pixels)
    sure = F.binary_cross_entropy_with_logits(logits[..., 0], has, reduction="none")
    hard = (torch.sigmoid(logits[..., 0].detach()) - has).abs() ** (1.5 * max(0.0, 1 - 1.5 * spent))  # first of all
    loss = (sure * hard * counts).sum() / has.sum().clamp(min=1)
    size = (says[..., 2:3] / UNIT).clamp(min=0.3)
    away = F.smooth_l1_loss(numbers / UNIT / size, says / UNIT / size, reduction="none", beta=0.1).mean(-1)
    return loss + 4 * (away * has).sum() / has.sum().clamp(min=1)


def measure(network: Palms, random: np.random.Generator, scenery: Image.Image) -> str:
    """Compare what is found in new pictures with what is there."""
    graph = pf.FunctionalGraph("palms")
    given = [graph.add_input("float32", (1, 896, numbers)) for numbers in (NUMBERS, 1)]
    best = pf.vision.best_boxes(
        pf.vision.decode_ssd(given[0], given[1], ANCHORS, SIDE), 8, iou_threshold=0.3, score_threshold=0.5, blend=True
    )
    assert best.points is not None
    there = found = right = 0
    away = list[float]()
    with pf.Worker(graph.compile(boxes=best.boxes[0], points=best.points[0], found=best.found[0])) as worker:
        for _ in range(MEASURED):
            pixels, palms = picture(random, scenery)
            with torch.no_grad():
                worker.schedule(*(part.numpy() for part in network(torch.from_numpy(pixels)[None])))
            boxes, points, count = (worker.peek_output(name).numpy() for name in ("boxes", "points", "found"))
            there, found = there + len(palms), found + int(count)
            for palm in palms:
                size = palm.box[2] - palm.box[0]
                off = np.abs((boxes - palm.box) / size)[: int(count), :2].max(1)
                if len(off) and off.min() < 0.35:
                    right += 1
                    away.append(float(np.linalg.norm(points[off.argmin()] - palm.points, axis=1).mean() / size))
    return (
        f"{MEASURED} new pictures with {there} palms: {right / there:.1%} of the palms are found, "
        f"{right / max(found, 1):.1%} of what is found is a palm, and points are off by {np.mean(away):.1%} of a palm"
    )


def main() -> None:
    arguments = training.asked(__doc__, "palms.onnx", minutes=10)
    scenery = Image.open(resource("assets", "painter", "scene.jpg")).convert("RGB")
    random = training.begin(arguments.seed)
    network = Palms()
    amounts = {"batch": BATCH, "first": 2 * BATCH, "drawn": DRAWN, "kept": KEPT}
    draw = partial(picture, random, scenery)
    training.train(network, draw, partial(loss_of, network), random, arguments.minutes, **amounts, rate=3e-3)
    network.eval()
    training.write(arguments.out, network, (torch.zeros(1, SIDE, SIDE, 3),), ["picture"], ["palms", "scores"])
    print(measure(network, np.random.default_rng(arguments.seed + 1), scenery))


if __name__ == "__main__":
    main()
