"""Fourier transforms and mel weights on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.spectral import Transform


def _fourier(form: Transform, inputs: Sequence[Any], outputs: Sequence[Operand]) -> Any:
    """Transform frame by frame with NumPy; short floats as float32."""
    if not outputs[0].shape.size:
        return np.zeros(outputs[0].shape)
    x, window = inputs[0], inputs[2] if form.windowed else None
    wide = np.dtype(np.float64 if x.dtype == np.float64 else np.float32)
    lines = x.astype(wide, copy=False).reshape(form.outer, form.size, form.inner, form.parts)
    pairs = np.dtype(f"c{2 * wide.itemsize}")  # two floats as one complex number, without a copy
    signal = lines.view(pairs)[..., 0] if form.parts == 2 else lines[..., 0]
    frames = np.stack([signal[:, f * form.step : f * form.step + form.available] for f in range(form.frames)], axis=1)
    if window is not None:
        frames = frames * window.astype(wide)[:, None]
    if form.mirrored:
        return np.fft.irfft(frames, form.length, axis=2)[..., None]
    transform = np.fft.ifft if form.inverse else np.fft.fft
    result = transform(frames, form.length, axis=2)[:, :, : form.bins]
    return np.ascontiguousarray(result)[..., None].view(wide)


def _hertz_to_mel(frequency: float) -> float:
    return float(2595 * np.log10(1 + frequency / 700))


def _mel(inputs: Sequence[Any]) -> Any:
    """Triangles between bins of the spectrum, at equal distances on the mel scale; each is 1 at its middle bin."""
    bands, length, rate = (int(value.item()) for value in inputs[:3])
    lower, upper = (_hertz_to_mel(float(value.item())) for value in inputs[3:])
    mels = lower + np.arange(bands + 2) * ((upper - lower) / (bands + 2))
    edges = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(np.int64)
    rows = np.arange(length // 2 + 1)[:, None]
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    with np.errstate(all="ignore"):
        rising = np.where(middle > left, (rows - left) / np.maximum(middle - left, 1), rows >= middle)
        falling = np.where(right > middle, (right - rows) / np.maximum(right - middle, 1), rows <= middle)
    return (
        np.where(rows <= middle, np.clip(rising, 0, 1), np.clip(falling, 0, 1))
        * (rows >= left)
        * ((rows < right) | (rows == middle))
    )


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute a transform; a layer without a form has weights."""
    made = _mel(inputs) if form is None else _fourier(form, inputs, outputs)
    return [np.asarray(made).astype(outputs[0].dtype.numpy)]
