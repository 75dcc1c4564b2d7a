"""Bands of sound, against NumPy's spectra and the definitions in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import perframe as pf

F = pf.functional
random = np.random.default_rng(3)


def mels(hertz: float, scale: str) -> float:
    if scale == "htk":
        return 2595 * math.log10(1 + hertz / 700)
    return hertz * 3 / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)


def triangles(rate: float, size: int, count: int, low: float, high: float, scale: str, norm: str | None) -> Any:
    """The filters, one value at a time; the inverse of the scale by bisection."""

    def hertz(wanted: float) -> float:
        begin, end = 0.0, rate
        for _ in range(80):
            middle = (begin + end) / 2
            begin, end = (middle, end) if mels(middle, scale) < wanted else (begin, middle)
        return begin

    first, last = mels(low, scale), mels(high, scale)
    edges = [hertz(first + (last - first) * at / (count + 1)) for at in range(count + 2)]
    made = np.zeros((count, size // 2 + 1))
    for band in range(count):
        a, b, c = edges[band : band + 3]
        for bin_ in range(size // 2 + 1):
            at = bin_ * rate / size
            made[band, bin_] = max(0.0, min((at - a) / (b - a), (c - at) / (c - b))) * (2 / (c - a) if norm else 1)
    return made


@pytest.mark.parametrize("scale", ["slaney", "htk"])
@pytest.mark.parametrize("norm", ["slaney", None])
@pytest.mark.parametrize(
    ("rate", "size", "count", "low", "high"), [(16_000, 400, 80, 0, 8000), (44_100, 511, 7, 60, 9000)]
)
def test_filters(scale: Any, norm: Any, rate: int, size: int, count: int, low: float, high: float) -> None:
    made = F.mel_filters(rate, size, count, low, high, scale, norm)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, triangles(rate, size, count, low, high, scale, norm), rtol=1e-4, atol=1e-7)


def spectra(x: Any, size: int, hop: int, length: int, center: bool) -> Any:
    """The squared magnitudes of frames in Hann windows, (batch, frequencies, frames), in float64."""
    window = np.zeros(size)
    before = (size - length) // 2
    window[before : before + length] = [math.sin(math.pi * at / length) ** 2 for at in range(length)]
    if center:
        x = np.pad(x, ((0, 0), (size // 2, size // 2)), "reflect")
    frames = [x[:, at : at + size] * window for at in range(0, x.shape[1] - size + 1, hop)]
    return np.abs(np.fft.rfft(np.stack(frames, 1))).transpose(0, 2, 1) ** 2


def run(build: Any, x: Any, backend: str, ctx: Any, open_dims: bool = True) -> Any:
    graph = pf.FunctionalGraph()
    given = graph.add_input("float32", ("batch", "samples") if open_dims else x.shape, "x")
    with pf.Worker(graph.compile(y=build(given)), backend, ctx, strict=True) as worker:
        return worker.schedule(x).peek_output().numpy()


@pytest.mark.parametrize(
    ("samples", "size", "hop", "length", "power", "center"),
    [(1000, 64, 16, 64, 2.0, True), (997, 50, 25, 31, 1.0, True), (130, 64, 33, 64, 2.0, False)],
)
def test_mel_spectrograms(
    backend: str, backend_context: Any, samples: int, size: int, hop: int, length: int, power: float, center: bool
) -> None:
    x = random.uniform(-1, 1, (2, samples)).astype(np.float32)
    made = run(
        lambda x: F.mel_spectrogram(x, 8000, size, hop, 9, win_length=length, power=power, center=center),
        x, backend, backend_context,
    )  # fmt: skip
    strength = spectra(x, size, hop, length, center) ** (power / 2)
    expected = triangles(8000, size, 9, 0, 4000, "slaney", "slaney") @ strength
    assert made.shape == expected.shape
    np.testing.assert_allclose(made, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("samples", [3200, 4321])
def test_what_whisper_hears(backend: str, backend_context: Any, samples: int) -> None:
    """One of two signals is quiet: each has a floor of its own."""
    x = random.uniform(-1, 1, (2, samples)).astype(np.float32) * np.array([[1], [1e-3]], np.float32)
    x[:, samples // 2 :] *= np.float32(1e-6)
    made = run(F.whisper_spectrogram, x, backend, backend_context)
    bands = triangles(16_000, 400, 80, 0, 8000, "slaney", "slaney") @ spectra(x, 400, 160, 400, True)[:, :, :-1]
    loud = np.log10(np.maximum(bands, 1e-10))
    expected = (np.maximum(loud, loud.max((1, 2), keepdims=True) - 8) + 4) / 4
    assert made.shape == (2, 80, samples // 160)
    np.testing.assert_allclose(made, expected, atol=2e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.mel_filters(16_000, 400, 0), "n_mels=0"),
        (lambda: F.mel_filters(16_000, 400, 8, 9000), "rise up to half"),
        (lambda: F.mel_filters(16_000, 400, 8, 0, 9000), "half of the sample rate, 8000 Hz"),
        (lambda: F.mel_filters(16_000, 400, 8, mel_scale="bark"), '"slaney" or "htk"'),  # type: ignore[arg-type]
        (lambda: F.mel_spectrogram(np.zeros((1, 2, 3), np.float32), 16_000), "signals are a row or rows"),
    ],
)
def test_wrong_settings(call: Any, message: str) -> None:
    with pytest.raises(pf.InputError, match=message):
        call()
