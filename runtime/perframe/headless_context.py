"""A GL context without a screen, for workers and for surfaces alike, which must not know each other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from perframe.errors import BackendError

Context = TypeVar("Context")

VERSIONS = (430, 330)  # compute shaders where they can be had; macOS has none
IS_EGL = sys.platform.startswith("linux")


def create_headless(create_context: Callable[..., Context]) -> Context:
    """A context by moderngl's `create_context`: GL 4.3 where it can be had, else 3.3. It is current afterwards.

    Raises BackendError that says what to install.
    """
    settings: dict[str, Any] = {"backend": "egl"} if IS_EGL else {}
    reasons = []
    for version in VERSIONS:
        try:
            return create_context(require=version, standalone=True, **settings)
        except Exception as error:  # moderngl raises Exception itself
            reasons.append(f"GL {version / 100:.1f}: {error}")
    raise BackendError(
        f"no OpenGL context can be made here ({'; '.join(reasons)}): install a driver "
        "(apt install libegl1 libgl1 libgl1-mesa-dri gives one that needs no GPU), or use backend 'cpu'"
    )
