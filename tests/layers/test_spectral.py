"""Fourier transforms: of any length and axis, one-sided, inverse, in frames; mel weights."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from perframe.testing import Case, Draw, check, ints
from perframe.testing.cases import Array

draw = Draw(43)


def dft(
    *shape: int, length: int | None = None, axis: int | None = None, dtype: Any = np.float32, **attributes: int
) -> Case:
    tolerance = 2e-2 if np.dtype(dtype).itemsize == 2 else 1e-4
    inputs = [
        draw(*shape, dtype=dtype),
        None if length is None else np.array(length, np.int64),
        None if axis is None else np.array(axis, np.int64),
    ]
    while inputs[-1] is None:
        inputs.pop()
    said = " ".join(f"{key}={value}" for key, value in attributes.items())
    name = f"{shape} {np.dtype(dtype)} length={length} axis={axis} {said}"
    return Case(name, "DFT", inputs, attributes, rtol=tolerance, atol=tolerance)


def stft(
    *shape: int, step: int, window: int | None = None, length: int | None = None, known: bool = True, **attributes: int
) -> Case:
    inputs: list[Array | None] = [draw(*shape), np.array(step, np.int64)]
    inputs += [None if window is None else np.hanning(window).astype(np.float32)]
    inputs += [None if length is None else np.array(length, np.int64)]
    while inputs[-1] is None:
        inputs.pop()
    said = " ".join(f"{key}={value}" for key, value in attributes.items())
    name = f"{shape} step={step} window={window} length={length} known={known} {said}"
    constants = [1, 2, 3] if known else [1, 3]
    return Case(name, "STFT", inputs, attributes, constants=constants, rtol=1e-4, atol=1e-4)


def mel(bands: int, length: int, rate: int, lower: float, upper: float) -> Case:
    inputs = [np.array(value, np.int32) for value in (bands, length, rate)]
    inputs += [np.array(value, np.float32) for value in (lower, upper)]
    return Case(f"{bands} {length} {rate} {lower} {upper}", "MelWeightMatrix", inputs)


CASES = [
    *(dft(2, size, parts) for size in (1, 2, 7, 16, 33) for parts in (1, 2)),
    *(dft(2, size, 2, inverse=1) for size in (1, 2, 7, 16)),
    *(dft(2, size, 1, onesided=1) for size in (1, 7, 16)),
    *(dft(2, size, 2, inverse=1, onesided=1) for size in (2, 5, 9)),
    *(dft(2, 5, 2, length=length, inverse=1, onesided=1) for length in (3, 7, 8, 9, 12)),
    *(dft(2, 7, 2, length=length) for length in (1, 5, 7, 12)),
    *(dft(3, 5, 7, 2, axis=axis) for axis in (0, 1, 2, -2, -3, -4)),
    *(dft(3, 5, 7, 1, axis=axis, onesided=1) for axis in (0, 1, -2)),
    dft(3, 6, 7, 2, axis=1, inverse=1, onesided=1),
    dft(3, 6, 7, 2, axis=1, length=9, inverse=1),
    dft(8, 1),
    dft(2, 9, 2, dtype=np.float64),
    dft(2, 9, 2, dtype=np.float16),
    dft(2, 8, 1, dtype=ml_dtypes.bfloat16, onesided=1),
    stft(1, 128, 1, step=8, length=16),
    stft(2, 50, 1, step=7, window=12),
    stft(2, 50, 1, step=7, window=12, known=False),
    stft(2, 50, 1, step=7, window=12, length=12, onesided=0),
    stft(2, 50, 2, step=7, window=9, onesided=0),
    stft(1, 20, 1, step=3),
    stft(1, 20, 1, step=30, length=5),
    mel(8, 16, 8192, 0, 4096),
    mel(40, 400, 16000, 20, 8000),
    mel(1, 2, 8000, 0, 4000),
    mel(23, 512, 8000, 300, 3000),
]


def of_two_dims(batch: int, size: int, window: int, onesided: int) -> Case:
    x, step, weights = draw(batch, size), np.array(4), np.hanning(window).astype(np.float32)
    said = {"onesided": onesided}
    name = f"{(batch, size)} window={window} {said}"
    return Case(name, "STFT", [x, step, weights], said, reference="onnxruntime", opset=17, rtol=1e-4, atol=1e-4)


CASES += [of_two_dims(1, 64, 16, 1), of_two_dims(3, 50, 8, 0), of_two_dims(2, 7, 4, 1)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_spectral(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -2])
def test_axis_was_an_attribute(axis: int | None, backend: str, backend_context: Any) -> None:
    attributes = {} if axis is None else {"axis": axis}

    def expected(x: Array, *_: Array) -> Array:
        made = np.fft.fft(x[..., 0], axis=(1 if axis is None else axis % 4))
        return np.stack([made.real, made.imag], axis=-1).astype(np.float32)

    case = Case(f"{axis}", "DFT", [draw(3, 5, 7, 1)], attributes, opset=17, reference=expected, rtol=1e-4, atol=1e-4)
    check(case, backend, backend_context)


@pytest.mark.quick(cases=0)
def test_a_long_transform_runs(backend: str, backend_context: Any) -> None:
    case = Case("", "DFT", [draw(1, 4096, 1), ints(4096).reshape(())], {"onesided": 1}, rtol=1e-3, atol=1e-3)
    check(case, backend, backend_context)
