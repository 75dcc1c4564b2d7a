"""A ray caster for scenes of spheres, boxes, columns and cones on the ground, before ridges or inside a room.

Distances are in meters. x points right, y up, and z away from the viewer, who stands at (0, height, 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Paint = Callable[[Array, Array], Array]
"""From points of the world (n, 3) and places on the surface (n, 2), in meters, to colors (n, 3)."""

FAR = np.float32(1e9)
NEAR = np.float32(1e-3)
SURFACE = np.float32(4e-3)  # how far above a surface a ray to the light begins


@dataclass(frozen=True)
class Solid:
    """A unit shape, scaled by `half` (3), turned about the vertical by `angle`, and moved to `middle` (3)."""

    shape: str
    middle: Array
    half: Array
    paint: Paint
    angle: float = 0.0

    @property
    def to_unit(self) -> Array:
        """The matrix (3, 3) from directions of the world to those of the unit shape."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        turn = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
        matrix: Array = (turn / self.half[:, None]).astype(np.float32)
        return matrix

    @property
    def reach(self) -> float:
        """The radius of a sphere around it."""
        return float(np.linalg.norm(self.half) if self.shape == "box" else self.half.max())


@dataclass(frozen=True)
class Ridge:
    """A chain of hills: all that lies below `profile(x)` in the plane at a distance."""

    distance: float
    profile: Callable[[Array], Array]
    paint: Paint


@dataclass
class RayWorld:
    """All of a scene: what stands in it, and its light."""

    height: float  # of the eye
    pitch: float
    roll: float
    spread: float  # the tangent of half of the horizontal angle of view
    ground: Paint
    solids: list[Solid]
    ridges: list[Ridge]
    room: Solid | None
    light: Array  # a direction to the sun, or the place of a lamp in a room
    glow: Array  # the light's color
    ambient: Array
    haze: Array  # the color that far things take on
    density: float  # of the haze, per meter
    zenith: Array
    softness: float  # of shadows
    clouds: Array = field(default_factory=lambda: np.zeros(3))


def cast(world: RayWorld, size: tuple[int, int], fine: int, random: np.random.Generator) -> tuple[Array, Array]:
    """(colors (height, width, 3) in 0..1, inverse distances (height, width) in 1/m, 0 for the sky); both float32.

    Both are means over `fine` x `fine` rays a pixel. A distance is measured along the direction of view.
    """
    width, height = size
    colors, inverse = np.zeros((height, width, 3), np.float32), np.zeros((height, width), np.float32)
    for row, column in np.ndindex(fine, fine):
        ways = directions(world, size, ((column + 0.5) / fine, (row + 0.5) / fine))
        moved = world.light + random.normal(0, world.softness, 3)
        seen, distance = traced(world, ways, moved.astype(np.float32))
        colors += seen.reshape(height, width, 3) / fine**2
        inverse += np.where(distance < FAR, 1 / distance, 0).reshape(height, width) / fine**2
    return np.clip(colors, 0, 1), inverse


def directions(world: RayWorld, size: tuple[int, int], within: tuple[float, float]) -> Array:
    """A ray (n, 3) for each pixel, through the point `within` it, as long as 1 along the direction of view."""
    width, height = size
    x = ((np.arange(width) + within[0]) / width * 2 - 1) * world.spread
    y = (1 - (np.arange(height) + within[1]) / height * 2) * world.spread * height / width
    right, up = np.meshgrid(x, y)
    c, s = np.cos(world.roll), np.sin(world.roll)
    right, up = c * right - s * up, s * right + c * up
    c, s = np.cos(world.pitch), np.sin(world.pitch)
    ways = np.stack([right, c * up + s, c - s * up], -1)
    flat: Array = ways.reshape(-1, 3).astype(np.float32)
    return flat


