"""Small films whose pictures tell their index."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import av
import numpy as np

from perframe.media import Picture, open_sink

RATE = 25


def grey(index: int, size: tuple[int, int] = (64, 36)) -> Any:
    """A picture that is as grey as its index says, with a white bottom."""
    pixels = np.full((size[1], size[0], 3), 20 + 6 * (index % 38), np.uint8)
    pixels[-size[1] // 4 :] = 255
    return pixels


def index_of(pixels: Any) -> int:
    """The index that the picture tells."""
    return round((float(pixels[: pixels.shape[0] // 2].mean()) - 20) / 6)


def film(path: Path, frames: int = 30, size: tuple[int, int] = (64, 36)) -> Path:
    """A video, or a folder, of these pictures."""
    with open_sink(path, RATE) as sink:
        for index in range(frames):
            sink.write(Picture(grey(index, size), index, index / RATE))
    return path


def film_with_sound(path: Path, frames: int = 30) -> Path:
    """A video with pictures that depend on later ones, and a tone. Every eighth picture stands for itself."""
    with av.open(str(path), "w") as container:
        shown: Any = container.add_stream("libx264", rate=RATE, options={"g": "8", "bf": "3"})
        shown.width, shown.height, shown.pix_fmt = 64, 36, "yuv420p"
        heard: Any = container.add_stream("aac", rate=8000, layout="mono")
        for index in range(frames):
            container.mux(shown.encode(av.VideoFrame.from_ndarray(grey(index), format="rgb24")))
        wave = np.sin(np.arange(frames * 8000 // RATE) * 0.3).astype(np.float32)
        for begin in range(0, len(wave), 1024):
            sound = av.AudioFrame.from_ndarray(wave[None, begin : begin + 1024], format="fltp", layout="mono")
            sound.sample_rate, sound.pts = 8000, begin
            container.mux(heard.encode(sound))
        container.mux(heard.encode())
        container.mux(shown.encode())
    return path


def media_threads() -> list[str]:
    """The names of the threads of sources and sinks that run."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("perframe-media")]
