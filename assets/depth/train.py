"""Train the network that estimates depth from one picture, on scenes that `scenes.py` draws. Writes ONNX.

    python train.py --out depth.onnx [--minutes 15] [--seed 0]

The loss ignores the scale and the shift of inverse depth, as in R. Ranftl et al., Towards Robust Monocular Depth
Estimation: Mixing Datasets for Zero-shot Cross-dataset Transfer (MiDaS), 2020. The network is a small U-Net.
Needs torch, onnx, onnxscript and Pillow; runs on one core of a CPU.
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from assets.common import training
from assets.depth.measures import disorder, relative_error, sloped
from assets.depth.scenes import Array, Random, scene

WIDTH, HEIGHT = 160, 96
WIDTHS = (3, 16, 28, 44, 64)
BATCH, MEASURED = 16, 200
DRAWN, KEPT = 1, 4000  # new scenes a step, and the newest ones, of which a batch is chosen
UNSEEN = 1_000_000  # the first seed of scenes on which the network is measured


class DepthNetwork(nn.Module):
    """Four steps down, dilated convolutions and the picture's mean, four steps up beside what was there on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(layer(a, b, stride=2) for a, b in pairwise(WIDTHS))
        self.far = nn.ModuleList(layer(WIDTHS[-1], WIDTHS[-1], dilation=far) for far in (1, 2))
        self.whole = nn.Conv2d(WIDTHS[-1], WIDTHS[-1], 1)
        self.up = nn.ModuleList(layer(a, b) for a, b in pairwise((*WIDTHS[:0:-1], 8)))
        self.last = nn.Sequential(layer(8 + 3, 8), nn.Conv2d(8, 1, 3, padding=1))

    def forward(self, image: Tensor) -> Tensor:
        """(1, 3, height, width) in 0..1 → (1, 1, height, width): inverse depth but for its scale and shift."""
        x, passed = image * 2 - 1, []
        for down in self.down:
            passed.append(x)
            x = down(x)
        for far in self.far:
            x = x + far(x)
        x = x + self.whole(x.mean((2, 3), keepdim=True))
        for up, beside in zip(self.up, reversed(passed), strict=True):
            x = F.interpolate(up(x), size=beside.shape[2:], mode="bilinear", align_corners=False)
            x = x + beside if beside.shape[1] == x.shape[1] else torch.cat([x, beside], 1)
        return self.last(x)


def layer(wide_in: int, wide: int, stride: int = 1, dilation: int = 1) -> nn.Module:
    """A convolution with a normalization and a rectifier."""
    convolution = nn.Conv2d(wide_in, wide, 3, stride, dilation, dilation, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(wide), nn.ReLU())


def sample(random: Random) -> tuple[Array, Array]:
    """A picture (3, 96, 160) in 0..1, and inverse distances (96, 160)."""
    pixels, inverse = scene(random, (WIDTH, HEIGHT))
    return pixels.transpose(2, 0, 1).copy(), inverse


def seen(random: Random, batch: list[tuple[Array, Array]]) -> tuple[Tensor, Tensor]:
    """Pictures as a camera may see them: mirrored, in other light and colors, with noise."""
    images, inverses = [], []
    for image, inverse in batch:
        if random.random() < 0.5:
            image, inverse = image[..., ::-1], inverse[:, ::-1]
        light = random.uniform(0.75, 1.25) * random.uniform(0.9, 1.1, (3, 1, 1))
        noise = random.normal(0, random.uniform(0, 0.03), image.shape)
        images.append(np.clip(image ** random.uniform(0.8, 1.25) * light + noise, 0, 1).astype(np.float32))
        inverses.append(inverse.copy())
    return torch.from_numpy(np.stack(images)), torch.from_numpy(np.stack(inverses))


def leveled(values: Tensor) -> Tensor:
    """Values (n, height, width) with the median 0 and the mean distance 1 from it."""
    flat = values.flatten(1)
    away = flat - flat.median(1, keepdim=True).values
    return (away / (away.abs().mean(1, keepdim=True) + 1e-4)).reshape(values.shape)


def loss_of(network: DepthNetwork, random: Random, batch: list[tuple[Array, Array]], _spent: float) -> Tensor:
    """How wrong inverse depth is, and its slopes at four scales."""
    image, inverse = seen(random, batch)
    wrong = leveled(network(image)[:, 0]) - leveled(inverse)
    loss = wrong.abs().mean()
    for step in (1, 2, 4, 8):
        small = wrong[:, ::step, ::step]
        loss = loss + 0.15 * (small.diff(dim=1).abs().mean() + small.diff(dim=2).abs().mean())
    return loss


def measure(network: DepthNetwork) -> str:
    """Compare depth in new scenes with the truth, with the best plane, and with the mean of scenes."""
    pairs = [sample(np.random.default_rng(UNSEEN + index)) for index in range(MEASURED)]
    mean = np.mean([inverse / inverse.mean() for _, inverse in pairs], 0)
    with torch.no_grad():
        found = [network(torch.from_numpy(image)[None])[0, 0].numpy() for image, _ in pairs]
    guesses = {"network": found, "plane": [sloped(wanted) for _, wanted in pairs], "mean": [mean] * MEASURED}
    random = np.random.default_rng(0)
    lines = []
    for name, these in guesses.items():
        errors = [relative_error(guess, wanted) for guess, (_, wanted) in zip(these, pairs, strict=True)]
        orders = [disorder(guess, wanted, random) for guess, (_, wanted) in zip(these, pairs, strict=True)]
        lines.append(f"{name}: error {np.mean(errors):.3f}, wrong order {np.mean(orders):.1%}")
    return f"{MEASURED} new scenes\n" + "\n".join(lines)


def describe(path: Path) -> None:
    """Write into the file which pixels it takes, and drop the exporter's notes on each layer.

    An element of the input is (pixel - mean) / std, for pixels of 0..1.
    """
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {"mean": "0, 0, 0", "std": "1, 1, 1"})
    for node in model.graph.node:
        node.ClearField("metadata_props")
    model.graph.ClearField("metadata_props")
    model.graph.ClearField("value_info")
    onnx.save(model, path)
    print(f"{path}: {path.stat().st_size} bytes")


def main() -> None:
    """Train, write, and measure."""
    arguments = training.asked(__doc__, "depth.onnx", minutes=15)
    random = training.begin(arguments.seed)
    network = DepthNetwork()
    amounts = {"batch": BATCH, "first": 4 * BATCH, "drawn": DRAWN, "kept": KEPT}
    draw, loss = partial(sample, random), partial(loss_of, network, random)
    training.train(network, draw, loss, random, arguments.minutes, **amounts, rate=4e-3)
    network.eval()
    sizes = {2: torch.export.Dim("height", min=2), 3: torch.export.Dim("width", min=2)}
    example = (torch.zeros(1, 3, HEIGHT, WIDTH),)
    training.write(arguments.out, network, example, ["image"], ["inverse_depth"], (sizes,))
    describe(arguments.out)
    print(measure(network))


if __name__ == "__main__":
    main()
