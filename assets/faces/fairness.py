"""Measure whether a file's scores depend on the skin's tone. Prints a table.

    python fairness.py [--model faces.onnx] [--pictures 500] [--seed 1000]

Each picture is drawn once for each tone, and nothing else in it differs: place, pose, hair, clothes, light, noise and
clutter are the same. Training with seed 0 never sees the random numbers of the default seed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import perframe as pf
from perframe.resources import resource

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from assets.faces.pictures import SIDE, TONES, Array, Seen, sample
from demos.faces.finders import BlazeFace, Found, reader_of

Network = Callable[[Array], tuple[Array, Array]]
"""A picture (SIDE, SIDE, 3) → `regressors` (1, 896, 16) and `classificators` (1, 896, 1)."""
NEAR = 0.25  # a box belongs to a face if their middles are at most so far apart, in widths of the face


@dataclass(frozen=True)
class Tone:
    """Of all faces of a tone: their mean score, found or not, the share that is found, and how many there are.
    `wrong` is the number of boxes a picture without a face."""

    score: float
    rate: float
    faces: int
    wrong: float


def by_tone(network: Network, seed: int, pictures: int, scenery: Image.Image) -> list[Tone]:
    """Measure each tone, from the lightest to the darkest, over the same pictures."""
    decoder = BlazeFace(SIDE)
    return [_measured(network, decoder, tone, seed, pictures, scenery) for tone in range(TONES)]


def _measured(network: Network, decoder: BlazeFace, tone: int, seed: int, pictures: int, scenery: Image.Image) -> Tone:
    scores, found, wrong = list[float](), list[bool](), 0
    read = reader_of(decoder, regressors=(1, 896, 16), classificators=(1, 896, 1))
    for index in range(pictures):
        pixels, seen = sample(np.random.default_rng((seed, index)), scenery, tone)
        regressors, logits = network(pixels)
        boxes = read({"regressors": regressors, "classificators": logits})
        sure = 1 / (1 + np.exp(-np.clip(logits[0, :, 0], -60, 60)))
        for one in seen:
            away = _away(one, decoder.anchors[:, :2])
            scores.append(float(sure[away <= max(NEAR, away.min())].max()))
            found.append(any(_is_of(box, one) for box in boxes))
        wrong += sum(not any(_is_of(box, one) for one in seen) for box in boxes)
    return Tone(float(np.mean(scores)), float(np.mean(found)), len(found), wrong / pictures)


def _away(one: Seen, places: Array) -> Array:
    """How far places are from a face's middle, in its widths."""
    low, high = np.array(one.face.box[:2]), np.array(one.face.box[2:])
    away: Array = np.abs(places - (low + high) / 2).max(-1) / (high[0] - low[0])
    return away


def _is_of(box: Found, one: Seen) -> bool:
    return bool(_away(one, (box.box[:2] + box.box[2:]) / 2 / SIDE) < NEAR)


def network_of(path: Path) -> Network:
    """A file as a function, on the CPU."""
    worker = pf.Worker(pf.load(path), "cpu")

    def run(pixels: Array) -> tuple[Array, Array]:
        worker.schedule(pixels[None])
        return (
            worker.peek_output("regressors").download_to_array(),
            worker.peek_output("classificators").download_to_array(),
        )

    return run


def table(tones: list[Tone]) -> str:
    """One line a tone."""
    lines = ["| tone | mean score | found | wrong boxes a picture |", "|---|---|---|---|"]
    for index, tone in enumerate(tones):
        lines.append(f"| {index + 1} | {tone.score:.3f} | {tone.rate:.1%} | {tone.wrong:.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path(__file__).with_name("faces.onnx"))
    parser.add_argument("--pictures", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    with Image.open(resource("assets", "painter", "scene.jpg")) as scene:
        scenery = scene.convert("RGB")
    tones = by_tone(network_of(options.model), options.seed, options.pictures, scenery)
    print(f"{tones[0].faces} faces of each tone, 1 is the lightest\n\n{table(tones)}")


if __name__ == "__main__":
    main()