def traced(world: RayWorld, ways: Array, light: Array) -> tuple[Array, Array]:
    """Colors (n, 3) and distances (n) of rays from the eye."""
    eye = np.array([0, world.height, 0], np.float32)
    nearest, index = np.full(len(ways), FAR), np.full(len(ways), -1)
    things: list[Solid | Ridge] = [*world.solids, *world.ridges]
    for number, thing in enumerate(things):
        distance = met(thing, eye, ways)
        closer = distance < nearest
        nearest, index = np.where(closer, distance, nearest), np.where(closer, number, index)
    if world.room is not None:
        distance = met(world.room, eye, ways, inside=True)
        closer = distance < nearest
        nearest, index = np.where(closer, distance, nearest), np.where(closer, -2, index)
    else:
        with np.errstate(divide="ignore"):
            down = np.where(ways[:, 1] < -1e-6, -world.height / ways[:, 1], FAR)
        closer = down < np.minimum(nearest, 400)
        nearest, index = np.where(closer, down, nearest), np.where(closer, -3, index)
    points, normals = eye + nearest[:, None] * ways, np.zeros_like(ways)
    colors = sky(world, ways, light)
    for number in np.unique(index[index != -1]):
        here = np.flatnonzero(index == number)
        thing = world.room if number == -2 else None if number == -3 else things[number]
        normals[here], places = surface(thing, points[here])
        if number == -2:  # walls face inward
            normals[here] *= -1
        paint = thing.paint if thing is not None else world.ground
        colors[here] = paint(points[here], places)
    seen = np.flatnonzero(index != -1)
    lit = shaded(world, points[seen], normals[seen], light, index[seen] >= len(world.solids))
    colors[seen] = colors[seen] * lit
    share = (1 - np.exp(-nearest[seen] * world.density))[:, None]
    colors[seen] += share * (world.haze - colors[seen])
    return colors, nearest


def met(thing: Solid | Ridge, origin: Array, ways: Array, inside: bool = False) -> Array:
    """How far along rays a thing is first met, or last if the rays begin `inside` it. FAR where it is not met."""
    if isinstance(thing, Ridge):
        distance = thing.distance / np.maximum(ways[:, 2], 1e-6)
        points = origin + distance[:, None] * ways
        return np.where(points[:, 1] < thing.profile(points[:, 0]), distance, FAR)
    matrix = thing.to_unit
    start, way = (origin - thing.middle).astype(np.float32) @ matrix.T, ways @ matrix.T
    with np.errstate(divide="ignore", invalid="ignore"):
        first, last = bounds(thing.shape, start, way)
    if inside:
        return np.where((first < last) & (last > NEAR), last, FAR)
    return np.where((first < last) & (first > NEAR), first, FAR)


def bounds(shape: str, start: Array, way: Array) -> tuple[Array, Array]:
    """Where rays enter and leave a unit shape; they miss it where the first is not below the last."""
    if shape == "box":
        middle, half = -start / way, np.abs(1 / way)
        first, last = (middle - half).T, (middle + half).T
        return np.maximum(np.maximum(first[0], first[1]), first[2]), np.minimum(np.minimum(last[0], last[1]), last[2])
    if shape == "ball":
        return roots(dot(way, way), dot(way, np.broadcast_to(start, way.shape)), dot(start, start) - 1)
    one, other = (-1 - start[..., 1]) / way[:, 1], (1 - start[..., 1]) / way[:, 1]
    enter, leave = np.minimum(one, other), np.maximum(one, other)
    x, z, dx, dz = start[..., 0], start[..., 2], way[:, 0], way[:, 2]
    if shape == "column":
        first, last = roots(dx * dx + dz * dz, x * dx + z * dz, x * x + z * z - 1)
        return np.maximum(first, enter), np.minimum(last, leave)
    slope, radius = -0.5 * way[:, 1], 0.5 * (1 - start[..., 1])  # a cone: its radius falls from 1 to 0
    a, b = dx * dx + dz * dz - slope * slope, x * dx + z * dz - radius * slope
    first, last = roots(a, b, x * x + z * z - radius * radius)
    opens = a < 0  # such a ray enters or leaves for ever below the tip; its roots come in reverse
    falls = way[:, 1] < 0
    low = np.where(opens, np.where(falls, first, -FAR), first)
    high = np.where(opens, np.where(falls, FAR, last), last)
    return np.maximum(low, enter), np.minimum(high, leave)


def dot(one: Array, other: Array) -> Array:
    """The inner products of vectors (..., 3)."""
    products: Array = np.einsum("...i,...i->...", one, other)
    return products


