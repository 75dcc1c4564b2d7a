"""Draws scenes whose depth is known: landscapes, squares with columns, and rooms. `python scenes.py` writes pictures.

    python scenes.py [--out .] [--seeds 3 14 15]

Each seed is another scene. Size, height in the picture, occlusion, shading, shadows, patterns and haze carry depth.
"""

from __future__ import annotations

import argparse
import sys
from colorsys import hsv_to_rgb
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from assets.depth.rays import Array, Paint, RayWorld, Ridge, Solid, cast

Random = np.random.Generator
PALETTES = (
    ("d9a066", "8f563b", "f2e3c6", "3f6f73", "b5523b"),
    ("e8c07d", "cc704b", "614124", "9fc088", "f4ede4"),
    ("6a8caf", "eef3d2", "a7d129", "f8b195", "355c7d"),
    ("c06c84", "f67280", "f8b195", "6c5b7b", "fff1d0"),
    ("8aa29e", "3d5467", "f1edee", "db5461", "e3b23c"),
    ("7d8471", "b5b8a3", "e6beae", "f3ffb6", "4f6d7a"),
)


def scene(random: Random, size: tuple[int, int], fine: int = 2) -> tuple[Array, Array]:
    """A scene by lot: colors (height, width, 3) in 0..1, and inverse distances (height, width) in 1/m."""
    kind = random.choice(3, p=(0.45, 0.25, 0.3))
    world = (landscape, square, room)[kind](random)
    return cast(world, size, fine, random)


def landscape(random: Random) -> RayWorld:
    """Trees, stones, balls and houses on a meadow or on sand, before hills."""
    colors = palette(random)
    world = outdoors(random)
    green = bool(random.random() < 0.6)
    soil = hue(random, 0.22 if green else 0.1, 0.06, (0.25, 0.55), (0.45, 0.75))
    world.ground = noisy(random, soil, soil * random.uniform(0.55, 0.8), random.uniform(0.5, 2.5))
    if random.random() < 0.35:
        world.ground = path(random, world.ground, colors[random.integers(len(colors))])
    leaves = hue(random, 0.26, 0.1, (0.35, 0.7), (0.3, 0.6))
    for _ in range(int(random.integers(0, 4))):  # hills, most of them below the ground
        half = np.array([random.uniform(4, 14), random.uniform(0.6, 2.2), random.uniform(4, 14)])
        middle = np.array([random.normal(0, 12), -0.3 * half[1], random.uniform(16, 45)])
        world.solids.append(Solid("ball", middle, half, world.ground))
    spots = Spots(random, world)
    for _ in range(int(random.integers(5, 14))):
        x, z, scale = spots.free(0.5, 1.5)
        kind = random.random()
        if kind < 0.5:
            world.solids += tree(random, x, z, 1.6 * scale, hue_near(random, leaves))
        elif kind < 0.7:
            half = scale * random.uniform(0.2, 0.55, 3)
            gray = hue(random, 0.08, 0.1, (0.05, 0.25), (0.4, 0.75))
            middle = np.array([x, 0.5 * half[1], z])
            world.solids.append(Solid("ball", middle, half, noisy(random, gray, gray * 0.6, 4), random.uniform(0, 6)))
        elif kind < 0.85:
            world.solids += house(random, x, z, 1.5 * scale, colors)
        else:
            world.solids += thing(random, x, 0.0, z, 0.5 * scale, colors)
    return world


