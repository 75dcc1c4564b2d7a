"""Functions on functional tensors. tools/write_functional.py makes this file from the functions."""

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from perframe.functional.calls import FUNCTIONS as FUNCTIONS
from perframe.functional.calls import METHOD_OF as METHOD_OF
from perframe.functional.drawing import Seed
from perframe.functional.reductions import Dims, DType, ValuesAndIndices
from perframe.functional.sizes import Size, Sizes
from perframe.functional.tensor import FunctionalTensor, Given
from perframe.functional.windows import Extent
from perframe.model import Model
from perframe.tensor import DataType

FAMILIES: tuple[str, ...]

def abs(input: Given) -> FunctionalTensor:
    """Return the absolute value of each element."""

def absolute(input: Given) -> FunctionalTensor:
    """Return the absolute value of each element."""

def acos(input: Given) -> FunctionalTensor:
    """Return the inverse cosine of each element, in radians."""

def acosh(input: Given) -> FunctionalTensor:
    """Return the inverse hyperbolic cosine of each element."""

def adaptive_avg_pool1d(input: Given, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
    """Return means of as many windows in signals as `output_size` says; None keeps a dim."""

def adaptive_avg_pool2d(input: Given, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
    """Return means of as many windows in pictures as `output_size` says; None keeps a dim."""

def adaptive_avg_pool3d(input: Given, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
    """Return means of as many windows in volumes as `output_size` says; None keeps a dim."""

def adaptive_max_pool1d(input: Given, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
    """Return the largest elements of as many windows in signals as `output_size` says; None keeps a dim."""

def adaptive_max_pool2d(input: Given, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
    """Return the largest elements of as many windows in pictures as `output_size` says; None keeps a dim."""

def adaptive_max_pool3d(input: Given, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
    """Return the largest elements of as many windows in volumes as `output_size` says; None keeps a dim."""

def add(input: Given, other: Given, *, alpha: builtins.float = 1) -> FunctionalTensor:
    """Return input + alpha * other. Bools are joined by `or`."""

def addbmm(
    input: Given, batch1: Given, batch2: Given, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> FunctionalTensor:
    """Return beta * input + alpha * the sum of (batch1 @ batch2) over the stack. Sentis' AddBMM is `baddbmm`."""

def addmm(
    input: Given, mat1: Given, mat2: Given, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> FunctionalTensor:
    """Return beta * input + alpha * (mat1 @ mat2)."""

def affine_grid(theta: Given, size: Sizes, align_corners: builtins.bool | None = None) -> FunctionalTensor:
    """Return the points of -1..1 to which affine maps take a grid of (batch, channels, height, width)."""

def all(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return whether all elements along dims (None: all) are true."""

def amax(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return the largest element along dims (None: all)."""

def amin(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return the smallest element along dims (None: all)."""

def any(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return whether any element along dims (None: all) is true."""

def arange(
    start: Size, end: Size | None = None, step: builtins.int | builtins.float = 1, *, dtype: DType = None
) -> FunctionalTensor:
    """Return start, start + step, ... below end; with one argument from 0. int64, or float32 if a number is a
    float.
    """

def arccos(input: Given) -> FunctionalTensor:
    """Return the inverse cosine of each element, in radians."""

def arccosh(input: Given) -> FunctionalTensor:
    """Return the inverse hyperbolic cosine of each element."""

def arcsin(input: Given) -> FunctionalTensor:
    """Return the inverse sine of each element, in radians."""

def arcsinh(input: Given) -> FunctionalTensor:
    """Return the inverse hyperbolic sine of each element."""

def arctan(input: Given) -> FunctionalTensor:
    """Return the inverse tangent of each element, in radians."""

def arctan2(input: Given, other: Given) -> FunctionalTensor:
    """Return the angle of the point (other, input) from -pi to pi, in radians. The sign of a zero does not
    count.
    """

def arctanh(input: Given) -> FunctionalTensor:
    """Return the inverse hyperbolic tangent of each element."""

def argmax(input: Given, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return the index of the largest element along a dim, or among all (None); the first of equal ones, as
    int64.
    """

def argmin(input: Given, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return the index of the smallest element along a dim, or among all (None); the first of equal ones, as
    int64.
    """

def argsort(
    input: Given, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
) -> FunctionalTensor:
    """Return the indices that sort the elements along a dim."""

def argwhere(input: Given) -> FunctionalTensor:
    """Return the indices of elements that are not 0, a row each."""

def as_strided(
    input: Given, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int = 0
) -> FunctionalTensor:
    """Read the elements of a tensor, row by row, with other sizes and strides (in elements)."""

def as_tensor(values: Given, dtype: DType = None) -> FunctionalTensor:
    """Return numbers, a list or an array as a tensor. Floats in lists are float32, and integers int64.

    A float64 array takes the dtype of the floats with which it is combined, unless `dtype` is "float64".
    """

def asin(input: Given) -> FunctionalTensor:
    """Return the inverse sine of each element, in radians."""

def asinh(input: Given) -> FunctionalTensor:
    """Return the inverse hyperbolic sine of each element."""

def atan(input: Given) -> FunctionalTensor:
    """Return the inverse tangent of each element, in radians."""

def atan2(input: Given, other: Given) -> FunctionalTensor:
    """Return the angle of the point (other, input) from -pi to pi, in radians. The sign of a zero does not
    count.
    """

def atanh(input: Given) -> FunctionalTensor:
    """Return the inverse hyperbolic tangent of each element."""

def atleast_1d(*tensors: Given) -> Any:
    """Return tensors with at least one dim."""

def atleast_2d(*tensors: Given) -> Any:
    """Return tensors with at least two dims; new ones come first."""

def atleast_3d(*tensors: Given) -> Any:
    """Return tensors with at least three dims; the third comes last."""

def avg_pool1d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True,
    divisor_override: builtins.int | None = None,
) -> FunctionalTensor:
    """Return the mean of each window in signals."""

def avg_pool2d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True,
    divisor_override: builtins.int | None = None,
) -> FunctionalTensor:
    """Return the mean of each window in pictures."""

def avg_pool3d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True,
    divisor_override: builtins.int | None = None,
) -> FunctionalTensor:
    """Return the mean of each window in volumes."""

def baddbmm(
    input: Given, batch1: Given, batch2: Given, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> FunctionalTensor:
    """Return beta * input + alpha * (batch1 @ batch2), for each matrix of a stack. Sentis' AddBMM is this."""

def batch_norm(
    input: Given,
    running_mean: Given,
    running_var: Given,
    weight: Given | None = None,
    bias: Given | None = None,
    training: builtins.bool = False,
    momentum: builtins.float = 0.1,
    eps: builtins.float = 1e-05,
) -> FunctionalTensor:
    """Normalise each channel (dim 1) by known means and variances: (x - mean) / sqrt(var + eps) * weight + bias."""

def bernoulli(input: Given, *, dtype: DType = None, seed: Seed = None) -> FunctionalTensor:
    """Draw 1 with the probability that the input gives, and 0 otherwise."""

def bitwise_and(input: Given, other: Given) -> FunctionalTensor:
    """Join the bits of each two integers, or each two bools, by `and`."""

def bitwise_left_shift(input: Given, other: Given) -> FunctionalTensor:
    """Move the bits of each integer up by `other` places."""

def bitwise_not(input: Given) -> FunctionalTensor:
    """Return integers with all bits turned, and bools negated."""

def bitwise_or(input: Given, other: Given) -> FunctionalTensor:
    """Join the bits of each two integers, or each two bools, by `or`."""

def bitwise_right_shift(input: Given, other: Given) -> FunctionalTensor:
    """Move the bits of each integer down by `other` places."""

def bitwise_xor(input: Given, other: Given) -> FunctionalTensor:
    """Join the bits of each two integers, or each two bools, by `xor`."""

def blackman_window(
    window_length: builtins.int, periodic: builtins.bool = True, *, dtype: DType = DataType.FLOAT32
) -> FunctionalTensor:
    """Return a Blackman window; a periodic one leaves out its last number."""

def bmm(input: Given, mat2: Given) -> FunctionalTensor:
    """Return the products of two stacks of matrices."""

def bool(input: Given) -> FunctionalTensor:
    """Return the input in bool."""

def box_area(boxes: Given) -> FunctionalTensor:
    """Return the areas of boxes (n, 4)."""

def box_iou(boxes1: Given, boxes2: Given) -> FunctionalTensor:
    """Return the common area of each two boxes / the area of both: (n, m)."""

def broadcast_to(input: Given, shape: Sizes) -> FunctionalTensor:
    """Repeat dims of size 1, and new dims in front, so that the shape is reached. -1 keeps a dim."""

def cat(tensors: Sequence[Given], dim: builtins.int = 0) -> FunctionalTensor:
    """Join tensors along a dim."""

def ceil(input: Given) -> FunctionalTensor:
    """Round each element up."""

def celu(input: Given, alpha: builtins.float = 1.0) -> FunctionalTensor:
    """Return max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""

def channel_shuffle(input: Given, groups: builtins.int) -> FunctionalTensor:
    """Take the channels of each group in turn."""

def chunk(input: Given, chunks: builtins.int, dim: builtins.int = 0) -> tuple[FunctionalTensor, ...]:
    """Cut a dim into pieces of equal size, the last of which may be smaller, and of which there may be fewer."""

def clamp(input: Given, min: Given | None = None, max: Given | None = None) -> FunctionalTensor:
    """Limit each element to min..max, which are numbers or tensors; None is no limit."""

def clip(input: Given, min: Given | None = None, max: Given | None = None) -> FunctionalTensor:
    """Limit each element to min..max, which are numbers or tensors; None is no limit."""

def clone(input: Given) -> FunctionalTensor:
    """Return the input: values of a model never change, so there is nothing to copy."""

def concat(tensors: Sequence[Given], dim: builtins.int = 0) -> FunctionalTensor:
    """Join tensors along a dim."""

def concatenate(tensors: Sequence[Given], dim: builtins.int = 0) -> FunctionalTensor:
    """Join tensors along a dim."""

def constant(values: Given, dtype: DType = None) -> FunctionalTensor:
    """Return numbers, a list or an array as a tensor. Floats in lists are float32, and integers int64.

    A float64 array takes the dtype of the floats with which it is combined, unless `dtype` is "float64".
    """

def conv1d(
    input: Given,
    weight: Given,
    bias: Given | None = None,
    stride: Extent = 1,
    padding: Extent | str = 0,
    dilation: Extent = 1,
    groups: builtins.int = 1,
) -> FunctionalTensor:
    """Convolve signals: `weight` is (outputs, inputs / groups, kernel)."""

def conv2d(
    input: Given,
    weight: Given,
    bias: Given | None = None,
    stride: Extent = 1,
    padding: Extent | str = 0,
    dilation: Extent = 1,
    groups: builtins.int = 1,
) -> FunctionalTensor:
    """Convolve pictures: `weight` is (outputs, inputs / groups, kernel)."""

def conv3d(
    input: Given,
    weight: Given,
    bias: Given | None = None,
    stride: Extent = 1,
    padding: Extent | str = 0,
    dilation: Extent = 1,
    groups: builtins.int = 1,
) -> FunctionalTensor:
    """Convolve volumes: `weight` is (outputs, inputs / groups, kernel)."""

def conv_transpose1d(
    input: Given,
    weight: Given,
    bias: Given | None = None,
    stride: Extent = 1,
    padding: Extent = 0,
    output_padding: Extent = 0,
    groups: builtins.int = 1,
    dilation: Extent = 1,
) -> FunctionalTensor:
    """Convolve signals transposed: `weight` is (inputs, outputs / groups, kernel)."""

def conv_transpose2d(
    input: Given,
    weight: Given,
    bias: Given | None = None,
    stride: Extent = 1,
    padding: Extent = 0,
    output_padding: Extent = 0,
    groups: builtins.int = 1,
    dilation: Extent = 1,
) -> FunctionalTensor:
    """Convolve pictures transposed: `weight` is (inputs, outputs / groups, kernel)."""

def conv_transpose3d(
    input: Given,
    weight: Given,
    bias: Given | None = None,
    stride: Extent = 1,
    padding: Extent = 0,
    output_padding: Extent = 0,
    groups: builtins.int = 1,
    dilation: Extent = 1,
) -> FunctionalTensor:
    """Convolve volumes transposed: `weight` is (inputs, outputs / groups, kernel)."""

def cos(input: Given) -> FunctionalTensor:
    """Return the cosine of each element, in radians."""

def cosh(input: Given) -> FunctionalTensor:
    """Return the hyperbolic cosine of each element."""

def cosine_similarity(x1: Given, x2: Given, dim: builtins.int = 1, eps: builtins.float = 1e-08) -> FunctionalTensor:
    """Return the cosine of the angle between vectors along a dim."""

def count_nonzero(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return the number of elements along dims (None: all) that are not 0, as int64 (`keepdim` is not
    PyTorch's).
    """

def cumprod(input: Given, dim: builtins.int, *, dtype: DType = None) -> FunctionalTensor:
    """Return running products along a dim."""

def cumsum(input: Given, dim: builtins.int, *, dtype: DType = None) -> FunctionalTensor:
    """Return running sums along a dim."""

def deg2rad(input: Given) -> FunctionalTensor:
    """Return degrees as radians."""

def det(input: Given) -> FunctionalTensor:
    """Return the determinants of square matrices."""

def diagonal(
    input: Given, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
) -> FunctionalTensor:
    """Return a diagonal of the matrices in two dims, as the last dim."""

def div(input: Given, other: Given, *, rounding_mode: Literal["trunc", "floor"] | None = None) -> FunctionalTensor:
    """Return input / other; integers give float32 without a rounding mode."""

def divide(input: Given, other: Given, *, rounding_mode: Literal["trunc", "floor"] | None = None) -> FunctionalTensor:
    """Return input / other; integers give float32 without a rounding mode."""

def dot(input: Given, tensor: Given) -> FunctionalTensor:
    """Return the product of two vectors: one number."""

def double(input: Given) -> FunctionalTensor:
    """Return the input in float64."""

def dropout(input: Given, p: builtins.float = 0.5, training: builtins.bool = False) -> FunctionalTensor:
    """Return the input: models here do not train, so `training` is False unless given, and True is an error."""

def einsum(equation: str, *operands: Any) -> FunctionalTensor:
    """Return sums of products by Einstein's notation, as in einsum("bij,bjk->bik", x, y)."""

def elu(input: Given, alpha: builtins.float = 1.0) -> FunctionalTensor:
    """Return x, and alpha * (exp(x) - 1) for negative x."""

def embedding(input: Given, weight: Given, padding_idx: builtins.int | None = None) -> FunctionalTensor:
    """Return the rows of a table at indices. `padding_idx` matters only to training."""

def eq(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` equals `other`."""

def equals(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` equals `other`."""

def erf(input: Given) -> FunctionalTensor:
    """Return the error function of each element."""

def exp(input: Given) -> FunctionalTensor:
    """Return e to the power of each element."""

def exp2(input: Given) -> FunctionalTensor:
    """Return 2 to the power of each element."""

def expand(input: Given, *sizes: Any) -> FunctionalTensor:
    """Repeat dims of size 1, and new dims in front, so that the sizes are reached. -1 keeps a dim."""

def expand_as(input: Given, other: Given) -> FunctionalTensor:
    """Repeat dims of size 1 so that the shape of another tensor is reached."""

def expm1(input: Given) -> FunctionalTensor:
    """Return exp(x) - 1 of each element, exact for small x too."""

def eye(n: builtins.int, m: builtins.int | None = None, *, dtype: DType = DataType.FLOAT32) -> FunctionalTensor:
    """Return a matrix with ones on the diagonal."""

def fix(input: Given) -> FunctionalTensor:
    """Round each element towards zero."""

def flatten(input: Given, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> FunctionalTensor:
    """Join the dims from start_dim to end_dim."""

def flip(input: Given, dims: builtins.int | Sequence[builtins.int]) -> FunctionalTensor:
    """Return dims in reverse."""

def fliplr(input: Given) -> FunctionalTensor:
    """Return the columns (dim 1) in reverse."""

def flipud(input: Given) -> FunctionalTensor:
    """Return the rows (dim 0) in reverse."""

def float(input: Given) -> FunctionalTensor:
    """Return the input in float32."""

def float_power(input: Given, exponent: Given) -> FunctionalTensor:
    """Return input to the power of exponent, in float32 (PyTorch: float64) unless one of them is float64."""

def floor(input: Given) -> FunctionalTensor:
    """Round each element down."""

def floor_divide(input: Given, other: Given) -> FunctionalTensor:
    """Return input / other, rounded down. Integers stay integers."""

def fmod(input: Given, other: Given) -> FunctionalTensor:
    """Return input modulo other, with the sign of `input`, as C's fmod does."""

def fold(
    input: Given,
    output_size: Extent,
    kernel_size: Extent,
    dilation: Extent = 1,
    padding: Extent = 0,
    stride: Extent = 1,
) -> FunctionalTensor:
    """Add up columns of windows to pictures: (batch, c * kernel, windows) becomes (batch, c, height, width)."""

def forward(model: Model, /, *inputs: Given | Mapping[str, Given], **named: Given) -> tuple[FunctionalTensor, ...]:
    """Return the outputs of a model for inputs by position, as a list, by name, or as a dict by name.

    The model's layers become part of the graph, and its constants are shared; the model stays as it is.
    Raises InputError for an input that is missing, unknown, or of a wrong dtype or shape.
    """

def frac(input: Given) -> FunctionalTensor:
    """Return the part of each element behind the point, with its sign."""

def full(
    size: Sizes, fill_value: builtins.float | builtins.int | builtins.bool, *, dtype: DType = None
) -> FunctionalTensor:
    """Return a tensor of one value. The dtype is that of the value: float32, int64 or bool."""

def full_like(
    input: Given, fill_value: builtins.float | builtins.int | builtins.bool, *, dtype: DType = None
) -> FunctionalTensor:
    """Return a tensor of one value, in the shape and the dtype of the input."""

def gather(input: Given, dim: builtins.int, index: Given) -> FunctionalTensor:
    """Return the elements at indices along a dim; the result has the shape of the index."""

def ge(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is greater than `other`, or equal."""

def gelu(input: Given, approximate: Literal["none", "tanh"] = "none") -> FunctionalTensor:
    """Return x * the normal distribution's share below x."""

def glu(input: Given, dim: builtins.int = -1) -> FunctionalTensor:
    """Return the first half of a dim times the sigmoid of its second half."""

def greater(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is greater than `other`."""

def greater_equal(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is greater than `other`, or equal."""

def grid_sample(
    input: Given,
    grid: Given,
    mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: builtins.bool | None = None,
) -> FunctionalTensor:
    """Sample pictures or volumes at points of -1..1, x first."""

def group_norm(
    input: Given,
    num_groups: builtins.int,
    weight: Given | None = None,
    bias: Given | None = None,
    eps: builtins.float = 1e-05,
) -> FunctionalTensor:
    """Normalise groups of channels (dim 1) of each item of a batch by their mean and variance."""

def gt(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is greater than `other`."""

def half(input: Given) -> FunctionalTensor:
    """Return the input in float16."""

def hamming_window(
    window_length: builtins.int, periodic: builtins.bool = True, *, dtype: DType = DataType.FLOAT32
) -> FunctionalTensor:
    """Return a Hamming window; a periodic one leaves out its last number."""

def hann_window(
    window_length: builtins.int, periodic: builtins.bool = True, *, dtype: DType = DataType.FLOAT32
) -> FunctionalTensor:
    """Return a Hann window; a periodic one leaves out its last number."""

def hardshrink(input: Given, lambd: builtins.float = 0.5) -> FunctionalTensor:
    """Return x, and 0 for x from -lambd to lambd."""

def hardsigmoid(input: Given) -> FunctionalTensor:
    """Return clamp(x / 6 + 0.5, 0, 1) of each element."""

def hardswish(input: Given) -> FunctionalTensor:
    """Return x * clamp(x / 6 + 0.5, 0, 1) of each element."""

def hardtanh(input: Given, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> FunctionalTensor:
    """Limit each element to min_val..max_val."""

def hypot(input: Given, other: Given) -> FunctionalTensor:
    """Return sqrt(input² + other²)."""

def index_add(
    input: Given, dim: builtins.int, index: Given, source: Given, *, alpha: builtins.float = 1
) -> FunctionalTensor:
    """Add alpha times the slices of `source` at a row of indices along a dim."""

def index_select(input: Given, dim: builtins.int, index: Given) -> FunctionalTensor:
    """Return the slices at a row of indices along a dim."""

def inner(input: Given, other: Given) -> FunctionalTensor:
    """Return the sums of products along the last dims of both."""

def instance_norm(
    input: Given,
    running_mean: Given | None = None,
    running_var: Given | None = None,
    weight: Given | None = None,
    bias: Given | None = None,
    use_input_stats: builtins.bool = True,
    momentum: builtins.float = 0.1,
    eps: builtins.float = 1e-05,
) -> FunctionalTensor:
    """Normalise each channel (dim 1) of each item of a batch by its own mean and variance."""

def int(input: Given) -> FunctionalTensor:
    """Return the input in int32."""

def interpolate(
    input: Given,
    size: builtins.int | Sizes | None = None,
    scale_factor: builtins.float | Sequence[builtins.float] | None = None,
    mode: str = "nearest",
    align_corners: builtins.bool | None = None,
    recompute_scale_factor: builtins.bool | None = None,
    antialias: builtins.bool = False,
) -> FunctionalTensor:
    """Resample (batch, channels, ...) to a size, or by factors. Modes: nearest, nearest-exact, linear, bilinear,
    bicubic, trilinear and area.
    """

def isfinite(input: Given) -> FunctionalTensor:
    """Return for each element whether it is a finite number."""

def isinf(input: Given) -> FunctionalTensor:
    """Return for each element whether it is infinite."""

def isnan(input: Given) -> FunctionalTensor:
    """Return for each element whether it is NaN."""

def layer_norm(
    input: Given,
    normalized_shape: builtins.int | Sequence[builtins.int],
    weight: Given | None = None,
    bias: Given | None = None,
    eps: builtins.float = 1e-05,
) -> FunctionalTensor:
    """Normalise the last dims by their mean and variance."""

def le(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is less than `other`, or equal."""

def leaky_relu(input: Given, negative_slope: builtins.float = 0.01) -> FunctionalTensor:
    """Return x, and negative_slope * x for negative x."""

def lerp(input: Given, end: Given, weight: Given) -> FunctionalTensor:
    """Return input + weight * (end - input)."""

def less(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is less than `other`."""

def less_equal(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is less than `other`, or equal."""

def linear(input: Given, weight: Given, bias: Given | None = None) -> FunctionalTensor:
    """Return input @ weight.T + bias; the weight is (outputs, inputs)."""

def linspace(
    start: builtins.float, end: builtins.float, steps: builtins.int, *, dtype: DType = DataType.FLOAT32
) -> FunctionalTensor:
    """Return `steps` numbers from start to end, both included, evenly spaced."""

def local_response_norm(
    input: Given,
    size: builtins.int,
    alpha: builtins.float = 0.0001,
    beta: builtins.float = 0.75,
    k: builtins.float = 1.0,
) -> FunctionalTensor:
    """Divide by (k + alpha * mean square of `size` neighbouring channels) ** beta."""

def log(input: Given) -> FunctionalTensor:
    """Return the natural logarithm of each element."""

def log10(input: Given) -> FunctionalTensor:
    """Return the logarithm of each element to base 10."""

def log1p(input: Given) -> FunctionalTensor:
    """Return log(1 + x) of each element, exact for small x too (Kahan's correction of the rounding of 1 + x)."""

def log2(input: Given) -> FunctionalTensor:
    """Return the logarithm of each element to base 2."""

def log_softmax(input: Given, dim: builtins.int = -1, *, dtype: DType = None) -> FunctionalTensor:
    """Return the logarithm of softmax along a dim."""

def logaddexp(input: Given, other: Given) -> FunctionalTensor:
    """Return log(exp(input) + exp(other)) without overflow."""

def logical_and(input: Given, other: Given) -> FunctionalTensor:
    """Join the truths of each two elements by `and`; 0 is false."""

def logical_not(input: Given) -> FunctionalTensor:
    """Return for each element whether it is false, or 0."""

def logical_or(input: Given, other: Given) -> FunctionalTensor:
    """Join the truths of each two elements by `or`; 0 is false."""

def logical_xor(input: Given, other: Given) -> FunctionalTensor:
    """Join the truths of each two elements by `xor`; 0 is false."""

def logsigmoid(input: Given) -> FunctionalTensor:
    """Return log(sigmoid(x)) of each element."""

def logspace(
    start: builtins.float,
    end: builtins.float,
    steps: builtins.int,
    base: builtins.float = 10.0,
    *,
    dtype: DType = DataType.FLOAT32,
) -> FunctionalTensor:
    """Return `steps` powers of a base, with exponents from start to end, evenly spaced."""

def logsumexp(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return log(sum(exp(x))) along dims (None: all)."""

def long(input: Given) -> FunctionalTensor:
    """Return the input in int64."""

def lp_pool1d(
    input: Given,
    norm_type: builtins.float,
    kernel_size: Extent,
    stride: Extent | None = None,
    ceil_mode: builtins.bool = False,
) -> FunctionalTensor:
    """Return the p-norm of each window in signals, of absolute values (PyTorch: with their signs)."""

def lp_pool2d(
    input: Given,
    norm_type: builtins.float,
    kernel_size: Extent,
    stride: Extent | None = None,
    ceil_mode: builtins.bool = False,
) -> FunctionalTensor:
    """Return the p-norm of each window in pictures, of absolute values (PyTorch: with their signs)."""

def lp_pool3d(
    input: Given,
    norm_type: builtins.float,
    kernel_size: Extent,
    stride: Extent | None = None,
    ceil_mode: builtins.bool = False,
) -> FunctionalTensor:
    """Return the p-norm of each window in volumes, of absolute values (PyTorch: with their signs)."""

def lt(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is less than `other`."""

def masked_fill(input: Given, mask: Given, value: Given) -> FunctionalTensor:
    """Replace the elements where a mask holds by a value."""

def masked_select(input: Given, mask: Given) -> FunctionalTensor:
    """Return the elements where a mask holds, in one row. Its length is known when the model runs."""

def matmul(input: Given, other: Given) -> FunctionalTensor:
    """Return the matrix product; dims ahead of the last two broadcast, and a row counts as a vector."""

def max(input: Given, dim: builtins.int | Given | None = None, keepdim: builtins.bool = False) -> Any:
    """Return the largest element of all; along a dim (a number) values and indices; or `maximum` with a tensor."""

def max_pool1d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    dilation: Extent = 1,
    ceil_mode: builtins.bool = False,
    return_indices: builtins.bool = False,
) -> Any:
    """Return the largest element of each window in signals, and its index in its plane if asked."""

def max_pool2d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    dilation: Extent = 1,
    ceil_mode: builtins.bool = False,
    return_indices: builtins.bool = False,
) -> Any:
    """Return the largest element of each window in pictures, and its index in its plane if asked."""

def max_pool3d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    dilation: Extent = 1,
    ceil_mode: builtins.bool = False,
    return_indices: builtins.bool = False,
) -> Any:
    """Return the largest element of each window in volumes, and its index in its plane if asked."""

def max_unpool1d(
    input: Given,
    indices: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    output_size: Sequence[builtins.int] | None = None,
) -> FunctionalTensor:
    """Put the results of a max pool in signals back to their places; the rest is 0."""

def max_unpool2d(
    input: Given,
    indices: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    output_size: Sequence[builtins.int] | None = None,
) -> FunctionalTensor:
    """Put the results of a max pool in pictures back to their places; the rest is 0."""

def max_unpool3d(
    input: Given,
    indices: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    output_size: Sequence[builtins.int] | None = None,
) -> FunctionalTensor:
    """Put the results of a max pool in volumes back to their places; the rest is 0."""

def maximum(input: Given, other: Given) -> FunctionalTensor:
    """Return the larger one of each two elements."""

def mean(input: Given, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None) -> FunctionalTensor:
    """Return the mean along dims (None: all)."""

def meshgrid(*tensors: Any, indexing: Literal["ij", "xy"] = "ij") -> tuple[FunctionalTensor, ...]:
    """Return the coordinates of a grid, one tensor for each row of coordinates."""

def min(input: Given, dim: builtins.int | Given | None = None, keepdim: builtins.bool = False) -> Any:
    """Return the smallest element of all; along a dim (a number) values and indices; or `minimum` with a tensor."""

def minimum(input: Given, other: Given) -> FunctionalTensor:
    """Return the smaller one of each two elements."""

def mish(input: Given) -> FunctionalTensor:
    """Return x * tanh(softplus(x)) of each element."""

def mm(input: Given, mat2: Given) -> FunctionalTensor:
    """Return the product of two matrices."""

def moveaxis(
    input: Given, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
) -> FunctionalTensor:
    """Move dims to other places; the others keep their order."""

def movedim(
    input: Given, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
) -> FunctionalTensor:
    """Move dims to other places; the others keep their order."""

def mul(input: Given, other: Given) -> FunctionalTensor:
    """Return input * other. Bools are joined by `and`."""

def multinomial(
    input: Given, num_samples: builtins.int, replacement: builtins.bool = False, *, seed: Seed = None
) -> FunctionalTensor:
    """Draw indices by rows of weights (a row, or (rows, classes)); without replacement no index comes twice."""

def multiply(input: Given, other: Given) -> FunctionalTensor:
    """Return input * other. Bools are joined by `and`."""

def mv(input: Given, vec: Given) -> FunctionalTensor:
    """Return the product of a matrix and a vector."""

def nan_to_num(
    input: Given, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None
) -> FunctionalTensor:
    """Replace NaN and infinities by numbers; infinities become the largest numbers of the dtype unless given."""

def narrow(input: Given, dim: builtins.int, start: Size, length: Size) -> FunctionalTensor:
    """Return `length` elements of a dim from `start` on. Both may be tensors of one integer."""

def ne(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` and `other` differ."""

def neg(input: Given) -> FunctionalTensor:
    """Return each element with the other sign."""

def negative(input: Given) -> FunctionalTensor:
    """Return each element with the other sign."""

def nms(
    boxes: Given, scores: Given, iou_threshold: builtins.float, score_threshold: builtins.float | None = None
) -> FunctionalTensor:
    """Return the indices of boxes that no better box overlaps by more than the threshold, the best first, as
    int64.

    `boxes` is (n, 4) and `scores` (n,). With `score_threshold`, which torchvision does not have, only boxes
    with higher scores count. The number of indices is known when the model runs.
    """

def nonzero(input: Given, *, as_tuple: builtins.bool = False) -> Any:
    """Return the indices of elements that are not 0, a row each; with `as_tuple`, a row for each dim."""

def norm(
    input: Given, p: builtins.float | str = "fro", dim: Dims = None, keepdim: builtins.bool = False
) -> FunctionalTensor:
    """Return the p-norm along dims (None: all); "fro" is 2."""

def normal(
    mean: builtins.float, std: builtins.float, size: Sizes, *, dtype: DType = DataType.FLOAT32, seed: Seed = None
) -> FunctionalTensor:
    """Draw numbers of a normal distribution."""

def normal_like(
    mean: builtins.float, std: builtins.float, input: Given, *, dtype: DType = None, seed: Seed = None
) -> FunctionalTensor:
    """Draw numbers of a normal distribution, in the shape and the dtype of a tensor."""

def normalize(
    input: Given, p: builtins.float = 2.0, dim: builtins.int = 1, eps: builtins.float = 1e-12
) -> FunctionalTensor:
    """Divide by the p-norm along a dim, or by eps where the norm is smaller."""

def not_equal(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` and `other` differ."""

def numel(input: Given) -> FunctionalTensor:
    """Return the number of elements as an int64 without dims (PyTorch: a number of Python)."""

def one_hot(tensor: Given, num_classes: builtins.int = -1) -> FunctionalTensor:
    """Return int64 rows with 1 at an index and 0 elsewhere. With -1 the number of classes follows from the data."""

def ones(*size: Any, dtype: DType = DataType.FLOAT32) -> FunctionalTensor:
    """Return a tensor of ones."""

def ones_like(input: Given, *, dtype: DType = None) -> FunctionalTensor:
    """Return ones in the shape and the dtype of the input."""

def outer(input: Given, vec2: Given) -> FunctionalTensor:
    """Return the products of each element of one vector with each of another."""

def pad(
    input: Given,
    pad: Sequence[builtins.int],
    mode: Literal["constant", "reflect", "replicate", "circular"] = "constant",
    value: builtins.float | None = None,
) -> FunctionalTensor:
    """Add elements around a tensor: `pad` is (before, after) of the last dim, then of the dim before it, and so
    on.

    Negative numbers remove elements.
    """

def permute(input: Given, *dims: Any) -> FunctionalTensor:
    """Return the dims in another order."""

def pixel_shuffle(input: Given, upscale_factor: builtins.int) -> FunctionalTensor:
    """Turn channels into pixels: (batch, c * r², h, w) becomes (batch, c, h * r, w * r)."""

def pixel_unshuffle(input: Given, downscale_factor: builtins.int) -> FunctionalTensor:
    """Turn pixels into channels: (batch, c, h * r, w * r) becomes (batch, c * r², h, w)."""

def positive(input: Given) -> FunctionalTensor:
    """Return the input."""

def pow(input: Given, exponent: Given) -> FunctionalTensor:
    """Return input to the power of exponent."""

def prelu(input: Given, weight: Given) -> FunctionalTensor:
    """Return x, and weight * x for negative x. `weight` has one number, or one for each channel (dim 1)."""

def prod(input: Given, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None) -> FunctionalTensor:
    """Return the product along dims (None: all). Integers and bools give int64."""

def rad2deg(input: Given) -> FunctionalTensor:
    """Return radians as degrees."""

def rand(*size: Any, dtype: DType = DataType.FLOAT32, seed: Seed = None) -> FunctionalTensor:
    """Draw numbers from 0 to below 1."""

def rand_like(input: Given, *, dtype: DType = None, seed: Seed = None) -> FunctionalTensor:
    """Draw numbers from 0 to below 1, in the shape and the dtype of the input."""

def randint(
    low: builtins.int,
    high: builtins.int | None = None,
    size: Sizes = (),
    *,
    dtype: DType = DataType.INT64,
    seed: Seed = None,
) -> FunctionalTensor:
    """Draw whole numbers from low to below high; with one number from 0."""

def randint_like(
    input: Given, low: builtins.int, high: builtins.int | None = None, *, dtype: DType = None, seed: Seed = None
) -> FunctionalTensor:
    """Draw whole numbers from low to below high, in the shape and the dtype of the input."""

def randn(*size: Any, dtype: DType = DataType.FLOAT32, seed: Seed = None) -> FunctionalTensor:
    """Draw numbers of the standard normal distribution."""

def randn_like(input: Given, *, dtype: DType = None, seed: Seed = None) -> FunctionalTensor:
    """Draw numbers of the standard normal distribution, in the shape and the dtype of the input."""

def random_choice(input: Given, size: Sizes, p: Given | None = None, *, seed: Seed = None) -> FunctionalTensor:
    """Draw elements of the flattened input, with replacement: all alike, or by probabilities `p`."""

def ravel(input: Given) -> FunctionalTensor:
    """Return all elements in one row."""

def reciprocal(input: Given) -> FunctionalTensor:
    """Return 1 / x of each element."""

def reduce_l1(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return the sum of absolute values along dims (None: all)."""

def reduce_l2(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return the square root of the sum of squares along dims (None: all)."""

def reduce_log_sum_exp(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return log(sum(exp(x))) along dims (None: all)."""

def reduce_max(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return the largest element along dims (None: all)."""

def reduce_mean(
    input: Given, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None
) -> FunctionalTensor:
    """Return the mean along dims (None: all)."""

def reduce_min(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return the smallest element along dims (None: all)."""

def reduce_prod(
    input: Given, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None
) -> FunctionalTensor:
    """Return the product along dims (None: all). Integers and bools give int64."""

def reduce_sum(
    input: Given, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None
) -> FunctionalTensor:
    """Return the sum along dims (None: all). Integers and bools give int64."""

def reduce_sum_square(input: Given, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
    """Return the sum of squares along dims (None: all)."""

def reduce_variance(
    input: Given, dim: Dims = None, keepdim: builtins.bool = False, correction: builtins.float = 1.0
) -> FunctionalTensor:
    """Return the variance along dims (None: all), with Sentis' order of arguments."""

def relu(input: Given) -> FunctionalTensor:
    """Return each element, and 0 for negative ones."""

def relu6(input: Given) -> FunctionalTensor:
    """Return each element limited to 0..6."""

def remainder(input: Given, other: Given) -> FunctionalTensor:
    """Return input modulo other, with the sign of `other`, as Python's % does."""

def repeat(input: Given, *repeats: Any) -> FunctionalTensor:
    """Repeat the whole tensor along its dims: a count for each dim, and more of them for new dims in front."""

def repeat_interleave(input: Given, repeats: builtins.int, dim: builtins.int | None = None) -> FunctionalTensor:
    """Repeat each element, or each slice along a dim, a number of times."""

def reshape(input: Given, *shape: Any) -> FunctionalTensor:
    """Return the elements in another shape. -1 stands for the rest, a name for the size of that dim of the
    input.
    """

def rms_norm(
    input: Given,
    normalized_shape: builtins.int | Sequence[builtins.int],
    weight: Given | None = None,
    eps: builtins.float | None = None,
) -> FunctionalTensor:
    """Divide the last dims by the root of their mean square; `eps` is the dtype's precision unless given."""

def roi_align(
    input: Given,
    boxes: Given,
    output_size: Extent,
    spatial_scale: builtins.float = 1.0,
    sampling_ratio: builtins.int = -1,
    aligned: builtins.bool = False,
) -> FunctionalTensor:
    """Resample regions of pictures to one size. `boxes` is (n, 5): the picture's index in the batch, and the
    box.
    """

def roll(
    input: Given,
    shifts: builtins.int | Sequence[builtins.int],
    dims: builtins.int | Sequence[builtins.int] | None = None,
) -> FunctionalTensor:
    """Move elements along dims; those beyond the end come back at the begin."""

def round(input: Given, *, decimals: builtins.int = 0) -> FunctionalTensor:
    """Round each element to a number of decimals; halves go to the even neighbour."""

def rsqrt(input: Given) -> FunctionalTensor:
    """Return 1 / sqrt(x) of each element."""

def scaled_dot_product_attention(
    query: Given,
    key: Given,
    value: Given,
    attn_mask: Given | None = None,
    dropout_p: builtins.float = 0.0,
    is_causal: builtins.bool = False,
    scale: builtins.float | None = None,
    enable_gqa: builtins.bool = False,
) -> FunctionalTensor:
    """Return softmax(query @ key.T * scale + mask) @ value; a mask of bools tells what takes part."""

def scatter(
    input: Given, dim: builtins.int, index: Given, src: Given, *, reduce: Literal["add", "multiply"] | None = None
) -> FunctionalTensor:
    """Replace the elements at indices along a dim by those of `src`, or by one number; `reduce` joins them."""

def scatter_add(input: Given, dim: builtins.int, index: Given, src: Given) -> FunctionalTensor:
    """Add the elements of `src` at indices along a dim."""

def scatter_reduce(
    input: Given,
    dim: builtins.int,
    index: Given,
    src: Given,
    reduce: Literal["sum", "prod", "mean", "amax", "amin"],
    *,
    include_self: builtins.bool = True,
) -> FunctionalTensor:
    """Join the elements of `src` at indices along a dim, with or without the input's own elements."""

def select(input: Given, dim: builtins.int, index: Size) -> FunctionalTensor:
    """Return the slice at one index of a dim, without that dim. The index may be a tensor of one integer."""

def select_scatter(input: Given, src: Given, dim: builtins.int, index: builtins.int) -> FunctionalTensor:
    """Replace the slice at one index of a dim by `src`, which does not have that dim."""

def selu(input: Given) -> FunctionalTensor:
    """Return the scaled exponential linear unit of each element."""

def sigmoid(input: Given) -> FunctionalTensor:
    """Return 1 / (1 + exp(-x)) of each element."""

def sign(input: Given) -> FunctionalTensor:
    """Return -1, 0 or 1: the sign of each element."""

def silu(input: Given) -> FunctionalTensor:
    """Return x * sigmoid(x) of each element."""

def sin(input: Given) -> FunctionalTensor:
    """Return the sine of each element, in radians."""

def sinh(input: Given) -> FunctionalTensor:
    """Return the hyperbolic sine of each element."""

def size(input: Given, dim: builtins.int | None = None) -> FunctionalTensor:
    """Return the sizes of all dims as int64, or of one dim as an int64 without dims (PyTorch: numbers of
    Python).
    """

def slice_scatter(
    input: Given,
    src: Given,
    dim: builtins.int = 0,
    start: builtins.int | None = None,
    end: builtins.int | None = None,
    step: builtins.int = 1,
) -> FunctionalTensor:
    """Replace the elements start..end of a dim, `step` apart, by those of `src`."""

def softmax(input: Given, dim: builtins.int = -1, *, dtype: DType = None) -> FunctionalTensor:
    """Return exp(x) / sum(exp(x)) along a dim."""

def softmin(input: Given, dim: builtins.int = -1) -> FunctionalTensor:
    """Return softmax of -x along a dim."""

def softplus(input: Given, beta: builtins.float = 1.0, threshold: builtins.float = 20.0) -> FunctionalTensor:
    """Return log(1 + exp(beta * x)) / beta, and x where beta * x is above the threshold."""

def softshrink(input: Given, lambd: builtins.float = 0.5) -> FunctionalTensor:
    """Return x moved by lambd towards 0, and 0 for x from -lambd to lambd."""

def softsign(input: Given) -> FunctionalTensor:
    """Return x / (1 + |x|) of each element."""

def sort(
    input: Given, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
) -> ValuesAndIndices:
    """Return the elements along a dim in order, and their indices; equal elements keep their order."""

def split(
    input: Given, split_size_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
) -> tuple[FunctionalTensor, ...]:
    """Cut a dim into pieces of one size, the last of which may be smaller, or of the given sizes."""

def sqrt(input: Given) -> FunctionalTensor:
    """Return the square root of each element."""

def square(input: Given) -> FunctionalTensor:
    """Return x * x of each element; bools give int64."""

def squeeze(input: Given, dim: builtins.int | Sequence[builtins.int] | None = None) -> FunctionalTensor:
    """Remove the dims of size 1, or those among the given dims."""

def stack(tensors: Sequence[Given], dim: builtins.int = 0) -> FunctionalTensor:
    """Join tensors of one shape along a new dim."""

def std(
    input: Given, dim: Dims = None, *, correction: builtins.float = 1, keepdim: builtins.bool = False
) -> FunctionalTensor:
    """Return the standard deviation along dims (None: all)."""

def std_mean(
    input: Given, dim: Dims = None, *, correction: builtins.float = 1, keepdim: builtins.bool = False
) -> tuple[FunctionalTensor, FunctionalTensor]:
    """Return the standard deviation and the mean along dims (None: all)."""

def stft(
    input: Given,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: Given | None = None,
    center: builtins.bool = True,
    pad_mode: Literal["constant", "reflect", "replicate", "circular"] = "reflect",
    normalized: builtins.bool = False,
    onesided: builtins.bool = True,
) -> FunctionalTensor:
    """Return spectra of overlapping frames: (batch, frequencies, frames, 2), real and imaginary parts.

    PyTorch returns complex numbers, or these parts by torch.view_as_real.
    """

def sub(input: Given, other: Given, *, alpha: builtins.float = 1) -> FunctionalTensor:
    """Return input - alpha * other."""

def subtract(input: Given, other: Given, *, alpha: builtins.float = 1) -> FunctionalTensor:
    """Return input - alpha * other."""

def sum(input: Given, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None) -> FunctionalTensor:
    """Return the sum along dims (None: all). Integers and bools give int64."""

def swapaxes(input: Given, dim0: builtins.int, dim1: builtins.int) -> FunctionalTensor:
    """Exchange two dims."""

def swapdims(input: Given, dim0: builtins.int, dim1: builtins.int) -> FunctionalTensor:
    """Exchange two dims."""

def t(input: Given) -> FunctionalTensor:
    """Exchange the two dims of a matrix; a tensor with fewer dims stays."""

def take(input: Given, index: Given) -> FunctionalTensor:
    """Return the elements at indices of the flattened input; the result has the shape of the index."""

def take_along_dim(input: Given, indices: Given, dim: builtins.int | None = None) -> FunctionalTensor:
    """Return the elements at indices along a dim, or in the flattened input; the other dims broadcast."""

def tan(input: Given) -> FunctionalTensor:
    """Return the tangent of each element, in radians."""

def tanh(input: Given) -> FunctionalTensor:
    """Return the hyperbolic tangent of each element."""

def tanhshrink(input: Given) -> FunctionalTensor:
    """Return x - tanh(x) of each element."""

def tensor(values: Given, dtype: DType = None) -> FunctionalTensor:
    """Return numbers, a list or an array as a tensor. Floats in lists are float32, and integers int64.

    A float64 array takes the dtype of the floats with which it is combined, unless `dtype` is "float64".
    """

def threshold(input: Given, threshold: builtins.float, value: builtins.float) -> FunctionalTensor:
    """Return each element above the threshold, and `value` for the others."""

def tile(input: Given, *dims: Any) -> FunctionalTensor:
    """Repeat the whole tensor along its last dims; missing counts are 1."""

def to(input: Given, dtype: DataType | str) -> FunctionalTensor:
    """Return the input in another dtype."""

def topk(
    input: Given, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True
) -> ValuesAndIndices:
    """Return the k largest (or smallest) elements along a dim in order, and their indices."""

def transpose(input: Given, dim0: builtins.int, dim1: builtins.int) -> FunctionalTensor:
    """Exchange two dims."""

def tril(input: Given, diagonal: builtins.int = 0) -> FunctionalTensor:
    """Return the elements of matrices on and below a diagonal, and 0 above it."""

def triu(input: Given, diagonal: builtins.int = 0) -> FunctionalTensor:
    """Return the elements of matrices on and above a diagonal, and 0 below it."""

def true_divide(
    input: Given, other: Given, *, rounding_mode: Literal["trunc", "floor"] | None = None
) -> FunctionalTensor:
    """Return input / other; integers give float32 without a rounding mode."""

def trunc(input: Given) -> FunctionalTensor:
    """Round each element towards zero."""

def type(input: Given, dtype: DataType | str) -> FunctionalTensor:
    """Return the input in another dtype."""

def type_as(input: Given, other: FunctionalTensor) -> FunctionalTensor:
    """Return the input in the dtype of another tensor."""

def unbind(input: Given, dim: builtins.int = 0) -> tuple[FunctionalTensor, ...]:
    """Return the slices along a dim, without that dim."""

def unflatten(input: Given, dim: builtins.int, sizes: Sizes) -> FunctionalTensor:
    """Split one dim into several; one size may be -1."""

def unfold(
    input: Given, kernel_size: Extent, dilation: Extent = 1, padding: Extent = 0, stride: Extent = 1
) -> FunctionalTensor:
    """Return the windows of pictures as columns: (batch, c * kernel, windows). NaN spreads in a window."""

def unique(
    input: Given,
    sorted: builtins.bool = True,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    dim: builtins.int | None = None,
) -> Any:
    """Return the different elements (or slices along a dim), and if asked for, where each went and how often it
    is.
    """

def unsqueeze(input: Given, dim: builtins.int) -> FunctionalTensor:
    """Insert a dim of size 1."""

def upsample(
    input: Given,
    size: builtins.int | Sizes | None = None,
    scale_factor: builtins.float | Sequence[builtins.float] | None = None,
    mode: str = "nearest",
    align_corners: builtins.bool | None = None,
    recompute_scale_factor: builtins.bool | None = None,
    antialias: builtins.bool = False,
) -> FunctionalTensor:
    """Resample (batch, channels, ...) to a size, or by factors. Modes: nearest, nearest-exact, linear, bilinear,
    bicubic, trilinear and area.
    """

def var(
    input: Given, dim: Dims = None, *, correction: builtins.float = 1, keepdim: builtins.bool = False
) -> FunctionalTensor:
    """Return the variance along dims (None: all): the sum of squared distances / (count - correction)."""

def var_mean(
    input: Given, dim: Dims = None, *, correction: builtins.float = 1, keepdim: builtins.bool = False
) -> tuple[FunctionalTensor, FunctionalTensor]:
    """Return the variance and the mean along dims (None: all)."""

def view(input: Given, *shape: Any) -> FunctionalTensor:
    """Return the elements in another shape. -1 stands for the rest, a name for the size of that dim of the
    input.
    """

def where(condition: Given, input: Given | None = None, other: Given | None = None) -> Any:
    """Return `input` where the condition holds, and `other` elsewhere. The condition alone gives nonzero's
    indices.
    """

def zeros(*size: Any, dtype: DType = DataType.FLOAT32) -> FunctionalTensor:
    """Return a tensor of zeros."""

def zeros_like(input: Given, *, dtype: DType = None) -> FunctionalTensor:
    """Return zeros in the shape and the dtype of the input."""
