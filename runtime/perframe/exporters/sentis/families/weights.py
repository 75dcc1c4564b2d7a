"""Products, convolutions, pools, normalizations, recurrent layers, resizing and spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.errors import ModelError
from perframe.exporters.sentis.table import SentisLayer, rule
from perframe.importers.sentis.kinds import ACTIVATIONS
from perframe.ir import Value
from perframe.layers.conv import transposed_pads
from perframe.tensor import DataType

_NO_CLIP = float(np.finfo(np.float32).max)
_LSTM = ("Sigmoid", "Tanh", "Tanh")
_SIMPLER = "take a network without it"
_ALL_DIMS = 8  # the end of a Shape that lists all dims


@rule("Gemm")
def _gemm(own: SentisLayer) -> None:
    """A product with constant weights and a bias is a Dense layer, as Unity's own importer has it."""
    a, b, c = own.input(0), own.input(1), own.optional(2)
    alpha, beta = own["alpha"], own["beta"]
    weights, shape = b.constant, None if c is None else c.spec.shape
    is_plain = not own["transA"] and alpha == 1 and beta == 1 and a.spec.dtype is DataType.FLOAT32
    if is_plain and weights is not None and c is not None and shape is not None:
        turned = weights.T if own["transB"] else weights
        if tuple(shape) == turned.shape[1:]:
            own.end("Dense", a, own.constant(np.ascontiguousarray(turned)), c, activation="")
            return
    steps = 1 + (alpha != 1) + (c is not None and beta != 0)
    made = own.add("MatMul2D", a, b, made=_last(own, 1, steps), transA=own["transA"], transB=own["transB"])
    if alpha != 1:
        made = _scaled(own, made, alpha, _last(own, 2, steps))
    if c is not None and beta != 0:
        own.end("Add", made, c if beta == 1 else _scaled(own, c, beta, None))


def _last(own: SentisLayer, step: int, steps: int) -> Value | None:
    return own.outputs[0] if step == steps else None


def _scaled(own: SentisLayer, x: Value, factor: float, to: Value | None) -> Value:
    is_float = x.dtype.is_float
    if not is_float and factor != int(factor):
        raise ModelError(f"it multiplies integers by {factor}")
    whole = 0 if is_float else int(factor)
    kind = DataType.FLOAT32 if is_float else DataType.INT32
    given = {"scale": float(factor), "shift": 0.0, "int_scale": whole, "int_shift": 0}
    return own.add("ScalarMad", x, made=to, dtype=kind, **given)


@rule("Conv")
def _conv(own: SentisLayer) -> None:
    rank = own.rank(own.input(1)) - 2
    if rank > 3:
        raise ModelError(f"it convolves {rank} dims, and Unity has at most 3")
    own.end("Conv", own.input(0), own.input(1), own.optional(2), **_window(own, rank), activation="")


@rule("ConvTranspose")
def _conv_transpose(own: SentisLayer) -> None:
    rank = own.rank(own.input(1)) - 2
    window, more = _window(own, rank), tuple(own["output_padding"] or (0,) * rank)
    if own["output_shape"] is not None:
        window["pads"], more = _transposed_pads(own, rank, window, more)
        window["auto_pad"] = "NOTSET"
    if window["group"] == 1 and set(window["dilations"]) == {1}:
        del window["group"], window["dilations"]
    inputs = (own.input(0), own.input(1), own.optional(2))
    own.end("ConvTranspose", *inputs, **window, output_padding=more, activation="")


