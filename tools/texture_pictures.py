"""Makes the picture of docs/textures.md: `python tools/texture_pictures.py` at the top of a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import perframe as pf

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "resampling.png"
MODES = ("linear", "area", "antialias")


def draw_modes() -> Any:
    """A detail of the painter's scene, shrunk in three ways, side by side, with pixels that can be seen."""
    scene, converter = np.asarray(Image.open(ROOT / "assets" / "painter" / "scene.jpg")), pf.TextureConverter()
    parts = []
    for mode in MODES:
        x, picture = pf.Tensor.empty((3, 112, 200)), np.zeros((112, 200, 3), np.uint8)
        converter.to_tensor(scene, x, pf.TextureTransform(resample=mode))
        converter.to_texture(x, picture)
        parts.append(picture[30:110, 60:140].repeat(4, 0).repeat(4, 1))
    return np.concatenate(parts, 1)


if __name__ == "__main__":
    Image.fromarray(draw_modes()).save(PICTURE, optimize=True)
