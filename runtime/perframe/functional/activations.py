"""Activations of torch.nn.functional."""

from __future__ import annotations

from typing import Literal

from perframe.errors import InputError
from perframe.functional.calls import apply, axis_of, cast, function, in_floats, number, together
from perframe.functional.elementwise import clamp
from perframe.functional.moving import reshape
from perframe.functional.pieces import chunk
from perframe.functional.reductions import DType
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor
from perframe.tensor import DataType


@function
def hardswish(input: Given) -> FunctionalTensor:
    """Return x * clamp(x / 6 + 0.5, 0, 1) of each element."""
    return apply("HardSwish", in_floats(input))


@function
def mish(input: Given) -> FunctionalTensor:
    """Return x * tanh(softplus(x)) of each element."""
    return apply("Mish", in_floats(input))


@function
def selu(input: Given) -> FunctionalTensor:
    """Return the scaled exponential linear unit of each element."""
    return apply("Selu", in_floats(input))


@function
def silu(input: Given) -> FunctionalTensor:
    """Return x * sigmoid(x) of each element."""
    return apply("Swish", in_floats(input))


@function
def swish(input: Given, alpha: float = 1.0) -> FunctionalTensor:
    """Return x * sigmoid(alpha * x) of each element."""
    return apply("Swish", in_floats(input), alpha=float(alpha))


@function
def softsign(input: Given) -> FunctionalTensor:
    """Return x / (1 + |x|) of each element."""
    return apply("Softsign", in_floats(input))


@function
def relu(input: Given) -> FunctionalTensor:
    """Return each element, and 0 for negative ones."""
    return apply("Relu", to_tensor(input))


@function
def relu6(input: Given) -> FunctionalTensor:
    """Return each element limited to 0..6."""
    return clamp(input, 0, 6)


@function
def elu(input: Given, alpha: float = 1.0) -> FunctionalTensor:
    """Return x, and alpha * (exp(x) - 1) for negative x."""
    return apply("Elu", in_floats(input), alpha=float(alpha))


@function
def celu(input: Given, alpha: float = 1.0) -> FunctionalTensor:
    """Return max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    return apply("Celu", in_floats(input), alpha=float(alpha))


@function
def leaky_relu(input: Given, negative_slope: float = 0.01) -> FunctionalTensor:
    """Return x, and negative_slope * x for negative x."""
    return apply("LeakyRelu", in_floats(input), alpha=float(negative_slope))


@function
def prelu(input: Given, weight: Given) -> FunctionalTensor:
    """Return x, and weight * x for negative x. `weight` has one number, or one for each channel (dim 1)."""
    x, slope = together(in_floats(input), weight)
    if slope.ndim == 1 and slope.shape[0] != 1 and x.ndim > 2:
        slope = reshape(slope, (-1, *(1,) * (x.ndim - 2)))
    return apply("PRelu", x, slope)


@function
def gelu(input: Given, approximate: Literal["none", "tanh"] = "none") -> FunctionalTensor:
    """Return x * the normal distribution's share below x."""
    return apply("Gelu", in_floats(input), approximate=approximate)


@function
def softplus(input: Given, beta: float = 1.0, threshold: float = 20.0) -> FunctionalTensor:
    """Return log(1 + exp(beta * x)) / beta, and x where beta * x is above the threshold."""
    x = in_floats(input)
    if beta == 1:
        return apply("Where", apply("Greater", x, number(threshold, x)), x, apply("Softplus", x))
    scaled = apply("Mul", x, number(beta, x))
    soft = apply("Div", apply("Softplus", scaled), number(beta, x))
    return apply("Where", apply("Greater", scaled, number(threshold, x)), x, soft)


@function
def hardsigmoid(input: Given) -> FunctionalTensor:
    """Return clamp(x / 6 + 0.5, 0, 1) of each element."""
    return apply("HardSigmoid", in_floats(input), alpha=1 / 6, beta=0.5)


@function
def hardtanh(input: Given, min_val: float = -1.0, max_val: float = 1.0) -> FunctionalTensor:
    """Limit each element to min_val..max_val."""
    x = to_tensor(input)
    return clamp(x, number(min_val, x), number(max_val, x))


@function
def hardshrink(input: Given, lambd: float = 0.5) -> FunctionalTensor:
    """Return x, and 0 for x from -lambd to lambd."""
    return apply("Shrink", in_floats(input), lambd=float(lambd), bias=0.0)


@function
def softshrink(input: Given, lambd: float = 0.5) -> FunctionalTensor:
    """Return x moved by lambd towards 0, and 0 for x from -lambd to lambd."""
    return apply("Shrink", in_floats(input), lambd=float(lambd), bias=float(lambd))


@function
def tanhshrink(input: Given) -> FunctionalTensor:
    """Return x - tanh(x) of each element."""
    x = in_floats(input)
    return apply("Sub", x, apply("Tanh", x))


@function
def threshold(input: Given, threshold: float, value: float) -> FunctionalTensor:
    """Return each element above the threshold, and `value` for the others."""
    x = to_tensor(input)
    return apply("Where", apply("Greater", x, number(threshold, x)), x, number(value, x))


@function
def logsigmoid(input: Given) -> FunctionalTensor:
    """Return log(sigmoid(x)) of each element."""
    return apply("Neg", apply("Softplus", apply("Neg", in_floats(input))))


@function
def glu(input: Given, dim: int = -1) -> FunctionalTensor:
    """Return the first half of a dim times the sigmoid of its second half."""
    value, gate = chunk(in_floats(input), 2, dim)
    return apply("Mul", value, apply("Sigmoid", gate))


@function
def softmax(input: Given, dim: int = -1, *, dtype: DType = None) -> FunctionalTensor:
    """Return exp(x) / sum(exp(x)) along a dim."""
    x = _floats(input, dtype)
    return apply("Softmax", x, axis=axis_of(x, dim))


@function
def log_softmax(input: Given, dim: int = -1, *, dtype: DType = None) -> FunctionalTensor:
    """Return the logarithm of softmax along a dim."""
    x = _floats(input, dtype)
    return apply("LogSoftmax", x, axis=axis_of(x, dim))


@function
def softmin(input: Given, dim: int = -1) -> FunctionalTensor:
    """Return softmax of -x along a dim."""
    x = _floats(input)
    return apply("Softmax", apply("Neg", x), axis=axis_of(x, dim))


def _floats(input: Given, dtype: DType = None) -> FunctionalTensor:
    x = to_tensor(input) if dtype is None else cast(input, DataType.of(dtype))
    if not x.dtype.is_float:
        raise InputError(f"floats are expected, not {x.dtype}: convert them by x.float()")
    return x


@function
def dropout(input: Given, p: float = 0.5, training: bool = False) -> FunctionalTensor:
    """Return the input: models here do not train, so `training` is False unless given, and True is an error."""
    if training:
        raise InputError("models here do not train, so dropout has nothing to drop: pass training=False")
    return to_tensor(input)
