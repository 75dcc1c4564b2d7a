"""The plants of the scene: a meadow with flowers, spruces and a broad tree, all made of dots of paint."""

from __future__ import annotations

import numpy as np
from drawing import Noise, Stamps, mix, rgb, smoothstep


def meadow_edge(noise: Noise, x: np.ndarray) -> np.ndarray:
    """Row, as a share of the height, where the meadow ends and the lake begins; x is a share of the width."""
    bay = 0.115 * np.exp(-(((x - 0.53) / 0.24) ** 2))
    return 0.705 + bay + 0.045 * (noise.layers(x * 7 + 3, 0 * x + 9, 4) - 0.5)


def meadow(noise: Noise, image: np.ndarray, rng: np.random.Generator) -> None:
    """Grass and flowers before the lake, from far to near."""
    height, width = image.shape[:2]
    unit = width / 1600  # sizes below are in pixels of a picture that is 1600 wide
    count = 90000
    # Even on the ground means denser towards the far edge.
    depth = rng.random(count) ** 1.7
    x = rng.uniform(-0.03, 1.03, count)
    base = meadow_edge(noise, x) + depth * (1.12 - meadow_edge(noise, x))
    order = np.argsort(base)
    x, depth, base = x[order], depth[order], base[order]
    near = 0.13 + 0.87 * depth

    columns, rows = (np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height
    r, c = np.nonzero(rows[:, None] > meadow_edge(noise, columns)[None])
    tone = noise.layers(c / width * 9, r / height * 22, 4)
    image[r, c] = mix(rgb(0.13, 0.21, 0.06), rgb(0.30, 0.34, 0.09), tone)

    # Blades bend with the wind; light comes from the right and catches the tips. Broad shadows lie over the slope.
    wind = noise.layers(x * 5 + 8, base * 9, 3) - 0.42
    length = near * rng.uniform(20, 62, count) * unit * (0.6 + 0.8 * noise.layers(x * 11, base * 17, 3))
    lean = (wind * 1.3 + rng.normal(0, 0.28, count)) * length
    patch = noise.layers(x * 6, base * 14 + 30, 4)
    sunny = 0.50 + 0.62 * smoothstep(
        0.36, 0.56, noise.layers(x * 2.6 + 21, base * 8 + 3, 3) + rng.normal(0, 0.03, count)
    )
    sunny = sunny * (1 - 0.45 * np.exp(-(((x - 0.07) / 0.13) ** 2) - ((base - 0.86) / 0.045) ** 2))
    dark = mix(rgb(0.11, 0.23, 0.07), rgb(0.20, 0.29, 0.06), patch) * sunny[:, None].astype(np.float32)
    light = mix(
        rgb(0.45, 0.60, 0.15), rgb(0.90, 0.76, 0.28), smoothstep(0.38, 0.68, patch + rng.normal(0, 0.10, count))
    )
    light = light * (sunny * rng.uniform(0.72, 1.12, count))[:, None].astype(np.float32)
    t = np.linspace(0, 1, 26, dtype=np.float32)
    bx = x[:, None] * width + lean[:, None] * t**1.8
    by = base[:, None] * height - length[:, None] * t
    size = np.maximum(near[:, None] * unit * 1.7 * (1 - 0.75 * t), 0.45)
    paint = dark[:, None] + (light - dark)[:, None] * (t**1.3)[None, :, None]

    # Flowers grow in drifts. Each is a stem (a blade of its own) with a head of petals.
    kinds = (
        (rgb(0.93, 0.17, 0.07), 4.6, 5, 0.0),
        (rgb(0.97, 0.95, 0.90), 3.4, 9, 31.0),
        (rgb(0.99, 0.79, 0.12), 2.8, 6, 57.0),
        (rgb(0.48, 0.36, 0.86), 3.4, 6, 83.0),
        (rgb(0.95, 0.47, 0.64), 3.5, 5, 111.0),
    )
    chance = np.stack([noise.layers(x * 6 + at, base * 11 + at, 4) for *_, at in kinds])
    kind = np.argmax(chance + rng.normal(0, 0.05, chance.shape), axis=0)
    blooms = rng.random(count) < 0.30 * smoothstep(0.54, 0.72, chance.max(axis=0)) * (0.35 + 0.65 * (1 - depth))
    stamps = Stamps(image)
    # In slices, so that heads hide behind the grass that grows before them.
    for part in np.array_split(np.arange(count), 120):
        stamps.put(bx[part].ravel(), by[part].ravel(), size[part].ravel(), paint[part].reshape(-1, 3))
        for i in part[blooms[part]]:
            colour, head, petals, _ = kinds[kind[i]]
            bloom = colour * np.float32(0.45 + 0.55 * min(sunny[i], 1.0))
            flower(stamps, bx[i, -1], by[i, -1], head * near[i] * unit * rng.uniform(0.8, 1.3), bloom, petals, rng)


def flower(
    stamps: Stamps, x: float, y: float, size: float, colour: np.ndarray, petals: int, rng: np.random.Generator
) -> None:
    """Petals around an eye, seen from the side and above, lighter towards the light."""
    angle = np.arange(petals) * 2 * np.pi / petals + rng.uniform(0, 6)
    dx, dy = np.cos(angle) * size * 1.1, np.sin(angle) * size * 0.75
    shade = (0.80 + 0.22 * (dx - dy) / size / 1.4 + rng.normal(0, 0.05, petals)).astype(np.float32)
    order = np.argsort(dy)
    stamps.put(
        (x + dx)[order], (y + dy)[order], np.full(petals, max(size * 0.62, 0.5)), (colour * shade[:, None])[order]
    )
    eye = rgb(0.16, 0.06, 0.05) if colour[1] < 0.2 else rgb(0.92, 0.66, 0.10)
    stamps.put(np.array([x]), np.array([y]), np.array([max(size * 0.42, 0.5)]), eye[None])


def conifer(stamps: Stamps, x: float, foot: float, tall: float, rng: np.random.Generator) -> None:
    """A spruce: drooping boughs of needles around a trunk, from the bottom to the top, lit from the right."""
    trunk = np.linspace(0, 1, int(tall))
    stamps.put(
        x + 0 * trunk,
        foot - tall * trunk,
        np.maximum(tall * 0.016 * (1 - trunk), 0.5),
        np.broadcast_to(rgb(0.20, 0.13, 0.10), (len(trunk), 3)),
    )
    for level in 0.07 + 0.92 * np.linspace(0, 1, 40) ** 0.85:
        for _ in range(6):
            # A bough leaves the trunk anywhere around it; seen from here it is shorter when it comes towards us.
            across = np.sin(rng.uniform(-np.pi / 2, np.pi / 2))
            spread = tall * (0.235 * (1 - level) ** 1.05 + 0.003) * rng.uniform(0.75, 1.15)
            along = np.sqrt(rng.random(90))
            hang = rng.random(90) ** 2 * (0.20 * spread + 0.004 * tall) * (1.15 - along)
            nx = x + across * along * spread + rng.normal(0, tall * 0.003, 90)
            ny = foot - tall * level + spread * (0.46 * along**1.6 - 0.12 * along**5) * (1.2 - 0.5 * abs(across)) + hang
            shine = np.clip(0.25 + 0.32 * across + 0.35 * along - hang / tall * 18 + rng.normal(0, 0.12, 90), 0, 1)
            order = np.argsort(shine)
            paint = mix(rgb(0.03, 0.085, 0.07), rgb(0.42, 0.47, 0.17), shine**1.5)
            stamps.put(nx[order], ny[order], np.full(90, max(tall * 0.0042, 0.5)), paint[order])


def leafy(stamps: Stamps, x: float, foot: float, tall: float, rng: np.random.Generator) -> None:
    """A broad tree: lobes of clumps of leaves at the ends of branches, from the shadow behind to the light in front."""
    lobes = [
        (-0.24, 0.50, 0.13),
        (0.23, 0.52, 0.12),
        (-0.13, 0.66, 0.15),
        (0.14, 0.68, 0.15),
        (0.30, 0.64, 0.09),
        (0.0, 0.56, 0.14),
        (-0.28, 0.68, 0.10),
        (0.0, 0.82, 0.14),
        (0.13, 0.86, 0.09),
        (-0.14, 0.84, 0.10),
    ]
    t = np.linspace(0, 1, 500)
    for lobe_x, lobe_y, _ in lobes:
        for _ in range(3):
            reach_x, reach_y = lobe_x + rng.normal(0, 0.04), lobe_y + rng.normal(0, 0.03)
            px = x + tall * (
                reach_x * np.clip((t - 0.30) / 0.70, 0, 1) ** 1.3 + 0.012 * np.sin(5 * t + reach_x * 9) * t
            )
            girth = (
                tall * (0.006 + 0.020 * np.clip(1 - t * 1.35, 0, 1) + 0.012 * np.clip(1 - t * 9, 0, 1)) * (1 - 0.7 * t)
            )
            across = rng.uniform(-1, 1, 500)
            bark = mix(
                rgb(0.11, 0.075, 0.065),
                rgb(0.46, 0.32, 0.21),
                np.clip(0.3 + 0.5 * across + rng.normal(0, 0.12, 500), 0, 1),
            )
            stamps.put(px, foot - tall * reach_y * t, girth, np.broadcast_to(rgb(0.13, 0.09, 0.075), (500, 3)))
            stamps.put(px + across * girth * 0.8, foot - tall * reach_y * t, np.maximum(girth * 0.22, 0.6), bark)
    leaves = 440
    for back in (True, False):
        for lobe_x, lobe_y, size in lobes:
            for _ in range(14 if back else 26):
                spin, ring = rng.uniform(0, 2 * np.pi), np.sqrt(rng.random())
                ox, oy = np.cos(spin) * ring, np.sin(spin) * ring
                facing = 0.60 * ox + 0.70 * oy - 0.30 * back + 0.9 * lobe_x + 0.5 * (lobe_y - 0.66)
                spin, ring = rng.uniform(0, 2 * np.pi, leaves), np.sqrt(rng.random(leaves))
                lx, ly = np.cos(spin) * ring, np.sin(spin) * ring * 0.75
                shine = np.clip(0.36 + 0.30 * facing + 0.30 * (0.6 * lx + 0.8 * ly) + rng.normal(0, 0.14, leaves), 0, 1)
                order = np.argsort(shine)
                clump = size * (0.28 + 0.16 * rng.random())
                px = x + tall * (lobe_x + ox * size * 0.95 + lx * clump)
                py = foot - tall * (lobe_y + oy * size * 0.80 + ly * clump)
                paint = mix(rgb(0.05, 0.12, 0.045), rgb(0.80, 0.66, 0.17), shine**1.3)
                stamps.put(px[order], py[order], np.full(leaves, max(tall * 0.0026, 0.5)), paint[order])
