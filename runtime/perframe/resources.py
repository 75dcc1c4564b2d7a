"""Paths of shaders, demos and assets. They lie inside the package in a wheel, and at the top of a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource(*parts: str) -> Path:
    """The path of a shipped file, e.g. `resource("shaders", "pool.glsl")`. Raises FileNotFoundError."""
    for root in (_PACKAGE, _PACKAGE.parents[1]):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise FileNotFoundError(f"{'/'.join(parts)} is not shipped with this installation of perframe ({_PACKAGE})")
