"""The pictures of docs/media.md show what the code makes today."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from media_pictures import BANDS, GAP, PLANES, SIZE, draw_bands, draw_planes
from PIL import Image


def test_the_planes_are_those_of_a_film(gl_context: Any) -> None:
    """Encoders differ a little."""
    pytest.importorskip("av")
    drawn, shown = draw_planes(gl_context), np.asarray(Image.open(PLANES))
    assert drawn.shape == shown.shape == (SIZE[1], 5 * SIZE[0] // 2 + 2 * GAP, 4)
    assert np.abs(drawn.astype(float) - shown).mean() < 2


def test_the_bands_are_those_of_the_demo() -> None:
    assert np.abs(draw_bands().astype(float) - np.asarray(Image.open(BANDS))).max() <= 2
