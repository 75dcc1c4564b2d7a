"""The models that perframe must run, their inputs from pictures, and onnxruntime's outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

from perframe.importers.light import light_model

Array = NDArray[Any]
SHARED = Path(__file__).resolve().parents[3] / "shared"


@dataclass(frozen=True)
class Entry:
    """A model: the shape of its one input, and how it wants the picture's values (0 to 255, height × width × RGB)."""

    name: str
    shape: tuple[int, ...]
    picture: Callable[[Array], Array]
    small: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def file(self) -> Path | bytes:
        """The path, or the bytes of a model that the onnx package brings."""
        return light_bytes(self.name) if self.name.startswith("light_") else SHARED / "models" / f"{self.name}.onnx"

    @property
    def size(self) -> tuple[int, int]:
        """The width and height of the picture."""
        height, width = self.shape[1:3] if self.shape[-1] == 3 else self.shape[2:]
        return width, height

    def random(self) -> Array:
        """Seeded noise of the range that the picture has."""
        noise = np.random.default_rng(7).uniform(0, 255, (self.size[1], self.size[0], 3))
        return self._input(noise)

    def real(self, image: Path) -> Array:
        """A photograph."""
        with Image.open(image) as opened:
            scaled = opened.convert("RGB").resize(self.size, Image.Resampling.BILINEAR)
        return self._input(np.asarray(scaled, np.float64))

    def _input(self, pixels: Array) -> Array:
        return np.ascontiguousarray(self.picture(pixels).reshape(self.shape), np.float32)


def planes(pixels: Array) -> Array:
    return pixels.transpose(2, 0, 1)


def imagenet(pixels: Array) -> Array:
    return planes((pixels / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225])


ZOO = (
    Entry("mnist-12", (1, 1, 28, 28), lambda pixels: pixels.mean(-1)),
    Entry("blaze_face_short_range", (1, 128, 128, 3), lambda pixels: pixels / 127.5 - 1),
    Entry("ultraface_rfb_320", (1, 3, 240, 320), lambda pixels: planes((pixels - 127) / 128)),
    Entry("selfie_segmentation", (1, 144, 256, 3), lambda pixels: pixels / 255),
    Entry("light_squeezenet", (1, 3, 224, 224), imagenet),
    Entry("light_resnet50", (1, 3, 224, 224), imagenet, small=False),
)


@cache
def light_bytes(name: str) -> bytes:
    return light_model(name, seed=1)


@cache
def expected(entry: Entry, image: str | None) -> dict[str, Array]:
    """The outputs by onnxruntime, of noise or of a picture."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(entry.file, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    values = session.run(names, {session.get_inputs()[0].name: given(entry, image)})
    return {name: np.asarray(value) for name, value in zip(names, values, strict=True)}


def given(entry: Entry, image: str | None) -> Array:
    """The input: noise, or a picture by its name."""
    return entry.random() if image is None else entry.real(SHARED / "images" / image)
