"""Makes the moving picture of docs/tracking.md: `python tools/tracking_pictures.py` in a checkout.

A network finds the discs of a scene. Its results come late, with jitter and gaps. They are drawn in white, and in color
the tracks that a Tracker makes of them.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from moving_pictures import write
from PIL import Image

import perframe as pf

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "tracking.webp"
SIZE, RATE, LATE, PATH = (480, 270), 30, 5, 30  # pixels; frames a second; frames; points of a path
COLORS = np.array([[0.95, 0.75, 0.2], [0.85, 0.25, 0.3], [0.2, 0.6, 0.35], [0.95, 0.95, 0.95]], np.float32)


def finder() -> pf.Model:
    """A network that finds the box around the pixels of each color: (4, 4)."""
    functional, graph = pf.functional, pf.FunctionalGraph("discs")
    picture = graph.add_input("float32", (1, 3, SIZE[1], SIZE[0]), "picture")
    masks = functional.exp(-80 * functional.sum((picture - COLORS[:, :, None, None]) ** 2, 1))
    y, x = np.mgrid[: SIZE[1], : SIZE[0]].astype(np.float32) + 0.5
    area = functional.sum(masks, (1, 2))
    across, down = (functional.sum(masks * at, (1, 2)) / area for at in (x, y))
    half = functional.sqrt(area / np.pi)
    return graph.compile(boxes=functional.stack([across - half, down - half, across + half, down + half], 1))


def frames(ctx: Any, count: int, first: float = 0.0) -> list[Image.Image]:
    """Consecutive frames of the film."""
    scene, random = pf.media.Scene(SIZE), np.random.default_rng(3)
    tracker, late = pf.vision.Tracker(), deque[tuple[float, Any, Any]]()
    paths: dict[int, deque[Any]] = {}
    texture = ctx.texture(SIZE, 4)
    target, pictures = ctx.framebuffer([texture]), []
    with pf.vision.Overlay(ctx, target=target) as overlay, pf.Worker(finder()) as worker:
        for index in range(count):
            time = first + index / RATE
            pixels = scene(time)
            worker.schedule(pixels.transpose(2, 0, 1)[None].astype(np.float32) / 255)
            found = worker.peek_output().numpy() + random.normal(0, 1.0, (4, 4))
            late.append((time, found, random.uniform(0.4, 1.0, 4)))
            seen: Any = np.zeros((0, 4))
            if len(late) > LATE:
                moment, seen, scores = late.popleft()
                tracker.update(seen, scores, time=moment)
            now, ids = tracker.tracks.at(time), tracker.tracks.ids
            texture.write(np.dstack([pixels, np.full(SIZE[::-1], 255, np.uint8)])[::-1].tobytes())
            overlay.boxes(seen, color=(1.0, 1.0, 1.0, 0.5), width=1.5)
            for number, box in zip(ids.tolist(), now, strict=True):
                path = paths.setdefault(number, deque(maxlen=PATH))
                path.append((box[:2] + box[2:]) / 2)
                steps = [(step, step + 1) for step in range(len(path) - 1)]
                overlay.lines(np.array(path)[None], steps, color=np.array([number]), width=2.5)
            overlay.boxes(now, color=ids, width=3)
            overlay.texts([f"{number}" for number in ids], now, color=ids)
            drawn = Image.frombytes("RGB", SIZE, target.read(components=3, alignment=1))
            pictures.append(drawn.transpose(Image.Transpose.FLIP_TOP_BOTTOM))
    target.release()
    texture.release()
    return pictures


if __name__ == "__main__":
    with pf.App(size=(64, 36), headless=True) as app:
        write(PICTURE, frames(app.ctx, 120, first=2.0)[12::2], 67, 45)
