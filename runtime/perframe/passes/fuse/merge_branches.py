"""Convolutions of one value whose results are added become one convolution, as for RepVGG and MobileOne."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Layer, Model
from perframe.ir.geometry import NOT_SET, Ints
from perframe.passes.match import channel_affine, constant_of, in_float32, may_fold
from perframe.passes.patterns import Op, Rules
from perframe.safety.records import dataclass

Array = NDArray[Any]
AFFINE = ("BatchNormalization", "MultiplyAdd", "Mul")


@dataclass(frozen=True)
class _Branch:
    """A convolution of constants. `weights` (outputs, channels of a group, *kernel) and `bias` are float64."""

    layer: Layer
    weights: Array
    bias: Array
    strides: Ints
    dilations: Ints
    group: int
    begin: Ints
    end: Ints


run = Rules()


@run.rule(Op("Add", Op("Conv", name="first"), Op(" ".join(("Conv", *AFFINE)), name="second"), in_any_order=True))
def _merge(model: Model, root: Layer, first: Layer, second: Layer) -> int | str:
    if first is second or first.input(0) is not second.input(0):
        return 0
    one = _convolution(first)
    other = None if one is None else _convolution(second) or _affine(second, one)
    if one is None or other is None:
        return 0
    if math.prod(one.weights.shape) < math.prod(other.weights.shape):
        one, other = other, one
    at = _offset(one, other)
    if at is None:
        return 0
    weights = one.weights.copy()
    weights[(slice(None), slice(None), *map(slice, at, np.add(at, other.weights.shape[2:])))] += other.weights
    made = in_float32(weights, one.bias + other.bias) if may_fold(one.weights, other.weights) else None
    if made is None:
        return f"the weights of {one.layer.name!r} and {other.layer.name!r} are too large or too small to be added"
    kept = one.layer
    kept.inputs = [
        kept.input(0),
        model.add_constant(f"{kept.name}+{other.layer.name} weights", made[0]),
        model.add_constant(f"{kept.name}+{other.layer.name} bias", made[1]),
    ]
    model.absorb(kept, root)
    model.remove(other.layer)
    return 2


def _convolution(layer: Layer) -> _Branch | None:
    if layer.op != "Conv" or layer.epilogue or len(layer.inputs) > 3 or layer.channels_last:
        return None
    weights, bias = layer.w.constant, constant_of(layer.b)
    if weights is None or weights.dtype != np.float32 or layer.auto_pad not in NOT_SET:
        return None
    if bias is None and layer.b is not None:
        return None
    rank = weights.ndim - 2
    pads, ones = tuple(layer.pads or (0,) * 2 * rank), (1,) * rank
    return _Branch(
        layer,
        weights.astype(np.float64),
        np.zeros(len(weights)) if bias is None else bias.astype(np.float64),
        tuple(layer.strides or ones),
        tuple(layer.dilations or ones),
        layer.group,
        pads[:rank],
        pads[rank:],
    )


def _affine(layer: Layer, beside: _Branch) -> _Branch | None:
    """A scale and a shift of each channel as a convolution like the one beside it, with one tap."""
    outputs, depth, *kernel = beside.weights.shape
    if layer.op not in AFFINE or layer.epilogue or depth * beside.group != outputs:
        return None
    found = channel_affine(layer, layer.input(0), outputs, len(kernel) + 2)
    if found is None:
        return None
    scale, shift = found
    weights = np.zeros((outputs, depth))
    weights[np.arange(outputs), np.arange(outputs) % depth] = scale
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    return replace(
        beside,
        layer=layer,
        weights=weights.reshape(outputs, depth, *ones),
        bias=shift,
        strides=ones,
        begin=zeros,
        end=zeros,
    )


def _offset(one: _Branch, other: _Branch) -> list[int] | None:
    """The index of the tap of `one` at which those of `other` begin, along each axis; None if they do not fit."""
    if one.strides != other.strides or one.group != other.group or len(one.weights) != len(other.weights):
        return None
    found = []
    for axis, (taps, fewer) in enumerate(zip(one.weights.shape[2:], other.weights.shape[2:], strict=True)):
        spread = one.dilations[axis]
        if fewer > 1 and other.dilations[axis] != spread:
            return None
        before, rest = divmod(one.begin[axis] - other.begin[axis], spread)
        behind = (taps - fewer) * spread - (one.begin[axis] - other.begin[axis])
        if rest or before < 0 or behind < 0 or one.end[axis] - other.end[axis] != behind:
            return None
        found.append(before)
    return found