def roots(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The roots of a t² + 2 b t + c; the first is FAR where there are none."""
    inner = b * b - a * c
    root = np.sqrt(np.maximum(inner, 0))
    return np.where(inner > 0, (-b - root) / a, FAR), np.where(inner > 0, (-b + root) / a, -FAR)


def surface(thing: Solid | Ridge | None, points: Array) -> tuple[Array, Array]:
    """Normals (n, 3) at points of a thing, and places (n, 2) on it; None is the ground."""
    if thing is None:
        return np.broadcast_to(np.array([0, 1, 0], np.float32), points.shape), points[:, [0, 2]]
    if isinstance(thing, Ridge):
        away = 0.02 * thing.distance
        slope = (thing.profile(points[:, 0] + away) - thing.profile(points[:, 0] - away)) / (2 * away)
        normal = np.stack([-slope, np.full_like(slope, 0.7), np.full_like(slope, -1)], -1)
        return normal / np.linalg.norm(normal, axis=1, keepdims=True), points[:, [0, 1]]
    matrix = thing.to_unit
    unit = (points - thing.middle).astype(np.float32) @ matrix.T
    size = thing.half
    if thing.shape == "box":
        side = np.abs(unit).argmax(1)
        normal = np.sign(unit) * (np.arange(3) == side[:, None])
        along, other = np.array([2, 0, 0])[side], np.array([1, 2, 1])[side]
        rows = np.arange(len(unit))
        places = np.stack([unit[rows, along] * size[along], unit[rows, other] * size[other]], -1)
    else:
        around = np.arctan2(unit[:, 0], unit[:, 2]) * size[0]
        is_end = np.abs(unit[:, 1]) > 0.9999
        if thing.shape == "ball":
            normal, up = unit, np.arcsin(np.clip(unit[:, 1], -1, 1)) * size[1]
        else:
            level = unit[:, 1] if thing.shape == "column" else np.minimum(unit[:, 1], 0.999)
            lean = 0.0 if thing.shape == "column" else 0.25 * (1 - level)
            normal, up = np.stack([unit[:, 0], lean + 0 * level, unit[:, 2]], -1), unit[:, 1] * size[1]
            ends = np.stack([0 * level, np.sign(unit[:, 1]), 0 * level], -1)
            normal = np.where(is_end[:, None], ends, normal)
        places = np.stack([around, up], -1)
    normal = normal @ matrix
    return normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-6), places


def shaded(world: RayWorld, points: Array, normals: Array, light: Array, is_distant: Array) -> Array:
    """The light (n, 3) at points: from above, less near things, and from the sun or lamp unless it is hidden."""
    if world.room is not None:
        ways = light - points
        far = np.linalg.norm(ways, axis=1, keepdims=True)
        facing = dot(normals, ways)[:, None] / far
        direct = np.maximum(facing, 0) * 8 / (4 + far * far)
    else:
        ways = np.broadcast_to(light / np.linalg.norm(light), points.shape)
        direct = np.maximum(dot(normals, ways), 0)[:, None]
    open_sky = np.ones(len(points), np.float32)
    is_free = np.ones(len(points), bool)
    start = points + SURFACE * (1 + 0.05 * points[:, 2:3]) * normals
    for solid in world.solids:
        away = solid.middle.astype(np.float32) - points
        square = np.maximum(dot(away, away), 1e-6)
        cover = np.maximum(dot(normals, away) / np.sqrt(square), 0) * solid.reach**2 / square
        open_sky *= 1 - np.minimum(0.75 * cover, 0.6)
        distance = met(solid, start, ways.astype(np.float32))
        is_free &= distance > (1 if world.room is not None else FAR / 2)
    above = 0.65 + 0.35 * normals[:, 1:2]
    open_sky = np.where(is_distant, 1, open_sky)
    lit: Array = world.ambient * above * open_sky[:, None] + world.glow * direct * (is_free | is_distant)[:, None]
    return lit.astype(np.float32)


def sky(world: RayWorld, ways: Array, light: Array) -> Array:
    """Colors (n, 3) of the sky: haze at the horizon, clouds, and a glow around the sun."""
    way = ways / np.linalg.norm(ways, axis=1, keepdims=True)
    up = np.clip(way[:, 1:2] * 2.2, 0, 1) ** 0.6
    color = world.haze + (world.zenith - world.haze) * up
    flat = way[:, [0, 2]] / (0.12 + np.abs(way[:, 1:2]))
    amount, scale, begin = world.clouds
    x, z = flat[:, 0] * scale, flat[:, 1] * scale
    wave = (
        np.sin(x + begin + 1.3 * np.sin(0.7 * z)) + 0.6 * np.sin(2.1 * z + 0.8 * x + 2 * begin) + 0.4 * np.sin(3.7 * x)
    )
    color += amount * (np.clip(wave * 0.6, 0, 1) ** 1.5)[:, None] * up * (1 - color) * 0.8
    toward = np.maximum(way @ light / np.linalg.norm(light), 0)[:, None]
    color += world.glow * (0.5 * toward**200 + 0.12 * toward**6)
    return color.astype(np.float32)
