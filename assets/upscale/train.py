"""Train the network that doubles the sides of a rendered frame, on frames of the demo's own scene. Writes ONNX.

    python train.py --out upscale.onnx [--minutes 5] [--seed 0]

A frame is rendered at half of the size as the demo renders it, with a sample for each pixel; the answer is the frame at
full size with four samples for each. Moments of the scene that training never sees measure the network beside bilinear
enlarging. The network is that of W. Shi et al., Real-Time Single Image and Video Super-Resolution Using an Efficient
Sub-Pixel Convolutional Neural Network, CVPR 2016, with one layer more and the enlarged frame added at its end.
Needs torch, onnx, onnxscript, moderngl; runs on one core of a CPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import pairwise
from pathlib import Path

import moderngl
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "demos" / "upscale"))
from scene import Scene

SIZE = (960, 540)
"""Width and height at full size, in pixels."""
TRAINED, KEPT_BACK = 56, 8
"""Moments of the scene: to train on, and to measure with."""
PATCH, BATCH = 40, 16
CHANNELS = 20


class Upscale(nn.Module):
    """Three convolutions see a pixel's surroundings, and a fourth says what to add to each of its four parts."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, CHANNELS, CHANNELS, CHANNELS, 12)
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise(widths))
        nn.init.normal_(self.layers[-1].weight, std=0.01)
        nn.init.zeros_(self.layers[-1].bias)

    def forward(self, frame: Tensor) -> Tensor:
        """(batch, 3, height, width) → (batch, 3, 2 height, 2 width), not yet clipped to 0..1."""
        x = frame
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return F.pixel_shuffle(self.layers[-1](x), 2) + enlarged(frame)


class Clipped(nn.Module):
    """The network as the demo runs it."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, frame: Tensor) -> Tensor:
        """(batch, 3, height, width) → (batch, 3, 2 height, 2 width), 0..1."""
        return self.network(frame).clamp(0, 1)


def enlarged(frame: Tensor) -> Tensor:
    """The frame at twice its size, by bilinear sampling."""
    return F.interpolate(frame, scale_factor=2, mode="bilinear", align_corners=False)


def render(times: np.ndarray) -> tuple[Tensor, Tensor]:
    """Frames (count, 3, height, width) of bytes at half of the size, and at full size with four samples a pixel."""
    ctx = moderngl.create_context(standalone=True, backend="egl" if sys.platform == "linux" else None)
    scene = Scene(ctx)

    def frame(moment: float, width: int, height: int) -> np.ndarray:
        target = ctx.simple_framebuffer((width, height))
        target.use()
        scene.draw(moment, SIZE[0] / SIZE[1])
        pixels = np.frombuffer(target.read(), np.uint8).reshape(height, width, 3)[::-1].transpose(2, 0, 1)
        target.release()
        return pixels

    width, height = SIZE
    small, large = [], []
    for moment in times:
        small.append(frame(moment, width // 2, height // 2))
        samples = frame(moment, width * 2, height * 2).reshape(3, height, 2, width, 2).astype(np.float32)
        large.append(np.rint(samples.mean((2, 4))).astype(np.uint8))
    return torch.from_numpy(np.stack(small)), torch.from_numpy(np.stack(large))


def psnr(found: Tensor, wanted: Tensor) -> float:
    """The peak signal to noise ratio in dB, of values 0..1."""
    return float(-10 * torch.log10(((found - wanted) ** 2).mean()))


def train(small: Tensor, large: Tensor, minutes: float, seed: int) -> Upscale:
    """Train for so many minutes of one core. The learning rate follows the clock."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    random = np.random.default_rng(seed)
    network = Upscale()
    optimizer = torch.optim.Adam(network.parameters())
    step, begun = 0, time.process_time()
    while (spent := (time.process_time() - begun) / (60 * minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min(1.0, 1.6 * (1 - spent)) + 1e-5
        before, after = [], []
        for _ in range(BATCH):
            index = random.integers(len(small))
            y, x = random.integers(small.shape[2] - PATCH), random.integers(small.shape[3] - PATCH)
            before.append(small[index, :, y : y + PATCH, x : x + PATCH])
            after.append(large[index, :, 2 * y : 2 * (y + PATCH), 2 * x : 2 * (x + PATCH)])
        found = network(torch.stack(before).float() / 255)
        wanted = torch.stack(after).float() / 255
        inner = (..., slice(8, -8), slice(8, -8))  # at a patch's edge the network sees black
        loss = F.mse_loss(found[inner], wanted[inner])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 200 == 0:
            print(f"{spent:4.0%} step {step}: {-10 * np.log10(loss.item()):.2f} dB", flush=True)
    return network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("upscale.onnx"))
    parser.add_argument("--minutes", type=float, default=5.0, help="of one core's time, without rendering")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    moments = np.random.default_rng(arguments.seed).uniform(0, 600, TRAINED + KEPT_BACK)
    small, large = render(moments)
    network = train(small[:TRAINED], large[:TRAINED], arguments.minutes, arguments.seed)
    model = Clipped(network).eval()
    scores = []
    with torch.no_grad():
        for before, after in zip(small[TRAINED:], large[TRAINED:], strict=True):
            frame, wanted = before[None].float() / 255, after[None].float() / 255
            scores.append((psnr(enlarged(frame), wanted), psnr(model(frame), wanted)))
    print("moments kept back: bilinear {:.2f} dB, the network {:.2f} dB".format(*np.mean(scores, 0)))
    sides = {0: torch.export.Dim("batch"), 2: torch.export.Dim("height"), 3: torch.export.Dim("width")}
    torch.onnx.export(
        model,
        (torch.zeros(2, 3, 32, 48),),
        arguments.out,
        input_names=["frame"],
        output_names=["enlarged"],
        dynamic_shapes=(sides,),
        external_data=False,
        verbose=False,
    )
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
