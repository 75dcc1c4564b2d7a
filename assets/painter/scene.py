"""Render `scene.jpg`, the picture that the demo shows: an evening at a mountain lake. NumPy draws, Pillow writes.

    python scene.py --out scene.jpg [--seed 7] [--samples 2]

Mountains are a real height field, seen by a camera: for each column the heights are projected, and a running maximum
over the distance says what every pixel sees. Light, snow, forest and haze follow from the place that was hit. The lake
mirrors what stands above the horizon. Grass, flowers and trees are millions of dots, stamped from far to near
(`plants.py`). Everything is drawn at `samples` times the size and scaled down, which smooths the edges.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from drawing import Noise, Stamps, mix, rgb, smoothstep
from PIL import Image
from plants import conifer, leafy, meadow

WIDTH, HEIGHT = 1600, 900
HORIZON = 0.47
"""Row of the horizon, as a share of the height."""
SPREAD = 0.75
"""Half of the picture's width at distance 1."""
EYE = 1.3
"""Height of the eye above the lake."""
SUN = (0.22, 0.20)
"""Where the sun stands: its x and y at distance 1, from the middle of the horizon."""
LIGHT = np.array([0.72, 0.52, -0.30], np.float32) / np.linalg.norm([0.72, 0.52, -0.30]).astype(np.float32)
"""Towards the light. It comes more from the front than the sun would: mountains in their own shadow are dull."""
WARM = np.array([1.30, 1.02, 0.70], np.float32)
SHADE = np.array([0.34, 0.42, 0.62], np.float32)
HAZE = np.array([0.93, 0.76, 0.68], np.float32)