def square(random: Random) -> RayWorld:
    """Rows of columns, walls and things on a paved square."""
    colors = palette(random)
    world = outdoors(random)
    first, other = colors[0], colors[random.integers(1, len(colors))]
    world.ground = pattern(random, first, first + (other - first) * random.uniform(0.25, 1), random.uniform(0.5, 1.4))
    stone = colors[random.integers(len(colors))] * 0.5 + 0.4
    if random.random() < 0.7:  # two rows of columns lead away
        half = random.uniform(1.2, 2.6)
        radius, tall, step = random.uniform(0.14, 0.32), random.uniform(1.2, 2.2), random.uniform(1.4, 2.6)
        paint = pattern(random, stone, stone * 0.8, 0.5)
        shape = "column" if random.random() < 0.75 else "box"
        begin, angle = random.uniform(1.8, 4), random.normal(0, 0.12)
        for index in range(int(random.integers(4, 8))):
            z = begin + step * index
            for side in (-1, 1):
                x = side * half + angle * z
                world.solids.append(box_of(shape, x, tall, z, (radius, tall, radius), paint))
                if random.random() < 0.98:
                    world.solids.append(box_of("box", x, 2 * tall + 0.1, z, (radius * 1.5, 0.1, radius * 1.5), paint))
    else:
        x, z = random.normal(0, 4), random.uniform(7, 16)
        half_wall = (random.uniform(2, 7), random.uniform(0.8, 2.5), 0.3)
        wall = box_of("box", x, half_wall[1], z, half_wall, pattern(random, stone, stone * 0.7, 0.5))
        world.solids.append(wall)
    spots = Spots(random, world, 1.8, 14)
    for _ in range(int(random.integers(3, 9))):
        x, z, scale = spots.free(0.35, 1.0)
        world.solids += thing(random, x, 0.0, z, scale * random.uniform(0.5, 1), colors)
    return world


def room(random: Random) -> RayWorld:
    """A room with a lamp: tables, balls, boxes and shelves."""
    colors = palette(random)
    half = np.array([random.uniform(1.8, 3.6), random.uniform(1.2, 1.7), random.uniform(3.2, 6.5)])
    deep = 2 * half[2] - random.uniform(0.8, 1.6)
    middle = np.array([random.normal(0, 0.6), half[1], deep - half[2]])
    walls = colors[random.integers(len(colors))] * 0.55 + 0.4
    floor = pattern(random, colors[1], colors[1] * random.uniform(0.6, 0.9), random.uniform(0.3, 0.8))
    wall = pattern(random, walls, walls * random.uniform(0.75, 0.97), random.uniform(0.4, 1.2))

    def paint(points: Array, places: Array) -> Array:
        at = points[:, 1:2]
        inner = np.where(at > 2 * half[1] - 0.01, walls * 0.3 + 0.6, wall(points, places))
        return np.where(at < 0.01, floor(points, points[:, [0, 2]]), inner)

    warm = np.array([1.0, random.uniform(0.8, 0.97), random.uniform(0.62, 0.95)])
    lamp = np.array([random.normal(middle[0], 0.8), 2 * half[1] - 0.3, random.uniform(1.5, deep - 0.8)])
    world = RayWorld(
        height=random.uniform(0.8, 1.6),
        pitch=random.uniform(-0.3, -0.03),
        roll=random.normal(0, 0.02),
        spread=random.uniform(0.5, 0.85),
        ground=floor,
        solids=[],
        ridges=[],
        room=Solid("box", middle, half, paint),
        light=lamp,
        glow=warm * random.uniform(0.7, 1.4),
        ambient=np.array([0.62, 0.64, 0.7]) * random.uniform(0.6, 1.2),
        haze=warm * 0.5,
        density=0.0,
        zenith=warm,
        softness=0.06,
    )
    spots = Spots(random, world, 1.7, deep - 0.6, limit=float(half[0]) - 0.5, shift=float(middle[0]))
    for _ in range(int(random.integers(4, 9))):
        x, z, scale = spots.free(0.25, 0.6)
        if random.random() < 0.3:
            world.solids += table(random, x, z, colors)
        else:
            world.solids += thing(random, x, 0.0, z, scale * random.uniform(0.5, 1), colors)
    if random.random() < 0.5:  # a shelf or a picture on the far wall
        place = (middle[0] + random.normal(0, 0.8), random.uniform(1.0, 1.7), deep - 0.12)
        size = (random.uniform(0.3, 0.9), random.uniform(0.15, 0.5), 0.12)
        world.solids.append(box_of("box", *place, size, pattern(random, colors[2], colors[3], 0.4)))
    return world


