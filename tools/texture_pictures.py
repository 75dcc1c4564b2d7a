"""Makes the pictures of docs/textures.md and docs/tutorial.md: `python tools/texture_pictures.py` in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import perframe as pf

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "resampling.png"
ORIGINS = ROOT / "docs" / "pictures" / "origins.png"
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


def draw_origins(ctx: Any) -> Any:
    """The tutorial's scene, read with the origin of drawn textures, and with that of pictures: upside down."""
    target, converter = ctx.framebuffer([ctx.texture((320, 180), 4)]), pf.TextureConverter(ctx)
    target.clear(0.3, 0.5, 0.9)
    target.clear(0.2, 0.6, 0.2, viewport=(0, 0, 320, 60))
    target.clear(0.9, 0.2, 0.1, viewport=(60, 60, 40, 40))
    parts = []
    for origin in (None, "top_left"):
        x, picture = pf.Tensor.empty((1, 3, 180, 320)), np.zeros((180, 320, 4), np.uint8)
        converter.to_tensor(target, x, pf.TextureTransform(coord_origin=origin))
        converter.to_texture(x, picture)
        picture[..., 3] = 255
        parts += [picture, np.zeros((180, 20, 4), np.uint8)]
    converter.release()
    return np.concatenate(parts[:-1], 1)


if __name__ == "__main__":
    Image.fromarray(draw_modes()).save(PICTURE, optimize=True)
    with pf.App(size=(64, 36), headless=True) as app:
        Image.fromarray(draw_origins(app.ctx)).save(ORIGINS, optimize=True)
