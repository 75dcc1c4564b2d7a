"""Spectra of signals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import apply, cast, function, in_floats, ints, known_size
from perframe.functional.elementwise import add, clamp, log10, maximum, mul, pow_, sub
from perframe.functional.moving import transpose, unsqueeze
from perframe.functional.pieces import cut
from perframe.functional.pieces import pad as padded
from perframe.functional.products import matmul
from perframe.functional.reductions import amax, sum_
from perframe.functional.tensor import FunctionalTensor, Given, of_array
from perframe.functional.windows import unbatched
from perframe.tensor.dtypes import Array

_LINEAR = 200 / 3  # Hz a mel below 1,000 Hz, by Slaney; above, 27 mels are a factor of 6.4
_BEND, _STEP = 15.0, math.log(6.4) / 27


def _slaney_mels(hertz: Any) -> Any:
    above = _BEND + np.log(np.maximum(hertz, 1000) / 1000) / _STEP
    return np.where(hertz < 1000, hertz / _LINEAR, above)


def _slaney_hertz(mels: Any) -> Any:
    return np.where(mels < _BEND, mels * _LINEAR, 1000 * np.exp((np.maximum(mels, _BEND) - _BEND) * _STEP))


_SCALES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "slaney": (_slaney_mels, _slaney_hertz),
    "htk": (lambda hertz: 2595 * np.log10(1 + hertz / 700), lambda mels: 700 * (10 ** (mels / 2595) - 1)),
}


@function
def stft(
    input: Given,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Given | None = None,
    center: bool = True,
    pad_mode: Literal["constant", "reflect", "replicate", "circular"] = "reflect",
    normalized: bool = False,
    onesided: bool = True,
) -> FunctionalTensor:
    """Return spectra of overlapping frames: (batch, frequencies, frames, 2), real and imaginary parts.

    PyTorch returns complex numbers, or these parts by torch.view_as_real.
    """
    x = in_floats(input)
    if x.ndim not in (1, 2):
        raise InputError(f"signals are a row or rows, not {x.spec}")
    added = x.ndim == 1
    x = unsqueeze(x, 0) if added else x
    hop, length = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if n_fft < 1 or hop < 1 or not 0 < length <= n_fft:
        raise InputError(f"n_fft={n_fft}, hop_length={hop}, win_length={length}: at least 1, and win_length to n_fft")
    shape = of_array(np.ones(length, x.dtype.numpy)) if window is None else cast(window, x.dtype)
    if known_size(shape, 0, "stft") != length:
        raise InputError(f"the window has {shape.shape[0]} numbers, and win_length is {length}")
    before = (n_fft - length) // 2
    shape = padded(shape, (before, n_fft - length - before))
    if center:
        x = padded(x, (n_fft // 2, n_fft // 2), pad_mode)
    made = apply("STFT", x, ints(hop), shape, ints(n_fft), onesided=int(bool(onesided)))
    if normalized:
        made = mul(made, 1 / math.sqrt(n_fft))
    return unbatched(transpose(made, 1, 2), added)


def mel_filters(
    sample_rate: float,
    n_fft: int,
    n_mels: int,
    f_min: float = 0.0,
    f_max: float | None = None,
    mel_scale: Literal["slaney", "htk"] = "slaney",
    norm: Literal["slaney"] | None = "slaney",
) -> Array:
    """Return triangular filters from a spectrum to bands that the ear tells apart: (n_mels, n_fft // 2 + 1), float32.

    Frequencies are in Hz, `f_max` is half of the sample rate by default. The scale is Slaney's (Auditory Toolbox, 1998;
    Whisper and librosa use it) or that of HTK. `norm="slaney"` gives each filter an area of 1 Hz.
    """
    top = sample_rate / 2 if f_max is None else f_max
    if n_fft < 1 or n_mels < 1 or not 0 <= f_min < top <= sample_rate / 2:
        raise InputError(
            f"n_fft={n_fft}, n_mels={n_mels}, f_min={f_min}, f_max={top}: at least 1, and frequencies that rise up to "
            f"half of the sample rate, {sample_rate / 2:g} Hz"
        )
    if mel_scale not in ("slaney", "htk") or norm not in ("slaney", None):
        raise InputError(f'mel_scale is "slaney" or "htk", and norm is "slaney" or None, not {mel_scale!r}, {norm!r}')
    to_mels, to_hertz = _SCALES[mel_scale]
    edges = to_hertz(np.linspace(to_mels(np.float64(f_min)), to_mels(np.float64(top)), n_mels + 2))
    hertz = np.arange(n_fft // 2 + 1) * (sample_rate / n_fft)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    filters = np.maximum(0, np.minimum((hertz - low) / (middle - low), (high - hertz) / (high - middle)))
    if norm is not None:
        filters *= 2 / (high - low)
    result: Array = filters.astype(np.float32)
    return result


@function
def mel_spectrogram(
    input: Given,
    sample_rate: float,
    n_fft: int = 400,
    hop_length: int | None = None,
    n_mels: int = 128,
    f_min: float = 0.0,
    f_max: float | None = None,
    win_length: int | None = None,
    power: float = 2.0,
    center: bool = True,
    pad_mode: Literal["constant", "reflect", "replicate", "circular"] = "reflect",
    mel_scale: Literal["slaney", "htk"] = "slaney",
    norm: Literal["slaney"] | None = "slaney",
) -> FunctionalTensor:
    """Return the strength of bands over time, in Hann windows: (batch, n_mels, frames) of signals (batch, samples).

    The parameters have torchaudio's names; `mel_filters` explains the bands. With `power` 1 magnitudes are added up,
    with 2 their squares.
    """
    filters = mel_filters(sample_rate, n_fft, n_mels, f_min, f_max, mel_scale, norm)
    length = n_fft if win_length is None else win_length
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)).astype(np.float32)
    hop = length // 2 if hop_length is None else hop_length
    parts = stft(input, n_fft, hop, length, of_array(window), center, pad_mode)
    strength = sum_(mul(parts, parts), -1)
    if power != 2:
        strength = pow_(strength, power / 2)
    return matmul(of_array(filters), strength)


@function
def whisper_spectrogram(input: Given, n_mels: int = 80) -> FunctionalTensor:
    """Return what Whisper hears: (batch, n_mels, samples // 160) of signals (batch, samples) at 16,000 Hz.

    Logarithms of bands, at most 8 decades below the strongest of each signal (Radford et al. 2022). Whisper wants 30 s,
    which are 480,000 samples: fill them up with zeros.
    """
    bands = mel_spectrogram(input, 16_000, 400, 160, n_mels)
    heard = cut(bands, bands.ndim - 1, 0, -1)  # the last frame begins at the end of the signal
    loud = log10(clamp(heard, 1e-10))
    floor = sub(amax(loud, (-2, -1), keepdim=True), 8.0)
    return mul(add(maximum(loud, floor), 4.0), 0.25)