class Spots:
    """Free places on the ground within view: near ones as often as twice as far ones."""

    def __init__(
        self,
        random: Random,
        world: RayWorld,
        near: float = 2.2,
        far: float = 24.0,
        limit: float = 99.0,
        shift: float = 0,
    ) -> None:
        self._random, self._world, self._range = random, world, (np.log(near), np.log(far))
        self._limit, self._shift = limit, shift
        self._taken = [(solid.middle[0], solid.middle[2], min(solid.reach, 1.0)) for solid in world.solids]

    def free(self, least: float, most: float) -> tuple[float, float, float]:
        """(x, z, scale), which keeps away from what stands already, if there is space."""
        random = self._random
        for _ in range(12):
            z = float(np.exp(random.uniform(*self._range)))
            wide = min(0.9 * self._world.spread * z, self._limit)
            x, scale = random.uniform(-wide, wide), random.uniform(least, most)
            if self._limit < 99:
                x += self._shift
            if all((x - a) ** 2 + (z - b) ** 2 > (0.6 * (scale + r)) ** 2 for a, b, r in self._taken):
                break
        self._taken.append((x, z, scale))
        return float(x), z, float(scale)


def outdoors(random: Random) -> RayWorld:
    """An empty land under a sky, with ridges at the horizon."""
    warmth, noon = random.random(), random.random()
    zenith = hue(random, 0.58, 0.04, (0.35, 0.7), (0.55, 0.9))
    haze = np.array([0.92, 0.80 + 0.12 * noon, 0.68 + 0.28 * noon]) * random.uniform(0.75, 1.0)
    turn, up = random.uniform(-2.6, 2.6), random.uniform(0.25, 1.1)
    world = RayWorld(
        height=random.uniform(0.9, 2.6),
        pitch=random.uniform(-0.24, 0.0),
        roll=random.normal(0, 0.02),
        spread=random.uniform(0.45, 0.8),
        ground=plain(zenith),
        solids=[],
        ridges=[],
        room=None,
        light=np.array([np.sin(turn) * np.cos(up), np.sin(up), np.cos(turn) * np.cos(up)]),
        glow=np.array([1.0, 0.93 - 0.2 * warmth, 0.82 - 0.35 * warmth]) * random.uniform(0.6, 1.0),
        ambient=(0.4 * zenith + 0.35) * random.uniform(0.7, 1.1),
        haze=haze,
        density=float(np.exp(random.uniform(np.log(0.004), np.log(0.05)))),
        zenith=zenith,
        softness=0.03,
        clouds=np.array([random.uniform(0, 1), random.uniform(1, 3), random.uniform(0, 6)]),
    )
    distance = random.uniform(30, 60)
    land = hue(random, random.choice((0.28, 0.1, 0.6)), 0.06, (0.15, 0.45), (0.3, 0.6))
    for _ in range(int(random.integers(0, 4))):
        profile = chain(random, distance * random.uniform(0.06, 0.16), distance)
        color = hue_near(random, land)
        world.ridges.append(Ridge(distance, profile, noisy(random, color, color * 0.75, 12 / distance)))
        distance *= random.uniform(1.5, 2.2)
    return world


def chain(random: Random, tall: float, distance: float) -> Paint:  # a profile of a ridge
    waves = [(random.uniform(2, 4) * 2**k / distance, random.uniform(0, 6), 0.5**k) for k in range(4)]

    def profile(x: Array) -> Array:
        return tall * (0.6 + sum(weight * np.sin(wave * x + begin) for wave, begin, weight in waves) * 0.5)

    return profile  # type: ignore[return-value]


