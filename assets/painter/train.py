"""Train the small painter network to imitate the slow oil-painting filter of `oil.py`, and write it as ONNX.

    python train.py --out painter.onnx [--minutes 18] [--seed 0]

The training set is random patches of the free pictures that come inside scikit-image (public domain, CC0, or no known
restrictions) and of two landscapes by `scene.py`, rescaled, recoloured and mirrored, each with what the filter makes of
it. The right-hand part of every picture is kept away from training and serves to measure the network. Needs torch,
onnx, scikit-image, scipy, numba and Pillow; runs on a CPU.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import oil
import onnx
import scene
import torch
from onnx import TensorProto, helper, numpy_helper
from skimage import data
from skimage.transform import resize
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import swa_utils

PATCH = 160
"""Side of a training patch. The filter sees a patch alone, so the network learns its borders as borders."""
HELD_OUT = 0.22
"""The share of every picture, on its right, that training never sees."""
SLOPE = 0.1
"""Of the leaky rectifiers."""

Pair = tuple[np.ndarray, np.ndarray]
"""A patch, and what the Kuwahara filter makes of it."""


class Painter(nn.Module):
    """Colours and gates for every pixel, thought out at a half and a quarter of the resolution.

    Two strided convolutions go down to a quarter. Residual convolutions there, some dilated, see far enough to decide
    on which side of an edge a pixel lies. DepthToSpace brings the result up to the half, where it meets the fine
    features, and then up to the full resolution: `painting = clip(colour + gate * image)`. The gate lets an edge of the
    input through at full sharpness, while the colour fills in the flat patch around it.
    """

    def __init__(self, fine: int = 16, coarse: int = 24, dilations: tuple[int, ...] = (1, 2, 1, 2, 1)) -> None:
        super().__init__()
        self.fine = nn.Conv2d(3, fine, 3, stride=2, padding=1)
        self.coarse = nn.Conv2d(fine, coarse, 3, stride=2, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(coarse, coarse, 3, padding=d, dilation=d) for d in dilations)
        self.up = nn.Conv2d(coarse, 4 * fine, 1)
        self.colour = nn.Conv2d(fine, 4 * 3, 1)
        self.gate = nn.Conv2d(fine, 4 * 3, 1)
        # The untrained network shows its input: the way to the painting is shorter from there than from noise.
        for layer, level in ((self.colour, 0.0), (self.gate, 1.0)):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.constant_(layer.bias, level)

    def forward(self, image: Tensor) -> Tensor:
        """The painting before it is clipped, so that the loss keeps its slope outside 0..1."""
        fine = F.leaky_relu(self.fine(image), SLOPE)
        x = F.leaky_relu(self.coarse(fine), SLOPE)
        for layer in self.body:
            x = x + F.leaky_relu(layer(x), SLOPE)
        x = F.leaky_relu(F.pixel_shuffle(self.up(x), 2) + fine, SLOPE)
        return F.pixel_shuffle(self.colour(x), 2) + F.pixel_shuffle(self.gate(x), 2) * image


def pictures() -> list[np.ndarray]:
    """The free pictures, as float32 RGB in 0..1."""
    colour = [data.astronaut(), data.coffee(), data.chelsea(), data.rocket()]
    colour += [data.immunohistochemistry(), data.hubble_deep_field(), data.retina()]
    grey = [data.grass(), data.gravel(), data.brick()]
    # The grey textures get a tint: from a dark to a light colour of their subject.
    tints = [
        ((0.05, 0.15, 0.02), (0.75, 0.95, 0.4)),
        ((0.1, 0.08, 0.06), (0.9, 0.85, 0.8)),
        ((0.2, 0.08, 0.05), (0.95, 0.7, 0.5)),
    ]
    # Landscapes like the demo's, but other ones: fine grass and leaves are what the filter changes most.
    colour += [np.asarray(scene.render(seed, samples=1)) for seed in (1, 2)]
    result = [np.asarray(picture, np.float32)[..., :3] / 255 for picture in colour]
    for picture, (dark, light) in zip(grey, tints, strict=True):
        level = np.asarray(picture, np.float32)[..., None] / 255
        result.append(np.asarray(dark, np.float32) * (1 - level) + np.asarray(light, np.float32) * level)
    return result


FREQUENCY = np.array([5, 5, 4, 4, 1, 1, 0.3, 6, 6, 1.5, 1, 1])
"""How often each of `pictures()` is drawn: scenes more than slides, stars and textures."""


def draw_patch(source: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random region of the picture, rescaled to a patch and recoloured."""
    height, width = source.shape[:2]
    side = min(int(PATCH / math.exp(rng.uniform(math.log(0.4), math.log(1.6)))), height, width)
    places = [(rng.integers(height - side + 1), rng.integers(width - side + 1)) for _ in range(2)]
    regions = [source[top : top + side, left : left + side] for top, left in places]
    # The busier of two: a plain sky teaches little.
    region = max(regions, key=lambda part: np.abs(np.diff(part, axis=0)).mean())
    patch = resize(region, (PATCH, PATCH), order=1, anti_aliasing=side > PATCH).astype(np.float32)
    patch = np.clip(patch, 0, 1) ** math.exp(rng.normal(0, 0.25))
    grey = patch.mean(axis=2, keepdims=True)
    patch = grey + rng.uniform(0.6, 1.4) * (patch - grey)
    patch = patch * (1 + rng.normal(0, 0.1, 3)) * rng.uniform(0.75, 1.15) + rng.normal(0, 0.04)
    return np.clip(patch, 0, 1).astype(np.float32)


