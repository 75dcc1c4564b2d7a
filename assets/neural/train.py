"""Train the network that is the demo's texture, on a pattern that `pattern.py` draws. Writes ONNX.

    python train.py --out neural.onnx [--minutes 0.9] [--seed 0]

The position is encoded as in B. Mildenhall et al., NeRF: Representing Scenes as Neural Radiance Fields for View
Synthesis, ECCV 2020. Needs torch, onnx, onnxscript; runs on one core of a CPU.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from math import tau
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
from pattern import Array, pattern
from training import asked, begin, train, write

OCTAVES = 2
"""Of the encoding: sines and cosines of the position and its double."""
WIDTHS = (5 + 6 * OCTAVES, 40, 40, 40, 3)
POINTS = 2048
TEXTURE = (36, 17, 9)
"""The texels of a texture of as many bytes: around, from pole to pole, and over time; three bytes each."""


class Marble(nn.Module):
    """Color of a point at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(WIDTHS))

    def forward(self, position: Tensor, phase: Tensor) -> Tensor:
        """(n, 3) on the unit sphere, (n, 1) in 0..1 → RGB (n, 3) in 0..1."""
        waves = [2.0**octave * tau / 2 * position for octave in range(OCTAVES)]
        angles = torch.cat([*waves, tau * phase], 1)
        x = torch.cat([position, torch.sin(angles), torch.cos(angles)], 1)
        for layer in self.layers[:-1]:
            x = nn.functional.leaky_relu(layer(x), 0.1)
        return torch.sigmoid(self.layers[-1](x))


def points(random: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Random positions on the sphere, and phases."""
    position = random.normal(size=(count, 3))
    return position / np.linalg.norm(position, axis=1, keepdims=True), random.uniform(size=(count, 1))


def texture(fine: int = 6) -> Array:
    """The pattern as a texture of TEXTURE texels (time, latitude, longitude, RGB); each is a mean over its area."""
    columns, rows, times = (count * fine for count in TEXTURE)
    phase, latitude, longitude = np.meshgrid(
        (np.arange(times) + 0.5) / times,
        ((np.arange(rows) + 0.5) / rows - 0.5) * tau / 2,
        ((np.arange(columns) + 0.5) / columns) * tau,
        indexing="ij",
    )
    flat = np.cos(latitude)
    position = np.stack([flat * np.cos(longitude), np.sin(latitude), flat * np.sin(longitude)], -1)
    drawn = pattern(position.reshape(-1, 3), phase.reshape(-1, 1))
    shape = [size for count in TEXTURE[::-1] for size in (count, fine)]
    return drawn.reshape(*shape, 3).mean((1, 3, 5))


def sampled(texels: Array, position: Array, phase: Array) -> Array:
    """The texture at points, by linear sampling in all three directions."""
    columns, rows, times = TEXTURE
    place = [
        phase[:, 0] * times - 0.5,
        (np.arcsin(np.clip(position[:, 1], -1, 1)) / (tau / 2) + 0.5) * rows - 0.5,
        np.arctan2(position[:, 2], position[:, 0]) / tau * columns - 0.5,
    ]
    low = [np.floor(one).astype(int) for one in place]
    result = np.zeros((len(position), 3))
    for corner in np.ndindex(2, 2, 2):
        at, share = [], np.ones(len(position))
        for one, first, more, count in zip(place, low, corner, texels.shape, strict=False):
            index = first + more
            at.append(np.clip(index, 0, count - 1) if count == rows else index % count)
            share = share * np.abs(1 - more - (one - first))
        result += texels[tuple(at)] * share[:, None]
    return result


def psnr(found: Array, wanted: Array) -> float:
    """The peak signal-to-noise ratio, in dB."""
    return float(-10 * np.log10(((found - wanted) ** 2).mean()))


def main() -> None:
    """Train, measure, and write."""
    options = asked(__doc__, "neural.onnx", 0.9)
    random = begin(options.seed)
    network = Marble()

    def draw() -> tuple[Tensor, Tensor, Tensor]:
        position, phase = points(random, POINTS)
        colors = pattern(position, phase)
        position_, phase_, colors_ = (torch.tensor(array, dtype=torch.float32) for array in (position, phase, colors))
        return position_, phase_, colors_

    def loss_of(batch: list[tuple[Tensor, Tensor, Tensor]], _spent: float) -> Tensor:
        position, phase, colors = (torch.cat(parts) for parts in zip(*batch, strict=True))
        return nn.functional.mse_loss(network(position, phase), colors)

    sizes = {"batch": 1, "first": 64, "drawn": 1, "kept": 64}
    train(network, draw, loss_of, random, options.minutes, rate=6e-3, decay=0.0, longest=1.0, **sizes)

    position, phase = points(random, 200_000)
    wanted = pattern(position, phase)
    with torch.no_grad():
        found = network(*(torch.tensor(array, dtype=torch.float32) for array in (position, phase))).numpy()
    weights = sum(parameter.numel() for parameter in network.parameters())
    print(f"network: {weights} parameters, {4 * weights} bytes, {psnr(found, wanted):.2f} dB")
    texels = np.round(texture() * 255) / 255
    print(f"texture: {texels.size} bytes, {psnr(sampled(texels, position, phase), wanted):.2f} dB")
    n = torch.export.Dim("n")
    example = (torch.zeros(2, 3), torch.zeros(2, 1))
    write(options.out, network.eval(), example, ["position", "phase"], ["color"], ({0: n}, {0: n}))


if __name__ == "__main__":
    main()
