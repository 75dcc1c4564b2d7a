"""Makes the picture of docs/textures.md: `python tools/texture_pictures.py` at the top of a checkout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

import perframe as pf

ROOT = Path(__file__).resolve().parents[1]
MODES = ("linear", "area", "antialias")
SHRUNK, SIZE = 8, 320  # times, and pixels of a detail in the page


def main() -> None:
    """Shrink the painter's scene in each mode, and enlarge a detail so that its elements can be seen."""
    picture = np.asarray(Image.open(ROOT / "assets" / "painter" / "scene.png"))
    height, width = picture.shape[0] // SHRUNK, picture.shape[1] // SHRUNK
    converter, details = pf.TextureConverter(), []
    for mode in MODES:
        tensor = pf.Tensor.empty((1, 3, height, width))
        values = converter.to_tensor(picture, tensor, pf.TextureTransform().set_resample(mode)).download_to_array()
        pixels = (values[0].transpose(1, 2, 0).clip(0, 1) * 255).round().astype(np.uint8)
        detail = Image.fromarray(pixels[-80:, 60:140])
        details.append(np.asarray(detail.resize((SIZE, SIZE), Image.Resampling.NEAREST)))
    Image.fromarray(np.concatenate(details, 1)).save(ROOT / "docs" / "pictures" / "resampling.png", optimize=True)


if __name__ == "__main__":
    main()
