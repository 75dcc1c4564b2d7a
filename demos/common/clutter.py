"""What may stand behind people: gradients, things of any shape and colour, and parts of a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .people import SKINS, Array, ellipse, stroke

Random = np.random.Generator


def clutter(random: Random, size: tuple[int, int], scenery: Image.Image | None = None) -> Image.Image:
    """A ground of `size`, by lot. A part of `scenery` is the ground of some; others have only a gradient."""
    width, height = size
    if scenery is not None and random.random() < 0.3:
        part = random.uniform(0.2, 0.9) * min(scenery.width / width, scenery.height / height)
        left = random.uniform(0, scenery.width - part * width)
        top = random.uniform(0, scenery.height - part * height)
        picture = scenery.resize(size, Image.Resampling.BILINEAR, (left, top, left + part * width, top + part * height))
    else:
        corners = random.integers(0, 256, (2, 2, 3)).astype(np.uint8)
        picture = Image.fromarray(corners).resize(size, Image.Resampling.BILINEAR)
    pen = ImageDraw.Draw(picture)
    for _ in range(int(random.integers(0, 18))):
        points = thing(random) * random.uniform(0.03, 0.4) * min(size) + random.uniform(0, 1, 2) * size
        pen.polygon([tuple(point) for point in points.tolist()], fill=paint(random))
    if random.random() < 0.3:
        picture = picture.filter(ImageFilter.BoxBlur(random.uniform(1, 6)))
    return picture


def thing(random: Random) -> Array:
    """The outline of something around (0, 0), about 2 wide."""
    kind = random.integers(4)
    if kind == 0:  # a ball or an egg: what a head is from afar
        points = ellipse(0, 0, random.uniform(0.5, 1.0), random.uniform(0.6, 1.2))
    elif kind == 1:  # a shelf, a book, a frame
        points = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * random.uniform(0.08, 1.2, 2)
    elif kind == 2:  # a leaf, a splinter
        points = random.uniform(-1, 1, (int(random.integers(3, 7)), 2))
    else:  # a ring, a cable, a branch
        points = stroke(
            ellipse(0, 0, 1.0, random.uniform(0.2, 1.0), 0, random.uniform(0.2, 1.0)), random.uniform(0.05, 0.4)
        )
    angle = random.uniform(0, 2 * np.pi)
    turned: Array = points @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return turned


def paint(random: Random) -> Any:
    """A colour by lot; often one of people's own, so that colour alone does not tell people."""
    if random.random() < 0.25:
        return SKINS[random.integers(len(SKINS))]
    return tuple(int(value) for value in random.integers(0, 256, 3))


def developed(random: Random, pixels: Array) -> Array:
    """A camera's errors: light, colour and noise. `pixels` and the result are floats in 0..1, H x W x 3."""
    light = random.uniform(0.65, 1.25) * random.uniform(0.85, 1.15, 3)
    noise = random.normal(0, random.uniform(0, 0.05), pixels.shape)
    result: Array = np.clip(pixels * light + random.uniform(-0.08, 0.08) + noise, 0, 1).astype(np.float32)
    return result
