"""What scripts share that train a network on samples that they draw: a loop, the command line, the way to ONNX."""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def begin(seed: int) -> np.random.Generator:
    """Begin a training, which runs on one core, and return its random numbers."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    return np.random.default_rng(seed)


def train(
    network: nn.Module,
    draw: Callable[[], Any],
    loss_of: Callable[[list[Any], float], Tensor],
    random: np.random.Generator,
    minutes: float,
    *,
    batch: int,
    first: int,
    drawn: int,
    kept: int,
    rate: float,
    decay: float = 1e-4,
    longest: float = float("inf"),
) -> None:
    """Train for so many minutes of one core. The learning rate follows the clock: it rises to `rate`, and falls to 0.

    There are `first` samples at the beginning. Each step draws some more, and chooses a batch of the newest ones that
    are kept. `loss_of` gets the batch, and the share of the time that is over. Gradients are at most `longest`.
    """
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=decay)
    samples = deque((draw() for _ in range(first)), maxlen=kept)
    step, begun = 0, time.process_time()
    while (spent := (time.process_time() - begun) / (60 * minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 100) * (0.5 + 0.5 * float(np.cos(np.pi * spent))) + 1e-5
        samples.extend(draw() for _ in range(drawn))
        loss = loss_of([samples[index] for index in random.integers(len(samples), size=batch)], spent)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), longest)
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"{spent:4.0%} step {step}: loss {loss.item():.4f}", flush=True)


def asked(description: str | None, out: str, minutes: float) -> argparse.Namespace:
    """What the command line asks for: `out`, `minutes` and `seed`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(out))
    parser.add_argument("--minutes", type=float, default=minutes, help="of one core's time")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def write(
    path: Path,
    network: nn.Module,
    examples: tuple[Tensor, ...],
    inputs: Sequence[str],
    outputs: Sequence[str],
    dynamic_shapes: Any = None,
) -> None:
    """Write the trained network as ONNX, with inputs like the examples, and print the file's size.

    `dynamic_shapes` names the dims that stay open, as `torch.onnx.export` takes them.
    """
    names: Any = {"input_names": list(inputs), "output_names": list(outputs)}
    torch.onnx.export(
        network, examples, path, **names, dynamic_shapes=dynamic_shapes, external_data=False, verbose=False
    )
    print(f"{path}: {path.stat().st_size} bytes")
