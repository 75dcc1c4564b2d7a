"""A picture to draw over, and an overlay that draws there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import perframe as pf
from vision.rasterized import Target


@pytest.fixture
def target(gl_context: Any) -> Target:
    return Target(gl_context)


@pytest.fixture
def overlay(gl_context: Any, target: Target) -> Iterator[pf.vision.Overlay]:
    with pf.vision.Overlay(gl_context, target=target.framebuffer) as made:
        yield made
