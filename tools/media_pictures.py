"""Makes the pictures of docs/media.md: `python tools/media_pictures.py` in a checkout."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import perframe as pf
from perframe.command_line.commands.demo import load_demo

ROOT = Path(__file__).resolve().parents[1]
PLANES = ROOT / "docs" / "pictures" / "planes.png"
BANDS = ROOT / "docs" / "pictures" / "bands.png"
SIZE, GAP = (320, 180), 16  # pixels
BLUES = (0.85, 0.8, 0.3), (0.3, 0.35, 1.0)  # the colors between which a plane of chroma chooses
REDS = (0.2, 0.75, 0.5), (1.0, 0.3, 0.35)
COLORS = np.array([[8, 8, 20], [60, 20, 90], [150, 45, 110], [225, 95, 70], [250, 190, 90], [255, 250, 220]])
FIRST, SECONDS, HIGH = 0.4, 8.0, 3  # seconds of the demo's evening; rows of pixels for a band


def draw_planes(ctx: Any) -> Any:
    """A frame of a film: its luma, its two planes of chroma, and what the GPU makes of them."""
    scene = np.asarray(Image.open(ROOT / "assets" / "painter" / "scene.jpg").resize(SIZE, Image.Resampling.LANCZOS))
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        with pf.media.open_sink(film) as sink:
            sink.write(scene)
        with pf.media.open_source(film) as source:
            picture = next(iter(source))
    assert isinstance(picture.content, pf.graphics.yuv.YuvFrame)
    y, u, v = (plane[..., 0] for plane in picture.content.planes)  # rows end with padding
    y, u, v = y[:, : SIZE[0]], u[:, : SIZE[0] // 2], v[:, : SIZE[0] // 2]
    texture, made = ctx.texture(SIZE, 4), np.zeros((*SIZE[::-1], 4), np.uint8)
    with pf.TextureConverter(ctx) as converter:
        converter.upload(picture, texture)
        x = pf.Tensor.empty((1, 3, *SIZE[::-1]))
        converter.to_tensor(texture, x)
        converter.to_texture(x, made)
    texture.release()
    chroma = np.concatenate(
        [_toned(u, (0.85, 0.8, 0.3), (0.3, 0.35, 1.0)), _toned(v, (0.2, 0.75, 0.5), (1.0, 0.3, 0.35))]
    )
    parts = [np.repeat(y[..., None], 3, 2), chroma, made[..., :3]]
    gap = np.zeros((SIZE[1], GAP, 4), np.uint8)
    drawn = [np.dstack([part, np.full(part.shape[:2], 255, np.uint8)]) for part in parts]
    return np.concatenate([drawn[0], gap, drawn[1], gap, drawn[2]], 1)


def _toned(plane: Any, low: tuple[float, ...], high: tuple[float, ...]) -> Any:
    """A plane of chroma between two colors."""
    share = np.clip((plane.astype(float) - 128) / 96 + 0.5, 0, 1)[..., None]
    return np.rint(255 * (np.array(low) * (1 - share) + np.array(high) * share)).astype(np.uint8)


def draw_bands() -> Any:
    """Bands of the sound of the demo over time, low ones at the bottom."""
    load_demo("listen")
    sound = import_module("perframe_demos.listen.voices").evening()[0][
        int(FIRST * 16_000) : int((FIRST + SECONDS) * 16_000)
    ]
    graph = pf.FunctionalGraph("bands")
    bands = pf.functional.whisper_spectrogram(graph.add_input("float32", (1, len(sound)), "sound"))
    with pf.Worker(graph.compile(bands=bands)) as worker:
        heard = worker.schedule(sound[None]).peek_output().numpy()[0]
    share = (heard - heard.min()) / np.ptp(heard) * (len(COLORS) - 1)
    colors = np.stack([np.interp(share, np.arange(len(COLORS)), channel) for channel in COLORS.T], 2)
    return np.rint(colors[::-1].repeat(HIGH, 0)).astype(np.uint8)


if __name__ == "__main__":
    with pf.App(size=(64, 36), headless=True) as app:
        Image.fromarray(draw_planes(app.ctx)).save(PLANES, optimize=True)
    Image.fromarray(draw_bands()).save(BANDS, optimize=True)