def tree(random: Random, x: float, z: float, scale: float, leaves: Array) -> list[Solid]:
    """A trunk with a crown: a ball, three balls, or cones."""
    bark = hue(random, 0.08, 0.03, (0.3, 0.5), (0.25, 0.45))
    tall = scale * random.uniform(0.3, 0.55)
    parts = [box_of("column", x, tall, z, (0.07 * scale, tall, 0.07 * scale), noisy(random, bark, bark * 0.6, 6))]
    paint = noisy(random, leaves, leaves * 0.55, 5 / scale)
    kind = random.integers(3)
    if kind == 0:
        half = scale * random.uniform(0.35, 0.6, 3) * np.array([1, 1.1, 1])
        parts.append(Solid("ball", np.array([x, 2 * tall + 0.5 * half[1], z]), half, paint))
    elif kind == 1:
        for _ in range(3):
            half = scale * random.uniform(0.25, 0.42, 3)
            away = scale * random.normal(0, 0.18, 3)
            parts.append(Solid("ball", np.array([x, 2 * tall + 0.25 * scale, z]) + away, half, paint))
    else:
        for level in range(2):
            half = scale * np.array([0.42, 0.55, 0.42]) * (1 - 0.25 * level)
            parts.append(Solid("cone", np.array([x, tall + half[1] + 0.5 * scale * level, z]), half, paint))
    return parts


def house(random: Random, x: float, z: float, scale: float, colors: list[Array]) -> list[Solid]:
    """A box with a roof: a flat one, or a cone on a tower."""
    first, other = (colors[index] for index in random.permutation(len(colors))[:2])
    wall = pattern(random, first * 0.6 + 0.35, first * 0.5 + 0.3, 0.6)
    half = scale * random.uniform(0.4, 0.9, 3)
    angle = random.uniform(0, 6)
    if random.random() < 0.5:
        roof = (half[0] * 1.1, 0.08 * scale, half[2] * 1.1)
        return [
            box_of("box", x, half[1], z, half, wall, angle),
            box_of("box", x, 2 * half[1] + roof[1], z, roof, plain(other), angle),
        ]
    radius = half[0] * 0.7
    top = (radius * 1.35, half[1] * 0.6, radius * 1.35)
    return [
        box_of("column", x, half[1] * 1.2, z, (radius, half[1] * 1.2, radius), wall),
        box_of("cone", x, half[1] * 2.4 + top[1], z, top, noisy(random, other, other * 0.7, 4)),
    ]


def table(random: Random, x: float, z: float, colors: list[Array]) -> list[Solid]:
    """A table, and mostly something on it."""
    wood = colors[random.integers(len(colors))] * 0.8
    wide, tall, deep = random.uniform(0.35, 0.7), random.uniform(0.3, 0.45), random.uniform(0.3, 0.5)
    paint = pattern(random, wood, wood * 0.8, 0.4)
    parts = [box_of("box", x, 2 * tall, z, (wide, 0.03, deep), paint)]
    for a, b in ((-1, -1), (1, -1), (-1, 1), (1, 1)):
        leg = (0.04, tall, 0.04)
        parts.append(box_of("box", x + a * (wide - 0.06), tall, z + b * (deep - 0.06), leg, plain(wood * 0.7)))
    if random.random() < 0.8:
        parts += thing(random, x, 2 * tall + 0.03, z, random.uniform(0.1, 0.22), colors, most=1)
    return parts


def thing(
    random: Random, x: float, y: float, z: float, scale: float, colors: list[Array], most: int = 2
) -> list[Solid]:
    """A ball, a box, a column or a cone on something, and now and then one more on top."""
    first, other = (colors[index] for index in random.permutation(len(colors))[:2])
    paint = pattern(random, first, other, scale * random.uniform(0.3, 0.9))
    shape = str(random.choice(("ball", "box", "column", "cone"), p=(0.4, 0.3, 0.2, 0.1)))
    half = scale * (np.ones(3) if shape == "ball" else random.uniform(0.5, 1.1, 3))
    if shape in ("column", "cone"):
        half[2] = half[0]
    made = [box_of(shape, x, y + half[1], z, half, paint, random.uniform(0, 6))]
    if most > 1 and shape in ("box", "column") and random.random() < 0.5:
        made += thing(random, x, y + 2 * half[1], z, 0.6 * min(half[0], half[2]), colors, most - 1)
    return made


def box_of(shape: str, x: float, y: float, z: float, half: object, paint: Paint, angle: float = 0.0) -> Solid:
    """A solid by its middle and its half sizes."""
    return Solid(shape, np.array([x, y, z]), np.array(half, float), paint, angle)


