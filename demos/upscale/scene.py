"""The demo's own 3D scene: tori, spheres and boxes with painted patterns turn above a tiled floor."""

from __future__ import annotations

from math import cos, sin, tau
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import moderngl

Array = np.ndarray[Any, np.dtype[Any]]

# (mesh, pattern, colour, size, place in the ring or None for the middle)
THINGS = (
    ("torus", 1, (0.93, 0.42, 0.20), 1.00, None),
    ("sphere", 2, (0.98, 0.78, 0.26), 0.62, 0 / 6),
    ("box", 3, (0.26, 0.62, 0.86), 0.52, 1 / 6),
    ("torus", 4, (0.45, 0.78, 0.42), 0.62, 2 / 6),
    ("sphere", 3, (0.86, 0.33, 0.47), 0.58, 3 / 6),
    ("box", 1, (0.62, 0.47, 0.85), 0.48, 4 / 6),
    ("sphere", 4, (0.30, 0.74, 0.72), 0.60, 5 / 6),
)


class Scene:
    """Draws itself as it is at a time, in seconds, into the framebuffer that is bound. Needs a depth buffer."""

    def __init__(self, ctx: moderngl.Context) -> None:
        self._ctx = ctx
        folder = Path(__file__).parent
        self._program = ctx.program(
            vertex_shader=(folder / "scene.vert").read_text(encoding="utf-8"),
            fragment_shader=(folder / "scene.frag").read_text(encoding="utf-8"),
        )
        self._meshes: dict[str, moderngl.VertexArray] = {}
        for make in (torus, sphere, box, floor):
            vertices, triangles = make()
            content = [(ctx.buffer(vertices.tobytes()), "3f 3f 2f", "position", "normal", "place")]
            self._meshes[make.__name__] = ctx.vertex_array(
                self._program, content, index_buffer=ctx.buffer(triangles.tobytes())
            )

    def draw(self, time: float, aspect: float) -> None:
        """Draw the scene as `aspect` times as wide as it is high."""
        eye = np.array([5.6 * sin(tau * time / 31), 2.5 + 0.7 * sin(tau * time / 17), 5.6 * cos(tau * time / 31)])
        view = looking(eye, np.array([0.0, 0.75, 0.0]))
        self._set("eye", tuple(eye))
        self._set("view", (perspective(aspect) @ view).T.astype("f4").tobytes())
        self._ctx.enable(self._ctx.DEPTH_TEST)
        self._ctx.clear(0.463, 0.600, 0.776, depth=1.0)
        self._thing("floor", 0, (0.9, 0.88, 0.84), np.eye(4))
        for index, (mesh, pattern, color, size, place) in enumerate(THINGS):
            angle = 0.0 if place is None else tau * (place + time / 47)
            reach, height = (0.0, 1.25) if place is None else (2.55, 0.75 + 0.25 * sin(time * 1.3 + 2 * index))
            model = placed((reach * cos(angle), height, reach * sin(angle))) @ turned(time * 0.5 + index, index)
            self._thing(mesh, pattern, color, model @ np.diag([size, size, size, 1.0]))
        self._ctx.disable(self._ctx.DEPTH_TEST)

    def release(self) -> None:
        """Free the meshes and the program."""
        for mesh in self._meshes.values():
            mesh.release()
        self._program.release()

    def _thing(self, mesh: str, pattern: int, color: tuple[float, float, float], model: Array) -> None:
        self._set("model", model.T.astype("f4").tobytes())
        self._set("pattern", pattern)
        self._set("color", color)
        self._meshes[mesh].render()

    def _set(self, name: str, value: Any) -> None:
        uniform: Any = self._program[name]
        if isinstance(value, bytes):
            uniform.write(value)
        else:
            uniform.value = value


def grid(rows: int, columns: int) -> Array:
    """Triangles between the points of a grid, as indices."""
    corner = (np.arange(rows)[:, None] * (columns + 1) + np.arange(columns)).ravel()
    quads = [corner, corner + 1, corner + columns + 1, corner + 1, corner + columns + 2, corner + columns + 1]
    return np.stack(quads, 1).astype("i4")


