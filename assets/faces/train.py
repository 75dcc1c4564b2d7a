"""Train the finder of faces on people that the demos draw, before any clutter. Writes ONNX.

    python train.py --out faces.onnx [--minutes 8] [--seed 0]

Inputs and outputs are those of MediaPipe's BlazeFace (V. Bazarevsky et al., BlazeFace: Sub-millisecond Neural Face
Detection on Mobile GPUs, 2019), so the demo reads both with one decoder: 896 anchors, two in each cell of a grid of
16 x 16 and six in each cell of a grid of 8 x 8. Here all anchors of a cell say the same.
Needs torch, onnx, onnxscript and Pillow; runs on one core of a CPU.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageFilter
from torch import Tensor, nn
from torch.nn import functional as F

from perframe.resources import resource

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from assets.common import training
from assets.common.poses import any_pose
from demos.common.clutter import clutter, developed
from demos.common.people import FINE, Face, Pose, anybody, painted
from demos.faces.finders import BlazeFace, merged

SIDE = 128
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


def sample(random: np.random.Generator, scenery: Image.Image) -> tuple[np.ndarray, list[Face]]:
    """A picture (128, 128, 3) in -1..1, and its faces, in shares of the picture."""
    people: list[tuple[Any, Pose]] = []
    for _ in range(int(random.choice(7, p=(0.08, 0.24, 0.2, 0.16, 0.12, 0.1, 0.1)))):
        height = SIDE * float(np.exp(random.uniform(np.log(0.1), np.log(0.75 if random.random() < 0.25 else 0.3))))
        x, y = random.uniform(0.05, 0.95) * SIDE, random.uniform(0.1, 0.85) * SIDE
        pose = any_pose(random, x, y, height, waving=0.15, angle=0.5)
        if all(np.hypot(pose.x - p.x, pose.y - p.y) > 0.62 * (pose.height + p.height) for _, p in people):
            people.append((anybody(random), pose))
    people.sort(key=lambda one: one[1].height)
    ground = clutter(random, (SIDE * FINE, SIDE * FINE), scenery)
    picture, _, faces = painted(people, ground)
    picture = picture.filter(ImageFilter.GaussianBlur(random.uniform(0, 0.8)))  # as resampling blurs
    pixels = developed(random, np.asarray(picture, np.float32) / 255)
    if random.random() < 0.5:  # bars, as of a wide picture that fills the square
        bar = int(random.uniform(0.05, 0.25) * SIDE)
        pixels[:bar] = pixels[SIDE - bar :] = 0
        faces = [face for face in faces if bar < (face.box[1] + face.box[3]) / 2 < SIDE - bar]
    shares = [
        Face(tuple(np.array(face.box) / SIDE), face.points / SIDE)
        for index, face in enumerate(faces)
        if is_seen(face, faces[index + 1 :])
    ]
    return pixels * 2 - 1, shares


def is_seen(face: Face, before: list[Face]) -> bool:
    """Whether a face is visible: no body in front of it covers its middle, roughly."""
    left, top, right, bottom = face.box
    x, y = (left + right) / 2, (top + bottom) / 2
    for other in before:
        size = other.box[2] - other.box[0]
        middle = (other.box[0] + other.box[2]) / 2
        if abs(middle - x) < size and y > other.box[1] + 0.6 * size:
            return False
    return True


def answers(faces: list[Face]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each anchor: whether it has a face (896), what it should say (896, 16) in pixels, whether it counts (896)."""
    has, says, counts = np.zeros(896, np.float32), np.zeros((896, 16), np.float32), np.ones(896, np.float32)
    for face in sorted(faces, key=lambda one: one.box[0] - one.box[2]):  # the smallest last
        low, high = np.array(face.box[:2]), np.array(face.box[2:])
        middle, size = (low + high) / 2, float(high[0] - low[0])
        away = np.abs(PLACES - middle).max(1)
        fits = (size > LIMITS[:, 1]) & (size < LIMITS[:, 2])
        near = fits & (away < np.maximum(0.2 * size, 0.55 * LIMITS[:, 0]))
        counts[(away < 0.5 * size) & (has == 0)] = 0
        has[near], counts[near] = 1, 1
        targets = np.concatenate([middle[None], face.points])[None] - PLACES[near][:, None]
        says[near] = np.insert(targets.reshape(-1, 14), [2, 2], size, 1) * SIDE
    return has, says, counts


def loss_of(network: Faces, batch: list[tuple[np.ndarray, list[Face]]], spent: float) -> Tensor:
    """How wrong the network is about these pictures, when this share of the time is over."""
    image = torch.from_numpy(np.stack([pixels for pixels, _ in batch]))
    has, says, counts = (torch.from_numpy(np.stack(part)) for part in zip(*(answers(f) for _, f in batch), strict=True))
    regressors, scores = network(image)
    sure = F.binary_cross_entropy_with_logits(scores[..., 0], has, reduction="none")
    hard = (torch.sigmoid(scores[..., 0].detach()) - has).abs() ** (1.5 * max(0.0, 1 - 1.5 * spent))  # first of all
    loss = (sure * hard * counts).sum() / has.sum().clamp(min=1)
    away = F.smooth_l1_loss(regressors / UNIT, says / UNIT, reduction="none", beta=0.1).mean(-1)
    return loss + 4 * (away * has).sum() / has.sum().clamp(min=1)


def measure(network: Faces, random: np.random.Generator, scenery: Image.Image) -> str:
    """Compare what is found in new pictures with what is there."""
    there = found = right = 0
    away = list[float]()
    decoder = BlazeFace(SIDE)
    for _ in range(MEASURED):
        pixels, faces = sample(random, scenery)
        with torch.no_grad():
            regressors, scores = network(torch.from_numpy(pixels)[None])
        boxes = merged(*decoder.candidates({"regressors": regressors.numpy(), "classificators": scores.numpy()}))
        there, found = there + len(faces), found + len(boxes)
        for face in faces:
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
    draw, loss = partial(sample, random, scenery), partial(loss_of, network)
    training.train(network, draw, loss, random, arguments.minutes, **amounts, rate=3e-3)
    network.eval()
    image = torch.zeros(1, SIDE, SIDE, 3)
    training.write(arguments.out, network, (image,), ["input"], ["regressors", "classificators"])
    print(measure(network, np.random.default_rng(arguments.seed + 1), scenery))


if __name__ == "__main__":
    main()