def make_pairs(sources: list[np.ndarray], count: int, rng: np.random.Generator) -> list[Pair]:
    """Patches with what the Kuwahara filter makes of them; `finish` completes the painting."""
    picks = rng.choice(len(sources), count, p=FREQUENCY / FREQUENCY.sum())
    patches = [draw_patch(sources[pick], rng) for pick in picks]
    return [(patch, oil.kuwahara(patch)) for patch in patches]


def finish(patch: np.ndarray, flat: np.ndarray) -> tuple[Tensor, Tensor]:
    """Input and target of the network, (3, H, W) each."""
    target = oil.relief(oil.grade(flat))
    return (torch.from_numpy(np.ascontiguousarray(part.transpose(2, 0, 1), np.float32)) for part in (patch, target))


def batches(pairs: list[Pair], size: int, rng: np.random.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless random batches, turned, mirrored and with exchanged channels (see `oil` for why that is exact)."""
    while True:
        inputs, targets = [], []
        for pick in rng.integers(len(pairs), size=size):
            turns, mirror, channels = rng.integers(4), rng.integers(2), rng.permutation(3)
            # Natural colours matter most: half of the patches keep their channels.
            channels = channels if rng.integers(2) else np.arange(3)
            turned = [np.rot90(part[:, :: 1 - 2 * mirror], turns)[..., channels] for part in pairs[pick]]
            source, target = finish(*turned)
            inputs.append(source)
            targets.append(target)
        yield tuple(torch.stack(part).contiguous(memory_format=torch.channels_last) for part in (inputs, targets))


def steepness(picture: Tensor) -> Tensor:
    """The squared slope of the colours at every pixel."""
    right, below = picture[..., :-1, 1:] - picture[..., :-1, :-1], picture[..., 1:, :-1] - picture[..., :-1, :-1]
    # The small number keeps the square roots below differentiable on flat paint.
    return (right * right + below * below).sum(1, keepdim=True) + 1e-5


def painting_loss(painting: Tensor, target: Tensor) -> Tensor:
    """L1 on colours and on differences of neighbours, and the same crispness in every small window.

    Where the network cannot tell which side of an edge wins, L1 alone is best served by mush. The last two terms
    compare the root mean square and the mean of the slopes in windows of 8 by 8: both agree only if as much contrast
    lies in as few edges, wherever exactly they run.
    """
    error = painting - target
    dx, dy = error[..., :, 1:] - error[..., :, :-1], error[..., 1:, :] - error[..., :-1, :]
    loss = error.abs().mean() + dx.abs().mean() + dy.abs().mean()
    ours, theirs = steepness(painting), steepness(target)
    loss = loss + (F.avg_pool2d(ours, 8, 4).sqrt() - F.avg_pool2d(theirs, 8, 4).sqrt()).abs().mean()
    return loss + (F.avg_pool2d(ours.sqrt(), 8, 4) - F.avg_pool2d(theirs.sqrt(), 8, 4)).abs().mean()


def psnr(network: Painter, pairs: list[Pair]) -> tuple[float, float]:
    """Mean PSNR over pairs of the network against the filter and, to compare, of the untouched input."""
    scores = []
    with torch.no_grad():
        for pair in pairs:
            source, target = finish(*pair)
            painting = network(source[None])[0].clamp(0, 1)
            scores.append([-10 * math.log10(float(F.mse_loss(guess, target)) + 1e-8) for guess in (painting, source)])
    return tuple(np.mean(scores, axis=0))


def train(minutes: float, seed: int, pool: int, threads: int) -> Painter:
    """Train for about the given time, filling the pool of pairs included."""
    start = time.monotonic()
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    numba.set_num_threads(threads)
    rng = np.random.default_rng(seed)
    sources = pictures()
    cuts = [int(source.shape[1] * (1 - HELD_OUT)) for source in sources]
    held_out = make_pairs([source[:, cut:] for source, cut in zip(sources, cuts, strict=True)], 96, rng)
    pairs = make_pairs([source[:, :cut] for source, cut in zip(sources, cuts, strict=True)], pool, rng)
    print(f"{pool} pairs in {time.monotonic() - start:.0f} s", flush=True)

    network = Painter().to(memory_format=torch.channels_last)
    average = swa_utils.AveragedModel(network, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.99))
    optimiser = torch.optim.Adam(network.parameters())
    begin, end, step = time.monotonic(), start + 60 * minutes, 0
    for source, target in batches(pairs, 12, rng):
        progress = (time.monotonic() - begin) / (end - begin)
        if progress >= 1:
            break
        # One warm-up, then a cosine down to almost nothing. By the clock, so that every machine finishes its schedule.
        rate = 4e-3 * min(1.0, (step + 1) / 200) * (0.5 + 0.5 * math.cos(math.pi * progress)) + 1e-6
        optimiser.param_groups[0]["lr"] = rate
        loss = painting_loss(network(source), target)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        average.update_parameters(network)
        if step % 250 == 0:
            quality = psnr(average.module, held_out[:32])[0]
            print(f"step {step:5d}  loss {loss.item():.4f}  held out {quality:.2f} dB", flush=True)
        step += 1
    ours, untouched = psnr(average.module, held_out)
    print(f"{step} steps, {(time.monotonic() - start) / 60:.1f} min")
    print(f"held out: {ours:.2f} dB against the filter (the untouched picture has {untouched:.2f} dB)")
    return average.module


def to_onnx(network: Painter) -> onnx.ModelProto:
    """Write the graph node by node, so that it holds nothing but what it computes."""
    nodes, constants = [], []

    def add(operator: str, name: str, inputs: list[str], **attributes: object) -> str:
        nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def constant(name: str, value: object, dtype: type = np.float32) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype), name))
        return name

    def conv(name: str, value: str) -> str:
        layer = network.get_submodule(name)
        weights = [constant(f"{name}.weight", layer.weight.detach()), constant(f"{name}.bias", layer.bias.detach())]
        return add(
            "Conv",
            name,
            [value, *weights],
            kernel_shape=list(layer.kernel_size),
            strides=list(layer.stride),
            pads=list(layer.padding) * 2,
            dilations=list(layer.dilation),
        )

    def act(value: str) -> str:
        return add("LeakyRelu", f"{value}_act", [value], alpha=SLOPE)

    def shuffle(name: str, value: str) -> str:
        return add("DepthToSpace", name, [value], blocksize=2, mode="CRD")

    # Both sides become multiples of 4 by copies of the last row and column, which are cut off at the end.
    sides, four = add("Shape", "sides", ["image"], start=2, end=4), constant("four", [4, 4], np.int64)
    quarters = add("Div", "quarters", [add("Add", "grown", [sides, constant("three", [3, 3], np.int64)]), four])
    missing = add("Sub", "missing", [add("Mul", "padded_sides", [quarters, four]), sides])
    pads = add("Concat", "pads", [constant("no_pads", [0] * 6, np.int64), missing], axis=0)
    image = add("Pad", "padded", ["image", pads], mode="edge")

    fine = act(conv("fine", image))
    x = act(conv("coarse", fine))
    for i in range(len(network.body)):
        x = add("Add", f"sum.{i}", [x, act(conv(f"body.{i}", x))])
    x = act(add("Add", "half", [shuffle("up_half", conv("up", x)), fine]))
    gated = add("Mul", "gated", [shuffle("gate_full", conv("gate", x)), image])
    whole = add("Add", "whole", [shuffle("colour_full", conv("colour", x)), gated])
    clipped = add("Clip", "clipped", [whole, constant("black", 0.0), constant("white", 1.0)])
    start, axes = constant("start", [0, 0], np.int64), constant("axes", [2, 3], np.int64)
    add("Slice", "painting", [clipped, start, sides, axes])

    shape = ["batch", 3, "height", "width"]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("image", "painting")]
    graph = helper.make_graph(nodes, "painter", values[:1], values[1:], constants)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="perframe"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("painter.onnx"))
    parser.add_argument("--minutes", type=float, default=18.0, help="time for everything, the filter's included")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pool", type=int, default=1400, help="how many patches the filter paints")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    network = train(arguments.minutes, arguments.seed, arguments.pool, arguments.threads)
    onnx.save(to_onnx(network), arguments.out)
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