def _transposed_pads(
    own: SentisLayer, rank: int, window: dict[str, Any], more: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding by which the output gets its given sizes, and that of the output."""
    x, w, wanted = own.input(0).spec.shape, own.input(1).spec.shape, own["output_shape"]
    assert x is not None and w is not None
    kernel = [dim for dim in w[2:] if isinstance(dim, int)]
    sizes = [dim for dim in x[2:] if isinstance(dim, int)]
    if len(sizes) != rank or len(kernel) != rank:
        raise ModelError("its output_shape has no place in the file, and its sizes are not known: fix them with dims=")
    steps, spread = window["strides"], window["dilations"]
    begin, _ = transposed_pads(sizes, kernel, steps, spread, None, own["auto_pad"], more, wanted)
    whole = [
        steps[axis] * (sizes[axis] - 1) + spread[axis] * (kernel[axis] - 1) + 1 + more[axis] for axis in range(rank)
    ]
    end = [whole[axis] - wanted[axis] - begin[axis] for axis in range(rank)]
    grown = tuple(more[axis] + max(0, -end[axis]) for axis in range(rank))
    if any(extra >= max(step, 1) and extra for extra, step in zip(grown, steps, strict=True)):
        raise ModelError(f"its output_shape is {tuple(wanted)}, larger than strides and pads allow")
    return (*begin, *(max(0, size) for size in end)), grown


def _window(own: SentisLayer, rank: int) -> dict[str, Any]:
    ones, pads = (1,) * rank, own["pads"]
    return {
        "auto_pad": own["auto_pad"],
        "dilations": own["dilations"] or ones,
        "group": own["group"],
        "pads": pads if pads and own["auto_pad"] == "NOTSET" else (0,) * 2 * rank,
        "strides": own["strides"] or ones,
        "kernel_shape": own["kernel_shape"],
    }


@rule("MaxPool", "AveragePool")
def _pool(own: SentisLayer) -> None:
    """Padding that an average counts is added before it."""
    x, kernel = own.input(0), own["kernel_shape"]
    rank = len(kernel)
    strides, pads = own["strides"] or (1,) * rank, own["pads"] or (0,) * 2 * rank
    if any(dilation != 1 for dilation in own["dilations"] or ()):
        raise ModelError(f"its dilations are {own['dilations']}, and Unity's pools have none: {_SIMPLER}")
    if own["auto_pad"] != "NOTSET":
        pads = (0,) * 2 * rank
    if own["ceil_mode"] and not _is_exact(own, x, pads, strides):
        raise ModelError(f"its ceil_mode is 1, and Unity rounds sizes down: {_SIMPLER}")
    if own.op == "AveragePool" and own["count_include_pad"] and (any(pads) or own["auto_pad"] != "NOTSET"):
        if own["auto_pad"] != "NOTSET":
            raise ModelError(f"its count_include_pad is 1 with auto_pad: {_SIMPLER}")
        around = np.array([0, 0, *pads[:rank], 0, 0, *pads[rank:]], np.int32)
        x, pads = own.add("Pad", x, own.constant(around), None, None, mode="constant"), (0,) * 2 * rank
    own.end(own.op, x, kernel_shape=kernel, strides=strides, pads=pads, auto_pad=own["auto_pad"])


def _is_exact(own: SentisLayer, x: Value, pads: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether the windows fit the padded sizes, so that rounding up or down is the same."""
    shape, kernel = x.spec.shape, own["kernel_shape"]
    if shape is None or own["auto_pad"] != "NOTSET":
        return False
    sizes = shape[2:]
    return all(
        isinstance(size, int) and (size + before + after - wide) % stride == 0
        for size, before, after, wide, stride in zip(
            sizes, pads[: len(kernel)], pads[len(kernel) :], kernel, strides, strict=True
        )
    )


@rule("LayerNormalization", "RMSNormalization")
def _normalization(own: SentisLayer) -> None:
    """Unity normalizes the last axis: several axes are flattened first."""
    x, scale, bias = own.input(0), own.input(1), own.optional(2)
    rank = own.rank(x)
    axis = own["axis"] % rank
    inputs = [scale] if own.op == "RMSNormalization" else [scale, bias]
    sizes = x.spec.shape[axis:] if x.spec.shape is not None else ()
    if axis == rank - 1 and all(value is None or own.rank(value) == 1 for value in inputs):
        own.end(own.op, x, *inputs, epsilon=own["epsilon"])
        return
    if not all(isinstance(size, int) for size in sizes):
        raise ModelError(f"it normalizes the axes from {axis} on, whose sizes are not all known: fix them with dims=")
    flat = [None if value is None else _flattened(own, value, tuple(sizes)) for value in inputs]  # type: ignore[arg-type]
    shape = own.constant(np.array([*(0,) * axis, -1], np.int32))
    made = own.add(own.op, own.add("Reshape", x, shape, allowzero=0), *flat, epsilon=own["epsilon"])
    own.end("Reshape", made, own.add("Shape", x, made=DataType.INT32, start=0, end=_ALL_DIMS), allowzero=0)


def _flattened(own: SentisLayer, value: Value, sizes: tuple[int, ...]) -> Value:
    if value.constant is not None:
        return own.constant(np.ascontiguousarray(np.broadcast_to(value.constant, sizes)).reshape(-1))
    whole = own.add("Expand", value, own.constant(np.array(sizes, np.int32)))
    return own.add("Reshape", whole, own.constant(np.array([-1], np.int32)), allowzero=0)


@rule("GroupNormalization")
def _group_normalization(own: SentisLayer) -> None:
    """Normalize groups as instances, and scale channels after it."""
    x, groups = own.input(0), own["num_groups"]
    ones, zeros = (own.constant(np.full(groups, number, np.float32)) for number in (1, 0))
    shape = own.constant(np.array([0, groups, -1], np.int32))
    grouped = own.add("Reshape", x, shape, allowzero=0)
    made = own.add("InstanceNormalization", grouped, ones, zeros, epsilon=own["epsilon"])
    whole = own.add("Shape", x, made=DataType.INT32, start=0, end=_ALL_DIMS)
    own.end("ScaleBias", own.add("Reshape", made, whole, allowzero=0), own.input(1), own.input(2))


@rule("Resize")
def _resize(own: SentisLayer) -> None:
    x, scales, sizes, axes = own.input(0), own.optional(2), own.optional(3), own["axes"]
    own.must_be(_SIMPLER, antialias=0, exclude_outside=0, keep_aspect_ratio_policy="stretch")
    if own["mode"] == "cubic":
        own.must_be("Unity has -0.75", cubic_coeff_a=-0.75)
    if sizes is None and axes is not None:
        rank = own.rank(x)
        if scales is None or scales.constant is None:
            raise ModelError("its scales of some axes are not constant: give sizes")
        whole = np.ones(rank, np.float32)
        whole[list(axes)] = scales.constant
        scales, axes = own.constant(whole), None
    names = ("coordinate_transformation_mode", "mode", "nearest_mode")
    by, scale_mode = (scales, 1) if sizes is None else (sizes, 0)
    own.end("Resize", x, by, scale_mode=scale_mode, **{name: own[name] for name in names}, axes=axes)


@rule("LSTM")
def _lstm(own: SentisLayer) -> None:
    directions = 2 if own["direction"] == "bidirectional" else 1
    names = own["activations"] or _LSTM * directions
    known = {name.lower(): number for number, name in enumerate(ACTIVATIONS)}
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise ModelError(f"Unity's LSTM has no activation {unknown[0]}")
    size = own["hidden_size"]
    if size is None:
        shape = own.input(2).spec.shape
        size = None if shape is None else shape[2]
        if not isinstance(size, int):
            raise ModelError("its hidden_size is not known")
    given = {name: own[name] for name in ("direction", "activation_alpha", "activation_beta", "input_forget", "layout")}
    given |= {"hidden_size": size, "activations": [known[name.lower()] for name in names]}
    given["clip"] = _NO_CLIP if own["clip"] is None else own["clip"]
    own.several("LSTM", [own.optional(index) for index in range(8)], 3, **given)


@rule("DFT")
def _dft(own: SentisLayer) -> None:
    axis = own.optional(2) or own.constant(np.array(-2, np.int32))
    own.end("DFT", own.input(0), own.optional(1), axis, None, inverse=own["inverse"], onesided=own["onesided"])


@rule("STFT")
def _stft(own: SentisLayer) -> None:
    inputs = [own.optional(index) for index in range(4)]
    own.end("STFT", *inputs, None, onesided=own["onesided"])


@rule("BlackmanWindow", "HammingWindow", "HannWindow")
def _series(own: SentisLayer) -> None:
    own.must_be("Unity makes float32", output_datatype=DataType.FLOAT32)
    own.end(own.op, own.input(0), periodic=own["periodic"])


@rule("MelWeightMatrix")
def _mel(own: SentisLayer) -> None:
    own.must_be("Unity makes float32", output_datatype=DataType.FLOAT32)
    own.end(own.op, *own.layer.inputs)
