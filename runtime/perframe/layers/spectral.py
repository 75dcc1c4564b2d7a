"""Fourier transforms, and weights of spectra."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor, derived
from perframe.ir.sizes.size import at_least
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class Transform:
    """`length` samples become `bins` frequencies; the inverse makes samples of frequencies, divided by the length.

    The input is (outer, size, inner, parts); the last dim holds the real and the imaginary part, or the real part only.
    The output is (outer, frames, bins, inner, output_parts). Frame f begins at sample f * step; samples from
    `available` on are zero. `mirrored` input holds the frequencies up to the middle; the others are their conjugates.
    With `windowed` the third input weights the samples.
    """

    outer: int
    size: int
    inner: int
    parts: int
    frames: int
    step: int
    length: int
    available: int
    bins: int
    output_parts: int
    inverse: bool
    mirrored: bool
    windowed: bool = False


def _parts(x: PartialTensor, name: str) -> None:
    if x.shape is not None and isinstance(x.shape[-1], int) and x.shape[-1] not in (1, 2):
        raise InferenceError(f"{name} takes real (1) or complex (2) numbers in the last dim, not {x}")


def _signal_axis(axis: int, rank: int) -> int:
    at = normalize_axis(axis, rank)
    if at == rank - 1:
        raise InferenceError(f"axis {axis} holds the real and imaginary parts, and cannot be transformed")
    return at


def _length(given: int | None, dim: Dim, mirrored: bool) -> int | None:
    if given is None:
        given = None if not isinstance(dim, int) else 2 * (dim - 1) if mirrored else dim
    if given is not None and given < 1:
        raise InferenceError(f"a transform needs at least 1 sample, and has {given}")
    return given


@layer(host=("dft_length", "axis"))
def DFT(
    x: PartialTensor,
    dft_length: PartialTensor | None = None,
    axis: PartialTensor | None = None,
    *,
    inverse: Flag = 0,
    onesided: Flag = 0,
) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    if len(x.shape) < 2:
        raise InferenceError(f"DFT takes signals with their parts in the last dim, not {x}")
    _parts(x, "DFT")
    given = None if dft_length is None else dft_length.ints()
    chosen = (-2,) if axis is None else axis.ints()
    parts = 1 if inverse and onesided else 2
    if chosen is None:
        return x.with_shape((*(None,) * (len(x.shape) - 1), parts))
    at = _signal_axis(chosen[0], len(x.shape))
    length: int | None = None
    if dft_length is None or given is not None:
        length = _length(given[0] if given else None, x.shape[at], bool(inverse and onesided))
    bins = length // 2 + 1 if onesided and not inverse and length is not None else length
    return x.with_shape((*x.shape[:at], bins, *x.shape[at + 1 : -1], parts))


@DFT.form
def _dft(inputs: Sequence[Known | None], outputs: Sequence[Known], *, inverse: int, onesided: int) -> Transform:
    x, given, axis = inputs
    assert x is not None
    at = _signal_axis(-2 if axis is None or axis.value is None else int(axis.value.item()), len(x.shape))
    mirrored = bool(inverse and onesided)
    number = None if given is None or given.value is None else int(given.value.item())
    length = _length(number, x.shape[at], mirrored) or 1
    return Transform(
        math.prod(x.shape[:at]),
        x.shape[at],
        math.prod(x.shape[at + 1 : -1]),
        x.shape[-1],
        1,
        0,
        length,
        min(x.shape[at], length // 2 + 1 if mirrored else length),
        outputs[0].shape[at],
        outputs[0].shape[-1],
        bool(inverse),
        mirrored,
    )


@layer(host=("frame_step", "frame_length"))
def STFT(
    signal: PartialTensor,
    frame_step: PartialTensor,
    window: PartialTensor | None = None,
    frame_length: PartialTensor | None = None,
    *,
    onesided: Flag = 1,
) -> PartialTensor:
    if signal.shape is not None and len(signal.shape) not in (2, 3):
        raise InferenceError(f"STFT takes signals of shape (batch, length) or (batch, length, parts), not {signal}")
    if signal.shape is not None and len(signal.shape) == 3:  # a signal of two dims is real, as in onnxruntime
        _parts(signal, "STFT")
    batch, size = (None, None) if signal.shape is None else signal.shape[:2]
    step, length = frame_step.ints(), _frame_length(size, window, frame_length)
    if step is not None and step[0] < 1:
        raise InferenceError(f"frame_step is {step[0]}, and must be at least 1")
    frames = None
    if step is not None:
        frames = derived(lambda size, length, step: at_least((size - length) // step + 1, 0), size, length, step[0])
    bins = None if length is None else length // 2 + 1 if onesided else length
    return signal.with_shape((batch, frames, bins, 2))


def _frame_length(size: Dim, window: PartialTensor | None, frame_length: PartialTensor | None) -> int | None:
    """Return the length of a frame: the given one, else that of the window, else that of the whole signal.

    None if it is unknown. Raises InferenceError if the given length is not that of the window.
    """
    length: Dim = size
    if window is not None:
        length = None if window.shape is None else window.shape[0]
    if frame_length is not None:
        given = frame_length.ints()
        if given is not None and isinstance(length, int) and window is not None and given[0] != length:
            raise InferenceError(f"frames of {given[0]} do not fit the window {window}")
        length = None if given is None else given[0]
    return length if isinstance(length, int) else None


@STFT.form
def _stft(inputs: Sequence[Known | None], outputs: Sequence[Known], *, onesided: int) -> Transform:
    signal, step, window, given = inputs
    assert signal is not None and step is not None and step.value is not None
    size = signal.shape[1]
    length = window.shape[0] if window is not None else size
    if given is not None and given.value is not None:
        length = int(given.value.item())
    parts = signal.shape[2] if len(signal.shape) == 3 else 1
    frames, bins = outputs[0].shape[1:3]
    begin = int(step.value.item())
    return Transform(
        signal.shape[0], size, 1, parts, frames, begin, length, length, bins, 2, False, False, window is not None
    )


@layer(host=("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"))
def MelWeightMatrix(
    num_mel_bins: PartialTensor,
    dft_length: PartialTensor,
    sample_rate: PartialTensor,
    lower_edge_hertz: PartialTensor,
    upper_edge_hertz: PartialTensor,
    *,
    output_datatype: DataType = DataType.FLOAT32,
) -> PartialTensor:
    length, bands = dft_length.ints(), num_mel_bins.ints()
    if bands is not None and bands[0] < 1:
        raise InferenceError(f"num_mel_bins is {bands[0]}, and must be at least 1")
    rows = None if length is None else length[0] // 2 + 1
    return PartialTensor(output_datatype, DynamicTensorShape((rows, None if bands is None else bands[0])))
