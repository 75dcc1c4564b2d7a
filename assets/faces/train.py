"""Train the finder of faces on people that the demos draw, before any clutter. Writes ONNX.

    python train.py --out faces.onnx [--minutes 8] [--seed 0]

Inputs and outputs are those of MediaPipe's BlazeFace (V. Bazarevsky et al., BlazeFace: Sub-millisecond Neural Face
Detection on Mobile GPUs, 2019), so the demo reads both with one decoder: 896 anchors, two in each cell of a grid of
16 x 16 and six in each cell of a grid of 8 x 8. Here all anchors of a cell say the same. Faces of tones that the
network finds harder count more, until all tones are alike (after S. Sagawa et al., Distributionally Robust Neural
Networks for Group Shifts, 2020); `fairness.py` measures it.
Needs torch, onnx, onnxscript and Pillow; runs on one core of a CPU.
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
from assets.faces.pictures import SIDE, TONES, Seen, sample
from demos.faces.finders import BlazeFace, reader_of

BATCH, MEASURED = 48, 500
DRAWN, KEPT = 12, 3000  # new pictures a step, and the newest ones, of which a batch is chosen
GRIDS = ((16, 2, 0.06, 0.34), (8, 6, 0.24, 0.95))
"""Cells a side, anchors a cell, and the sizes of faces that it is for, as shares of the picture."""
UNIT = 16.0  # pixels for 1 of what the network's last convolutions say


class Faces(nn.Module):
    """Eight convolutions, each with a normalisation and a rectifier, and one of 17 channels on each grid."""

    def __init__(self) -> None:
        super().__init__()
        widths = ((3, 12, 2), (12, 20, 2), (20, 20, 1), (20, 32, 2), (32, 36, 1), (36, 36, 1), (36, 40, 2), (40, 40, 1))
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
            for a, b, stride in widths
        )
        self.fine, self.coarse = nn.Conv2d(36, 17, 1), nn.Conv2d(40, 17, 1)
        for head in (self.fine, self.coarse):
            nn.init.constant_(head.bias[:1], -3.0)  # most cells have no face

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, 128, 128, 3) in -1..1 → (batch, 896, 16): the box's middle and size, then six points, in pixels from
        the anchor; and (batch, 896, 1): what the face's probability is the sigmoid of."""
        x = image.permute(0, 3, 1, 2)
        for layer in self.layers[:6]:
            x = layer(x)
        fine = self.fine(x)
        for layer in self.layers[6:]:
            x = layer(x)
        found = torch.cat([spread(fine, 2), spread(self.coarse(x), 6)], 1)
        return found[..., 1:] * UNIT, found[..., :1]


def spread(grid: Tensor, anchors: int) -> Tensor:
    """(batch, 17, rows, columns) → (batch, rows * columns * anchors, 17)."""
    cells = grid.flatten(2).transpose(1, 2)
    return cells.unsqueeze(2).expand(-1, -1, anchors, -1).reshape(grid.shape[0], -1, 17)


def cells() -> tuple[np.ndarray, np.ndarray]:
    """Of each anchor: its middle (896, 2), and (896, 3): the cell's side, the smallest and the largest face. 0..1."""
    places, limits = [], []
    for side, anchors, low, high in GRIDS:
        y, x = (np.mgrid[:side, :side] + 0.5) / side
        places.append(np.repeat(np.stack([x, y], -1).reshape(-1, 2), anchors, 0))
        limits.append(np.tile([1 / side, low, high], (side * side * anchors, 1)))
    return np.concatenate(places), np.concatenate(limits)


PLACES, LIMITS = cells()


class Balance:
    """How much a face of each tone counts: more where the loss is higher than that of all."""

    def __init__(self) -> None:
        self.weights = torch.ones(TONES)

    def update(self, loss: Tensor, tone: Tensor) -> None:
        """`loss` of each anchor that has a face, and the tone of the face."""
        mean = float(loss.mean())
        for index in range(TONES):
            own = loss[tone == index]
            if len(own):
                self.weights[index] *= float(np.exp(0.02 * np.clip(float(own.mean()) / max(mean, 1e-6) - 1, -1, 1)))
        self.weights = (self.weights / self.weights.mean()).clamp(0.3, 4)