def palette(random: Random) -> list[Array]:
    """Five colors that go together; for a third of the scenes any colors."""
    if random.random() < 0.33:
        return [random.uniform(0.1, 0.95, 3) for _ in range(5)]
    codes = PALETTES[random.integers(len(PALETTES))]
    colors = [np.array([int(code[at : at + 2], 16) / 255 for at in (0, 2, 4)]) for code in codes]
    return [colors[index] for index in random.permutation(5)]


def hue(random: Random, middle: float, away: float, dull: tuple[float, float], bright: tuple[float, float]) -> Array:
    """A color whose hue is near `middle`."""
    return np.array(hsv_to_rgb((middle + random.normal(0, away)) % 1, random.uniform(*dull), random.uniform(*bright)))


def hue_near(random: Random, color: Array) -> Array:
    """A color like this one."""
    near: Array = np.clip(color * random.uniform(0.8, 1.2) + random.normal(0, 0.04, 3), 0, 1)
    return near


def plain(color: Array) -> Paint:
    """One color."""
    return lambda points, _: np.broadcast_to(color, points.shape)


def noisy(random: Random, one: Array, other: Array, scale: float) -> Paint:
    """Two colors that mix in spots of about 1 / `scale` meters."""
    ways, begins = random.normal(0, 1, (3, 7)) * scale * 1.6 ** np.arange(7), random.uniform(0, 6, 7)
    weights = 0.62 ** np.arange(7)

    def paint(points: Array, _: Array) -> Array:
        waves = points @ ways.astype(np.float32) + begins.astype(np.float32)
        bent = np.sin(waves + np.sin(np.roll(waves, 1, axis=1)))
        share = np.clip(0.5 + bent @ weights.astype(np.float32) * 0.34, 0, 1)[:, None]
        return one + (other - one) * share

    return paint


def path(random: Random, beside: Paint, color: Array) -> Paint:
    """A ground with a winding path to the horizon."""
    wide, far, wave, begin = random.uniform(0.4, 1.2), random.uniform(0.3, 2), random.uniform(0.1, 0.4), random.normal()

    def paint(points: Array, places: Array) -> Array:
        middle = begin + far * np.sin(wave * points[:, 2])
        within = np.clip((wide - np.abs(points[:, 0] - middle)) * 6, 0, 1)[:, None]
        around = beside(points, places)
        return around + within * (color * 0.8 + 0.1 - around)

    return paint


def pattern(random: Random, one: Array, other: Array, size: float) -> Paint:
    """Checks, stripes, bricks, dots, spots or one color; `size` in meters."""
    kind, flip = random.integers(6), random.integers(2)
    spots = noisy(random, one, other, 0.4 / size)

    def paint(points: Array, places: Array) -> Array:
        u, v = places[:, flip] / size, places[:, 1 - flip] / size
        if kind == 0:
            share = (np.floor(u) + np.floor(v)) % 2
        elif kind == 1:
            share = np.floor(v * 1.5) % 2
        elif kind == 2:
            row = np.floor(v * 2)
            share = ((v * 2 - row < 0.12) | ((u + 0.5 * row) % 1 < 0.06)).astype(float)
        elif kind == 3:
            share = ((u % 1 - 0.5) ** 2 + (v % 1 - 0.5) ** 2 < 0.08).astype(float)
        elif kind == 4:
            return spots(points, places)
        else:
            return np.broadcast_to(one, points.shape)
        return one + (other - one) * share[:, None]

    return paint


def main() -> None:
    """Write a JPEG for each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--size", type=int, nargs=2, default=(960, 540))
    parser.add_argument("--fine", type=int, default=3, help="rays along a side of a pixel")
    options = parser.parse_args()
    for seed in options.seeds:
        pixels, _ = scene(np.random.default_rng(seed), tuple(options.size), options.fine)
        Image.fromarray(np.round(pixels * 255).astype(np.uint8)).save(options.out / f"scene-{seed}.jpg", quality=88)


if __name__ == "__main__":
    main()
