"""A tensor's values for a notebook: a small picture, or a histogram."""

from __future__ import annotations

import base64
import html
import io

import numpy as np

from perframe.tensor.dtypes import Array

MOST_SIDE = 256  # pixels of a picture in a notebook
_BINS, _WIDTH, _HEIGHT = 48, 320, 80
_CHANNELS = (1, 3, 4)


def drawn(title: str, values: Array) -> str:
    """HTML of a tensor: its title, and a picture of its values or their distribution."""
    heading = f"<code>{html.escape(title)}</code>"
    if values.dtype == object or values.dtype.kind == "c" or not values.size:
        return heading
    numbers = np.asarray(values, np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return f"{heading}<br>no finite value"
    said = f"min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}"
    if finite.size < numbers.size:
        said += f", {numbers.size - finite.size:,} values are NaN or infinite"
    if values.size <= 8:
        return f"{heading}<br><code>{html.escape(np.array2string(values, precision=6))}</code>"
    picture = _pixels(numbers, values.dtype == np.uint8, float(finite.min()), float(finite.max()))
    figure = _histogram(finite) if picture is None else _image(picture)
    return f"{heading}<br>{figure}<br><small>{said}</small>"


def _pixels(numbers: Array, is_bytes: bool, low: float, high: float) -> Array | None:
    """The values as height x width x channels of bytes if they may be a picture. Values beyond 0..1 are stretched."""
    if numbers.ndim == 4 and numbers.shape[0] == 1:
        numbers = numbers[0]
    if numbers.ndim == 3 and numbers.shape[0] in _CHANNELS:
        numbers = numbers.transpose(1, 2, 0)
    elif numbers.ndim == 2 and min(numbers.shape) >= 8:
        numbers = numbers[..., None]
    if numbers.ndim != 3 or numbers.shape[2] not in _CHANNELS or min(numbers.shape[:2]) < 8:
        return None
    if is_bytes:
        low, high = 0.0, 255.0
    elif low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    scaled = np.nan_to_num((numbers - low) * (255 / ((high - low) or 1)), nan=0, posinf=255, neginf=0)
    pixels: Array = np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
    return pixels


def _image(pixels: Array) -> str:
    from PIL import Image

    picture = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    picture.thumbnail((MOST_SIDE, MOST_SIDE))
    file = io.BytesIO()
    picture.save(file, "PNG")
    scale = max(1, min(4, MOST_SIDE // max(picture.size)))
    size = f'width="{picture.width * scale}" height="{picture.height * scale}"'
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img {size} style="image-rendering: pixelated" src="data:image/png;base64,{data}">'


def _histogram(finite: Array) -> str:
    counts, _ = np.histogram(finite, _BINS)
    heights = counts / max(int(counts.max()), 1) * _HEIGHT
    step = _WIDTH / _BINS
    bars = "".join(
        f'<rect x="{index * step:.1f}" y="{_HEIGHT - height:.1f}" width="{step - 1:.1f}" height="{height:.1f}"/>'
        for index, height in enumerate(heights)
    )
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" fill="#466ec8">{bars}</svg>'