def answers(faces: list[Seen]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of each anchor: whether it has a face (896), what it should say (896, 16) in pixels, whether it counts (896), and
    the tone of its face (896)."""
    has, says, counts = np.zeros(896, np.float32), np.zeros((896, 16), np.float32), np.ones(896, np.float32)
    tones = np.zeros(896, np.int64)
    for seen in sorted(faces, key=lambda one: one.face.box[0] - one.face.box[2]):  # the smallest last
        face = seen.face
        low, high = np.array(face.box[:2]), np.array(face.box[2:])
        middle, size = (low + high) / 2, float(high[0] - low[0])
        away = np.abs(PLACES - middle).max(1)
        fits = (size > LIMITS[:, 1]) & (size < LIMITS[:, 2])
        near = fits & (away < np.maximum(0.2 * size, 0.55 * LIMITS[:, 0]))
        counts[(away < 0.5 * size) & (has == 0)] = 0
        has[near], counts[near], tones[near] = 1, 1, round(seen.tone)
        targets = np.concatenate([middle[None], face.points])[None] - PLACES[near][:, None]
        says[near] = np.insert(targets.reshape(-1, 14), [2, 2], size, 1) * SIDE
    return has, says, counts, tones


def loss_of(network: Faces, balance: Balance, batch: list[tuple[np.ndarray, list[Seen]]], spent: float) -> Tensor:
    """How wrong the network is about these pictures, when this share of the time is over."""
    image = torch.from_numpy(np.stack([pixels for pixels, _ in batch]))
    parts = zip(*(answers(faces) for _, faces in batch), strict=True)
    has, says, counts, tones = (torch.from_numpy(np.stack(part)) for part in parts)
    regressors, scores = network(image)
    sure = F.binary_cross_entropy_with_logits(scores[..., 0], has, reduction="none")
    there = has > 0
    balance.update(sure[there].detach(), tones[there])
    counts = torch.where(there, balance.weights[tones], counts)
    hard = (torch.sigmoid(scores[..., 0].detach()) - has).abs() ** (1.5 * max(0.0, 1 - 1.5 * spent))  # first of all
    loss = (sure * hard * counts).sum() / has.sum().clamp(min=1)
    away = F.smooth_l1_loss(regressors / UNIT, says / UNIT, reduction="none", beta=0.1).mean(-1)
    return loss + 4 * (away * has).sum() / has.sum().clamp(min=1)


def measure(network: Faces, random: np.random.Generator, scenery: Image.Image) -> str:
    """Compare what is found in new pictures with what is there."""
    there = found = right = 0
    away = list[float]()
    read = reader_of(BlazeFace(SIDE), regressors=(1, 896, 16), classificators=(1, 896, 1))
    for _ in range(MEASURED):
        pixels, faces = sample(random, scenery)
        with torch.no_grad():
            regressors, scores = network(torch.from_numpy(pixels)[None])
        boxes = read({"regressors": regressors.numpy(), "classificators": scores.numpy()})
        there, found = there + len(faces), found + len(boxes)
        for face in (seen.face for seen in faces):
            middle, size = np.add(face.box[:2], face.box[2:]) / 2 * SIDE, (face.box[2] - face.box[0]) * SIDE
            off = [np.abs((one.box[:2] + one.box[2:]) / 2 - middle).max() / size for one in boxes]
            if off and min(off) < 0.25:
                right += 1
                points = boxes[int(np.argmin(off))].points
                away.append(np.linalg.norm(points - face.points * SIDE, axis=1).mean() / size)
    shares = right / there, right / max(found, 1), float(np.mean(away or [np.nan]))
    return (
        f"{MEASURED} new pictures with {there} faces: {shares[0]:.1%} of the faces are found, {shares[1]:.1%} of what "
        f"is found is a face, and points are off by {shares[2]:.1%} of a face's width"
    )


def main() -> None:
    arguments = training.asked(__doc__, "faces.onnx", minutes=8)
    scenery = Image.open(resource("assets", "painter", "scene.jpg")).convert("RGB")
    random = training.begin(arguments.seed)
    network = Faces()
    amounts = {"batch": BATCH, "first": 2 * BATCH, "drawn": DRAWN, "kept": KEPT}
    draw, loss = partial(sample, random, scenery), partial(loss_of, network, Balance())
    training.train(network, draw, loss, random, arguments.minutes, **amounts, rate=3e-3)
    network.eval()
    image = torch.zeros(1, SIDE, SIDE, 3)
    training.write(arguments.out, network, (image,), ["input"], ["regressors", "classificators"])
    print(measure(network, np.random.default_rng(arguments.seed + 1), scenery))


if __name__ == "__main__":
    main()
