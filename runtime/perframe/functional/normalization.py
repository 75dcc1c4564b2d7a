"""Normalizations of torch.nn.functional, for inference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import apply, axis_of, cast, function, in_floats, known_size
from perframe.functional.making import ones_like, zeros_like
from perframe.functional.pieces import flip
from perframe.functional.tensor import FunctionalTensor, Given, of_array


def _factors(
    x: FunctionalTensor, like: FunctionalTensor, weight: Given | None, bias: Given | None
) -> list[FunctionalTensor]:
    """Return weight and bias in the dtype of x; 1 and 0 in the shape of `like` where they are absent."""
    return [
        cast(made(like), x.dtype) if value is None else cast(value, x.dtype)
        for value, made in ((weight, ones_like), (bias, zeros_like))
    ]


def _per_channel(x: FunctionalTensor) -> FunctionalTensor:
    return of_array(np.ones(known_size(x, axis_of(x, 1), "a normalization of channels"), x.dtype.numpy))


@function
def batch_norm(
    input: Given,
    running_mean: Given,
    running_var: Given,
    weight: Given | None = None,
    bias: Given | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> FunctionalTensor:
    """Normalize each channel (dim 1) by known means and variances: (x - mean) / sqrt(var + eps) * weight + bias."""
    if training:
        raise InputError("models here do not train: pass training=False")
    x = in_floats(input)
    mean, variance = cast(running_mean, x.dtype), cast(running_var, x.dtype)
    return apply("BatchNormalization", x, *_factors(x, mean, weight, bias), mean, variance, epsilon=float(eps))


@function
def instance_norm(
    input: Given,
    running_mean: Given | None = None,
    running_var: Given | None = None,
    weight: Given | None = None,
    bias: Given | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> FunctionalTensor:
    """Normalize each channel (dim 1) of each item of a batch by its own mean and variance."""
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise InputError("use_input_stats=False needs running_mean and running_var")
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    x = in_floats(input)
    return apply("InstanceNormalization", x, *_factors(x, _per_channel(x), weight, bias), epsilon=float(eps))


@function
def group_norm(
    input: Given, num_groups: int, weight: Given | None = None, bias: Given | None = None, eps: float = 1e-5
) -> FunctionalTensor:
    """Normalize groups of channels (dim 1) of each item of a batch by their mean and variance."""
    x = in_floats(input)
    factors = _factors(x, _per_channel(x), weight, bias)
    return apply("GroupNormalization", x, *factors, num_groups=int(num_groups), epsilon=float(eps))


def _last_dims(x: FunctionalTensor, normalized_shape: int | Sequence[int]) -> FunctionalTensor:
    """Return ones of the shape of the last dims. Raises InputError if these are others."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or len(shape) > x.ndim or not type(x.shape)(shape).may_be(x.shape[x.ndim - len(shape) :]):
        raise InputError(f"normalized_shape {shape} is not that of the last dims of {x.spec}")
    return of_array(np.ones(shape, x.dtype.numpy))


@function
def layer_norm(
    input: Given,
    normalized_shape: int | Sequence[int],
    weight: Given | None = None,
    bias: Given | None = None,
    eps: float = 1e-5,
) -> FunctionalTensor:
    """Normalize the last dims by their mean and variance."""
    x = in_floats(input)
    like = _last_dims(x, normalized_shape)
    factors = _factors(x, like, weight, bias)
    if bias is None:
        factors.pop()
    return apply("LayerNormalization", x, *factors, axis=-like.ndim, epsilon=float(eps))


@function
def rms_norm(
    input: Given, normalized_shape: int | Sequence[int], weight: Given | None = None, eps: float | None = None
) -> FunctionalTensor:
    """Divide the last dims by the root of their mean square; `eps` is the dtype's precision unless given."""
    x = in_floats(input)
    like = _last_dims(x, normalized_shape)
    least = float(np.finfo(x.dtype.numpy).eps) if eps is None else float(eps)
    return apply("RMSNormalization", x, _factors(x, like, weight, None)[0], axis=-like.ndim, epsilon=least)


@function
def local_response_norm(
    input: Given, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> FunctionalTensor:
    """Divide by (k + alpha * mean square of `size` neighboring channels) ** beta."""
    x = in_floats(input)
    even = size % 2 == 0  # PyTorch looks further back, and ONNX further ahead
    x = flip(x, 1) if even else x
    made = apply("LRN", x, size=int(size), alpha=float(alpha), beta=float(beta), bias=float(k))
    return flip(made, 1) if even else made