def terrain(noise: Noise, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Height of the land over the lake at place (x, z); negative under water."""
    side = x / z
    # The far range: lower around the middle right, where the valley lets the evening in.
    gap = 1 - 0.62 * np.exp(-(((side - 0.17) / 0.20) ** 2))
    far = (
        smoothstep(38, 62, z)
        * gap
        * (2 + 21 * noise.layers(x * 0.034 + 3.1, z * 0.034 + 8.2, 9, ridged=True, gain=0.47))
    )
    far = far * (1 - 0.45 * smoothstep(0.30, 0.70, side))
    # Nearer hills on both sides of the lake.
    banks = smoothstep(0.10, 0.62, np.abs(side + 0.02)) * smoothstep(13, 24, z)
    hills = banks * (0.6 + 5.0 * noise.layers(x * 0.10 + 40.0, z * 0.10 + 11.0, 7))
    middle = smoothstep(26, 34, z) * (0.2 + 2.6 * noise.layers(x * 0.07 + 77, z * 0.07, 6))
    wood = smoothstep(0.58, 0.50, noise.layers(x * 0.16 + 4, z * 0.16, 4))
    crowns = (
        (0.06 + 0.5 * wood)
        * (noise.value(x * 3.3, z * 2.2) * noise.value(x * 7.1 + 9, z * 5.3)) ** 0.8
        * smoothstep(0.2, 0.8, hills + middle)
        * smoothstep(3.2, 1.6, far)
    )
    shore = 0.35 * (noise.layers(x * 0.25 + 5, z * 0.25, 4) - 0.5)
    return far + hills + middle + crowns + shore - 0.35 * (1 - smoothstep(20, 36, z))


def land_colour(noise: Noise, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Light and colour of the land at the given places, with the haze before it."""
    step = 0.0022 * z + 0.004
    h = terrain(noise, x, z)
    normal = np.stack([h - terrain(noise, x + step, z), step, h - terrain(noise, x, z + step)], axis=-1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    steep = 1 - normal[..., 1]
    patches = noise.layers(x * 0.5, z * 0.5, 5)
    forest = mix(rgb(0.08, 0.20, 0.11), rgb(0.27, 0.36, 0.10), patches)
    pasture = mix(rgb(0.36, 0.45, 0.13), rgb(0.62, 0.50, 0.19), noise.layers(x * 0.9, z * 0.9, 4))
    rock = mix(rgb(0.34, 0.29, 0.31), rgb(0.56, 0.47, 0.42), noise.layers(x * 0.7, z * 0.7 + h, 5))
    clearing = smoothstep(0.50, 0.58, noise.layers(x * 0.16 + 4, z * 0.16, 4)) * smoothstep(0.55, 0.25, steep)
    colour = mix(forest, pasture, clearing)
    colour = mix(colour, rock, smoothstep(3.2, 6.5, h + 3 * patches - 1.5) * smoothstep(30, 44, z))
    snow = smoothstep(7.2, 9.5, h + 4.5 * patches - 2.2) * smoothstep(0.80, 0.50, steep) * smoothstep(40, 55, z)
    colour = mix(colour, rgb(0.86, 0.86, 0.92), snow)
    colour = mix(colour, rgb(0.52, 0.44, 0.32), smoothstep(0.10, 0.02, h))
    sun = np.clip(normal @ LIGHT, 0, None)
    # Where a big form lies in the shadow of another one, roughly: places lower than the land towards the light.
    for distance in (1.2, 3.0):
        over = terrain(noise, x + LIGHT[0] * distance, z + LIGHT[2] * distance) - h - LIGHT[1] / LIGHT[0] * distance
        sun = sun * (1 - 0.75 * smoothstep(0.0, 0.6, over))
    colour = colour * (SHADE * (0.55 + 0.45 * normal[..., 1:2]) + WARM * 1.15 * sun[..., None])
    side = x / z
    air = 1 - np.exp(-np.maximum(z - 8, 0) * 0.0150 * np.exp(-np.maximum(h, 0) * 0.040))
    glow = np.exp(-(((side - SUN[0]) / 0.35) ** 2))
    return mix(colour, mix(rgb(0.60, 0.66, 0.82), HAZE * 1.04, glow), np.clip(air, 0, 0.93))


def sky_colour(noise: Noise, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sky seen at x and y at distance 1; y is over the horizon."""
    y = np.maximum(y, 0.0)
    colour = mix(rgb(1.0, 0.80, 0.56), rgb(0.93, 0.68, 0.60), smoothstep(0.0, 0.12, y))
    colour = mix(colour, rgb(0.56, 0.66, 0.83), smoothstep(0.06, 0.24, y))
    colour = mix(colour, rgb(0.17, 0.36, 0.66), smoothstep(0.18, 0.46, y))
    distance = np.hypot(x - SUN[0], (y - SUN[1]) * 1.05)
    colour = colour + rgb(1.0, 0.62, 0.25) * (0.40 * np.exp(-((distance / 0.12) ** 2)))[..., None]
    colour = colour + rgb(0.34, 0.20, 0.07) * np.exp(-distance / 0.22)[..., None]

    # Two layers of cloud on planes overhead, so that they shrink towards the horizon.
    high_clouds, low_clouds = (1.0, 1.1, 0.47, 0.72, 0.35, 60.0), (0.55, 1.5, 0.49, 0.66, 0.62, 13.0)
    for height, scale, low, high, stretch, seed in (high_clouds, low_clouds):
        depth = height / (y + 0.075)
        p, q = x * depth * scale + seed, depth * scale / stretch * 0.62 + seed
        warp = noise.layers(p * 0.7 + 31, q * 0.7, 3) - 0.5
        density = noise.layers(p + warp, q + warp, 8, gain=0.54)
        toward_x, toward_y = SUN[0] - x, SUN[1] - y
        norm = np.hypot(toward_x, toward_y) + 0.08
        lit = noise.layers(p + warp + 0.13 * toward_x / norm, q + warp - 0.20 * toward_y / norm, 6, gain=0.54)
        cover = smoothstep(low, high, density) * smoothstep(0.0, 0.06, y)
        bright = smoothstep(-0.10, 0.13, density - lit)
        near_sun = np.exp(-distance / 0.28)
        light = mix(rgb(1.0, 0.86, 0.76), rgb(1.12, 0.90, 0.62), near_sun)
        low_glow = np.clip(1.1 * near_sun + smoothstep(0.2, 0.02, y) * 0.6, 0, 1)
        dark = mix(rgb(0.52, 0.50, 0.66), rgb(0.86, 0.55, 0.46), low_glow)
        colour = mix(colour, mix(dark, light, bright), cover * 0.92)
    disc = smoothstep(0.026, 0.021, distance)
    return mix(colour, rgb(1.9, 1.8, 1.4), disc)


def landscape(noise: Noise, width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Sky and land above the water, and a mask of the pixels that see water."""
    scale = 2 * SPREAD / width
    x = ((np.arange(width) + 0.5) * scale - SPREAD).astype(np.float32)
    y = ((HORIZON * height - np.arange(height) - 0.5) * scale).astype(np.float32)
    distances = np.geomspace(13, 100, 1500).astype(np.float32)
    ground = terrain(noise, x[None] * distances[:, None], np.broadcast_to(distances[:, None], (len(distances), width)))
    seen = (np.maximum(ground, 0) - EYE) / distances[:, None]
    highest = np.maximum.accumulate(seen, axis=0)
    image = np.zeros((height, width, 3), np.float32)
    above = y > 0
    image[above] = sky_colour(noise, *np.broadcast_arrays(x[None], y[above, None]))
    first = np.stack([np.searchsorted(highest[:, i], y) for i in range(width)], axis=1)
    rows, columns = np.nonzero((first < len(distances)) & (first > 0))
    index = first[rows, columns]
    # Between two sampled distances the ray crosses the slope at a place that the heights before and after tell.
    before, after = highest[index - 1, columns], seen[index, columns]
    share = np.clip((y[rows] - before) / np.maximum(after - before, 1e-6), 0, 1)
    z = distances[index - 1] + (distances[index] - distances[index - 1]) * share
    water_z = np.where(y[rows] < 0, EYE / np.maximum(-y[rows], 1e-6), np.inf)
    is_water = (ground[index, columns] <= 0.0) & (water_z < 120)
    water = np.zeros((height, width), bool)
    water[rows[is_water], columns[is_water]] = True
    water[first == 0] = True
    dry = ~is_water
    image[rows[dry], columns[dry]] = land_colour(noise, x[columns[dry]] * z[dry], z[dry])
    return image, water


def fill_water(noise: Noise, image: np.ndarray, water: np.ndarray) -> None:
    """The lake mirrors the picture above it, broken by ripples, with a path of glitter below the sun."""
    height, width = water.shape
    scale = 2 * SPREAD / width
    rows, columns = np.nonzero(water)
    horizon = HORIZON * height
    below = (rows + 0.5 - horizon) * scale
    z = EYE / np.maximum(below, 0.004)
    x = ((columns + 0.5) * scale - SPREAD) * z
    ripple = noise.layers(x * 1.1, z * 3.2, 4) - 0.5
    breeze = smoothstep(0.45, 0.65, noise.layers(x * 0.12 + 50, z * 0.35, 3))
    offset = ripple * (0.018 + 0.065 * breeze + 0.05 * below) / scale
    source = np.clip(2 * horizon - rows + offset - 1, 0, horizon - 1).astype(int)
    sideways = np.clip(columns + 0.25 * offset, 0, width - 1).astype(int)
    mirror = image[source, sideways]
    tint = mix(rgb(0.90, 0.90, 0.92), rgb(0.46, 0.60, 0.68), smoothstep(0.0, 0.30, below))
    colour = mirror * tint + rgb(0.0, 0.02, 0.035)
    away = np.abs((columns + 0.5) * scale - SPREAD - SUN[0])
    glitter = smoothstep(0.03, 0.12, ripple) * np.exp(-((away / (0.022 + 0.16 * below)) ** 2)) * (0.45 + 0.55 * breeze)
    image[rows, columns] = mix(colour, rgb(1.15, 0.92, 0.62), np.clip(glitter * 0.85, 0, 1))


def grade(image: np.ndarray) -> np.ndarray:
    """A soft shoulder instead of clipped lights, and slightly deeper tones."""
    image = np.maximum(image, 0)
    bright = image > 0.75
    image[bright] = 0.75 + 0.25 * (1 - np.exp(-(image[bright] - 0.75) / 0.30))
    return image


def render(seed: int, samples: int) -> Image.Image:
    """The whole picture."""
    width, height = WIDTH * samples, HEIGHT * samples
    noise, rng = Noise(seed), np.random.default_rng(seed)
    image, water = landscape(noise, width, height)
    fill_water(noise, image, water)
    stamps = Stamps(image)
    spruces = ((0.81, 0.715, 0.17), (0.855, 0.72, 0.27), (0.99, 0.72, 0.44), (0.905, 0.73, 0.40), (0.953, 0.745, 0.31))
    for x, foot, tall in spruces:
        conifer(stamps, x * width, foot * height, tall * height, rng)
    leafy(stamps, 0.09 * width, 0.79 * height, 0.76 * height, rng)
    meadow(noise, image, rng)
    pixels = (np.clip(grade(image), 0, 1) * 255 + 0.5).astype(np.uint8)
    return Image.fromarray(pixels).resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("scene.jpg"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--samples", type=int, default=2, help="samples a pixel, in each direction")
    arguments = parser.parse_args()
    render(arguments.seed, arguments.samples).save(arguments.out, quality=85, optimize=True, progressive=True)
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
