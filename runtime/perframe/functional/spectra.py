"""Spectra of signals."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import apply, cast, function, in_floats, ints, known_size
from perframe.functional.elementwise import mul
from perframe.functional.moving import transpose, unsqueeze
from perframe.functional.pieces import pad as padded
from perframe.functional.tensor import FunctionalTensor, Given, of_array
from perframe.functional.windows import unbatched


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
