"""Train the network that tells people from what is behind them, on people that the demos draw. Writes ONNX.

    python train.py --out segment.onnx [--minutes 8] [--seed 0]

A small U-Net (O. Ronneberger et al., U-Net: Convolutional Networks for Biomedical Image Segmentation, 2015): three
steps down, dilated convolutions that see far, three steps up.
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
from assets.common.poses import any_pose
from demos.common.clutter import clutter, developed
from demos.common.people import FINE, anybody, painted

WIDTH, HEIGHT = 256, 144
BATCH, MEASURED = 8, 200
DRAWN, KEPT = 3, 1500  # new pictures a step, and the newest ones, of which a batch is chosen


class Segment(nn.Module):
    """Three steps down, three dilated convolutions, three steps up beside what was there on the way down."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(layer(a, b, stride=2) for a, b in ((3, 12), (12, 20), (20, 32)))
        self.far = nn.ModuleList(layer(a, 36, dilation=far) for a, far in ((32, 1), (36, 2), (36, 4)))
        self.up = nn.ModuleList(layer(a, b) for a, b in ((36, 20), (20, 12), (12, 8)))
        self.last = nn.Conv2d(8 + 3, 1, 3, padding=1)

    def logits(self, image: Tensor) -> Tensor:
        """What the mask is the sigmoid of."""
        x, passed = image * 2 - 1, []
        for down in self.down:
            passed.append(x)
            x = down(x)
        for far in self.far:
            x = far(x)
        for up, beside in zip(self.up, reversed(passed), strict=True):
            x = F.interpolate(up(x), scale_factor=2, mode="bilinear", align_corners=False)
            x = x + beside if beside.shape[1] == x.shape[1] else torch.cat([x, beside], 1)
        return self.last(x)

    def forward(self, image: Tensor) -> Tensor:
        """(1, 3, 144, 256) in 0..1 → (1, 1, 144, 256): 1 for people."""
        return torch.sigmoid(self.logits(image))


def layer(wide_in: int, wide: int, stride: int = 1, dilation: int = 1) -> nn.Module:
    """A convolution with a normalisation and a rectifier."""
    convolution = nn.Conv2d(wide_in, wide, 3, stride, dilation, dilation, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(wide), nn.ReLU())


def sample(random: np.random.Generator, scenery: Image.Image) -> tuple[np.ndarray, np.ndarray]:
    """A picture (3, 144, 256) in 0..1, and where people are in it (1, 144, 256)."""
    people = []
    for _ in range(int(random.choice(4, p=(0.06, 0.6, 0.24, 0.1)))):
        height = HEIGHT * float(random.uniform(0.18, 0.55))
        x, y = random.uniform(0.08, 0.92) * WIDTH, random.uniform(0.25, 0.65) * HEIGHT
        pose = any_pose(random, x, y, height, waving=0.5, angle=0.6)
        people.append((anybody(random), pose))
    people.sort(key=lambda one: one[1].height)
    ground = clutter(random, (WIDTH * FINE, HEIGHT * FINE), scenery)
    picture, cover, _ = painted(people, ground)
    pixels, mask = np.asarray(picture, np.float32) / 255, np.asarray(cover, np.float32)[None] / 255
    if random.random() < 0.5:
        pixels, mask = pixels[:, ::-1], mask[..., ::-1]
    return developed(random, pixels).transpose(2, 0, 1).copy(), mask.copy()


def loss_of(network: Segment, batch: list[tuple[np.ndarray, np.ndarray]], _spent: float) -> Tensor:
    """How wrong the network is about these pictures."""
    image, wanted = (torch.from_numpy(np.stack(part)) for part in zip(*batch, strict=True))
    return F.binary_cross_entropy_with_logits(network.logits(image), wanted)


def measure(network: Segment, random: np.random.Generator, scenery: Image.Image) -> str:
    """Compare the masks of new pictures with where people are."""
    shared = whole = right = 0.0
    for _ in range(MEASURED):
        pixels, mask = sample(random, scenery)
        with torch.no_grad():
            found = network(torch.from_numpy(pixels)[None])[0].numpy() > 0.5
        there = mask > 0.5
        shared, whole = shared + (found & there).sum(), whole + (found | there).sum()
        right += (found == there).mean() / MEASURED
    return f"{MEASURED} new pictures: {right:.1%} of the pixels are right; intersection over union {shared / whole:.3f}"


def main() -> None:
    arguments = training.asked(__doc__, "segment.onnx", minutes=8)
    scenery = Image.open(resource("assets", "painter", "scene.jpg")).convert("RGB")
    random = training.begin(arguments.seed)
    network = Segment()
    amounts = {"batch": BATCH, "first": 4 * BATCH, "drawn": DRAWN, "kept": KEPT}
    draw, loss = partial(sample, random, scenery), partial(loss_of, network)
    training.train(network, draw, loss, random, arguments.minutes, **amounts, rate=4e-3)
    network.eval()
    training.write(arguments.out, network, (torch.zeros(1, 3, HEIGHT, WIDTH),), ["image"], ["mask"])
    print(measure(network, np.random.default_rng(arguments.seed + 1), scenery))


if __name__ == "__main__":
    main()