def wrapped(rows: int, columns: int, point: Any) -> tuple[Array, Array]:
    """A surface whose points and normals are functions of two angles' shares, 0..1."""
    v, u = np.meshgrid(np.linspace(0, 1, rows + 1), np.linspace(0, 1, columns + 1), indexing="ij")
    position, normal = point(u * tau, v)
    vertices = np.concatenate([position, normal, np.stack([u, v], -1)], -1)
    return vertices.reshape(-1, 8).astype("f4"), grid(rows, columns)


def torus(thin: float = 0.36) -> tuple[Array, Array]:
    """A ring of radius 1."""

    def point(u: Array, v: Array) -> tuple[Array, Array]:
        out = np.stack([np.cos(u), np.zeros_like(u), np.sin(u)], -1)
        normal = out * np.cos(v * tau)[..., None] + np.array([0, 1, 0]) * np.sin(v * tau)[..., None]
        return out + thin * normal, normal

    return wrapped(32, 72, point)


def sphere() -> tuple[Array, Array]:
    """A ball of radius 1."""

    def point(u: Array, v: Array) -> tuple[Array, Array]:
        normal = np.stack([np.cos(u) * np.sin(v * tau / 2), np.cos(v * tau / 2), np.sin(u) * np.sin(v * tau / 2)], -1)
        return normal, normal

    return wrapped(32, 64, point)


def box() -> tuple[Array, Array]:
    """A cube of side 2."""
    sides = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            corners = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]], float)
            points = np.insert(corners, axis, sign, 1)
            normals = np.zeros((4, 3))
            normals[:, axis] = sign
            sides.append(np.concatenate([points, normals, corners / 2 + 0.5], 1))
    triangles = np.concatenate([np.array([[0, 1, 2], [1, 3, 2]]) + 4 * side for side in range(6)])
    return np.concatenate(sides).astype("f4"), triangles.astype("i4")


def floor(reach: float = 14.0) -> tuple[Array, Array]:
    """A square at height 0."""
    corners = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]], float)
    points = np.stack([corners[:, 0] * reach, np.zeros(4), corners[:, 1] * reach], 1)
    vertices = np.concatenate([points, np.tile([0.0, 1.0, 0.0], (4, 1)), corners * reach], 1)
    return vertices.astype("f4"), np.array([[0, 1, 2], [1, 3, 2]], "i4")


def perspective(aspect: float, view: float = 0.8, near: float = 0.5, far: float = 40.0) -> Array:
    """The projection of a camera that sees `view` radians from top to bottom."""
    scale = 1 / np.tan(view / 2)
    matrix = np.diag([scale / aspect, scale, (far + near) / (near - far), 0.0])
    matrix[2, 3], matrix[3, 2] = 2 * far * near / (near - far), -1
    return matrix


def looking(eye: Array, at: Array) -> Array:
    """The view from a point to another, upright."""
    back = (eye - at) / np.linalg.norm(eye - at)
    right = np.cross([0.0, 1.0, 0.0], back)
    right /= np.linalg.norm(right)
    matrix = np.eye(4)
    matrix[:3, :3] = np.stack([right, np.cross(back, right), back])
    matrix[:3, 3] = -matrix[:3, :3] @ eye
    return matrix


def placed(at: tuple[float, float, float]) -> Array:
    """A move."""
    matrix = np.eye(4)
    matrix[:3, 3] = at
    return matrix


def turned(angle: float, tilt: float) -> Array:
    """A turn around an axis that is tilted."""
    c, s, d, e = cos(angle), sin(angle), cos(0.9 + tilt), sin(0.9 + tilt)
    around = np.array([[c, 0, s, 0], [0, 1, 0, 0], [-s, 0, c, 0], [0, 0, 0, 1]])
    tip = np.array([[1, 0, 0, 0], [0, d, -e, 0], [0, e, d, 0], [0, 0, 0, 1]])
    made: Array = around @ tip
    return made
