"""The methods of functional tensors. tools/write_functional.py makes this file from the functions."""

import builtins
from collections.abc import Sequence
from typing import Any, Literal

from perframe.functional.drawing import Seed
from perframe.functional.reductions import Dims, DType, ValuesAndIndices
from perframe.functional.sizes import Size, Sizes
from perframe.functional.tensor import FunctionalTensor, Given
from perframe.functional.windows import Extent
from perframe.tensor import DataType

class Methods:
    """The functions of `pf.functional` as methods."""

    def __abs__(self) -> FunctionalTensor: ...
    def __add__(self, other: Given) -> FunctionalTensor: ...
    def __and__(self, other: Given) -> FunctionalTensor: ...
    def __eq__(self, other: Given) -> FunctionalTensor: ...  # type: ignore[override]
    def __floordiv__(self, other: Given) -> FunctionalTensor: ...
    def __ge__(self, other: Given) -> FunctionalTensor: ...
    def __gt__(self, other: Given) -> FunctionalTensor: ...
    def __invert__(self) -> FunctionalTensor: ...
    def __le__(self, other: Given) -> FunctionalTensor: ...
    def __lshift__(self, other: Given) -> FunctionalTensor: ...
    def __lt__(self, other: Given) -> FunctionalTensor: ...
    def __matmul__(self, other: Given) -> FunctionalTensor: ...
    def __mod__(self, other: Given) -> FunctionalTensor: ...
    def __mul__(self, other: Given) -> FunctionalTensor: ...
    def __ne__(self, other: Given) -> FunctionalTensor: ...  # type: ignore[override]
    def __neg__(self) -> FunctionalTensor: ...
    def __or__(self, other: Given) -> FunctionalTensor: ...
    def __pos__(self) -> FunctionalTensor: ...
    def __pow__(self, other: Given) -> FunctionalTensor: ...
    def __radd__(self, other: Given) -> FunctionalTensor: ...
    def __rand__(self, other: Given) -> FunctionalTensor: ...
    def __rfloordiv__(self, other: Given) -> FunctionalTensor: ...
    def __rlshift__(self, other: Given) -> FunctionalTensor: ...
    def __rmatmul__(self, other: Given) -> FunctionalTensor: ...
    def __rmod__(self, other: Given) -> FunctionalTensor: ...
    def __rmul__(self, other: Given) -> FunctionalTensor: ...
    def __ror__(self, other: Given) -> FunctionalTensor: ...
    def __rpow__(self, other: Given) -> FunctionalTensor: ...
    def __rrshift__(self, other: Given) -> FunctionalTensor: ...
    def __rshift__(self, other: Given) -> FunctionalTensor: ...
    def __rsub__(self, other: Given) -> FunctionalTensor: ...
    def __rtruediv__(self, other: Given) -> FunctionalTensor: ...
    def __rxor__(self, other: Given) -> FunctionalTensor: ...
    def __sub__(self, other: Given) -> FunctionalTensor: ...
    def __truediv__(self, other: Given) -> FunctionalTensor: ...
    def __xor__(self, other: Given) -> FunctionalTensor: ...
    def abs(self) -> FunctionalTensor:
        """Return the absolute value of each element."""

    def absolute(self) -> FunctionalTensor:
        """Return the absolute value of each element."""

    def acos(self) -> FunctionalTensor:
        """Return the inverse cosine of each element, in radians."""

    def acosh(self) -> FunctionalTensor:
        """Return the inverse hyperbolic cosine of each element."""

    def adaptive_avg_pool1d(self, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
        """Return means of as many windows in signals as `output_size` says; None keeps a dim."""

    def adaptive_avg_pool2d(self, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
        """Return means of as many windows in pictures as `output_size` says; None keeps a dim."""

    def adaptive_avg_pool3d(self, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
        """Return means of as many windows in volumes as `output_size` says; None keeps a dim."""

    def adaptive_max_pool1d(self, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
        """Return the largest elements of as many windows in signals as `output_size` says; None keeps a dim."""

    def adaptive_max_pool2d(self, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
        """Return the largest elements of as many windows in pictures as `output_size` says; None keeps a dim."""

    def adaptive_max_pool3d(self, output_size: builtins.int | Sequence[builtins.int | None]) -> FunctionalTensor:
        """Return the largest elements of as many windows in volumes as `output_size` says; None keeps a dim."""

    def add(self, other: Given, *, alpha: builtins.float = 1) -> FunctionalTensor:
        """Return input + alpha * other. Bools are joined by `or`."""

    def addbmm(
        self, batch1: Given, batch2: Given, *, beta: builtins.float = 1, alpha: builtins.float = 1
    ) -> FunctionalTensor:
        """Return beta * input + alpha * the sum of (batch1 @ batch2) over the stack. Sentis' AddBMM is `baddbmm`."""

    def addmm(
        self, mat1: Given, mat2: Given, *, beta: builtins.float = 1, alpha: builtins.float = 1
    ) -> FunctionalTensor:
        """Return beta * input + alpha * (mat1 @ mat2)."""

    def all(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return whether all elements along dims (None: all) are true."""

    def amax(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return the largest element along dims (None: all)."""

    def amin(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return the smallest element along dims (None: all)."""

    def any(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return whether any element along dims (None: all) is true."""

    def arccos(self) -> FunctionalTensor:
        """Return the inverse cosine of each element, in radians."""

    def arccosh(self) -> FunctionalTensor:
        """Return the inverse hyperbolic cosine of each element."""

    def arcsin(self) -> FunctionalTensor:
        """Return the inverse sine of each element, in radians."""

    def arcsinh(self) -> FunctionalTensor:
        """Return the inverse hyperbolic sine of each element."""

    def arctan(self) -> FunctionalTensor:
        """Return the inverse tangent of each element, in radians."""

    def arctan2(self, other: Given) -> FunctionalTensor:
        """Return the angle of the point (other, input) from -pi to pi, in radians. The sign of a zero does not
        count.
        """

    def arctanh(self) -> FunctionalTensor:
        """Return the inverse hyperbolic tangent of each element."""

    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return the index of the largest element along a dim, or among all (None); the first of equal ones, as
        int64.
        """

    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return the index of the smallest element along a dim, or among all (None); the first of equal ones, as
        int64.
        """

    def argsort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> FunctionalTensor:
        """Return the indices that sort the elements along a dim."""

    def argwhere(self) -> FunctionalTensor:
        """Return the indices of elements that are not 0, a row each."""

    def as_strided(
        self, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int = 0
    ) -> FunctionalTensor:
        """Read the elements of a tensor, row by row, with other sizes and strides (in elements)."""

    def asin(self) -> FunctionalTensor:
        """Return the inverse sine of each element, in radians."""

    def asinh(self) -> FunctionalTensor:
        """Return the inverse hyperbolic sine of each element."""

    def atan(self) -> FunctionalTensor:
        """Return the inverse tangent of each element, in radians."""

    def atan2(self, other: Given) -> FunctionalTensor:
        """Return the angle of the point (other, input) from -pi to pi, in radians. The sign of a zero does not
        count.
        """

    def atanh(self) -> FunctionalTensor:
        """Return the inverse hyperbolic tangent of each element."""

    def avg_pool1d(
        self,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        ceil_mode: builtins.bool = False,
        count_include_pad: builtins.bool = True,
        divisor_override: builtins.int | None = None,
    ) -> FunctionalTensor:
        """Return the mean of each window in signals."""

    def avg_pool2d(
        self,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        ceil_mode: builtins.bool = False,
        count_include_pad: builtins.bool = True,
        divisor_override: builtins.int | None = None,
    ) -> FunctionalTensor:
        """Return the mean of each window in pictures."""

    def avg_pool3d(
        self,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        ceil_mode: builtins.bool = False,
        count_include_pad: builtins.bool = True,
        divisor_override: builtins.int | None = None,
    ) -> FunctionalTensor:
        """Return the mean of each window in volumes."""

    def baddbmm(
        self, batch1: Given, batch2: Given, *, beta: builtins.float = 1, alpha: builtins.float = 1
    ) -> FunctionalTensor:
        """Return beta * input + alpha * (batch1 @ batch2), for each matrix of a stack. Sentis' AddBMM is this."""

    def batch_norm(
        self,
        running_mean: Given,
        running_var: Given,
        weight: Given | None = None,
        bias: Given | None = None,
        training: builtins.bool = False,
        momentum: builtins.float = 0.1,
        eps: builtins.float = 1e-05,
    ) -> FunctionalTensor:
        """Normalise each channel (dim 1) by known means and variances: (x - mean) / sqrt(var + eps) * weight + bias."""

    def bernoulli(self, *, dtype: DType = None, seed: Seed = None) -> FunctionalTensor:
        """Draw 1 with the probability that the input gives, and 0 otherwise."""

    def bitwise_and(self, other: Given) -> FunctionalTensor:
        """Join the bits of each two integers, or each two bools, by `and`."""

    def bitwise_left_shift(self, other: Given) -> FunctionalTensor:
        """Move the bits of each integer up by `other` places."""

    def bitwise_not(self) -> FunctionalTensor:
        """Return integers with all bits turned, and bools negated."""

    def bitwise_or(self, other: Given) -> FunctionalTensor:
        """Join the bits of each two integers, or each two bools, by `or`."""

    def bitwise_right_shift(self, other: Given) -> FunctionalTensor:
        """Move the bits of each integer down by `other` places."""

    def bitwise_xor(self, other: Given) -> FunctionalTensor:
        """Join the bits of each two integers, or each two bools, by `xor`."""

    def bmm(self, mat2: Given) -> FunctionalTensor:
        """Return the products of two stacks of matrices."""

    def bool(self) -> FunctionalTensor:
        """Return the input in bool."""

    def broadcast_to(self, shape: Sizes) -> FunctionalTensor:
        """Repeat dims of size 1, and new dims in front, so that the shape is reached. -1 keeps a dim."""

    def ceil(self) -> FunctionalTensor:
        """Round each element up."""

    def celu(self, alpha: builtins.float = 1.0) -> FunctionalTensor:
        """Return max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""

    def channel_shuffle(self, groups: builtins.int) -> FunctionalTensor:
        """Take the channels of each group in turn."""

    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[FunctionalTensor, ...]:
        """Cut a dim into pieces of equal size, the last of which may be smaller, and of which there may be fewer."""

    def clamp(self, min: Given | None = None, max: Given | None = None) -> FunctionalTensor:
        """Limit each element to min..max, which are numbers or tensors; None is no limit."""

    def clip(self, min: Given | None = None, max: Given | None = None) -> FunctionalTensor:
        """Limit each element to min..max, which are numbers or tensors; None is no limit."""

    def clone(self) -> FunctionalTensor:
        """Return the input: values of a model never change, so there is nothing to copy."""

    def conv1d(
        self,
        weight: Given,
        bias: Given | None = None,
        stride: Extent = 1,
        padding: Extent | str = 0,
        dilation: Extent = 1,
        groups: builtins.int = 1,
    ) -> FunctionalTensor:
        """Convolve signals: `weight` is (outputs, inputs / groups, kernel)."""

    def conv2d(
        self,
        weight: Given,
        bias: Given | None = None,
        stride: Extent = 1,
        padding: Extent | str = 0,
        dilation: Extent = 1,
        groups: builtins.int = 1,
    ) -> FunctionalTensor:
        """Convolve pictures: `weight` is (outputs, inputs / groups, kernel)."""

    def conv3d(
        self,
        weight: Given,
        bias: Given | None = None,
        stride: Extent = 1,
        padding: Extent | str = 0,
        dilation: Extent = 1,
        groups: builtins.int = 1,
    ) -> FunctionalTensor:
        """Convolve volumes: `weight` is (outputs, inputs / groups, kernel)."""

    def conv_transpose1d(
        self,
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
        self,
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
        self,
        weight: Given,
        bias: Given | None = None,
        stride: Extent = 1,
        padding: Extent = 0,
        output_padding: Extent = 0,
        groups: builtins.int = 1,
        dilation: Extent = 1,
    ) -> FunctionalTensor:
        """Convolve volumes transposed: `weight` is (inputs, outputs / groups, kernel)."""

    def cos(self) -> FunctionalTensor:
        """Return the cosine of each element, in radians."""

    def cosh(self) -> FunctionalTensor:
        """Return the hyperbolic cosine of each element."""

    def count_nonzero(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return the number of elements along dims (None: all) that are not 0, as int64 (`keepdim` is not
        PyTorch's).
        """

    def cumprod(self, dim: builtins.int, *, dtype: DType = None) -> FunctionalTensor:
        """Return running products along a dim."""

    def cumsum(self, dim: builtins.int, *, dtype: DType = None) -> FunctionalTensor:
        """Return running sums along a dim."""

    def deg2rad(self) -> FunctionalTensor:
        """Return degrees as radians."""

    def det(self) -> FunctionalTensor:
        """Return the determinants of square matrices."""

    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> FunctionalTensor:
        """Return a diagonal of the matrices in two dims, as the last dim."""

    def div(self, other: Given, *, rounding_mode: Literal["trunc", "floor"] | None = None) -> FunctionalTensor:
        """Return input / other; integers give float32 without a rounding mode."""

    def divide(self, other: Given, *, rounding_mode: Literal["trunc", "floor"] | None = None) -> FunctionalTensor:
        """Return input / other; integers give float32 without a rounding mode."""

    def dot(self, tensor: Given) -> FunctionalTensor:
        """Return the product of two vectors: one number."""

    def double(self) -> FunctionalTensor:
        """Return the input in float64."""

    def dropout(self, p: builtins.float = 0.5, training: builtins.bool = False) -> FunctionalTensor:
        """Return the input: models here do not train, so `training` is False unless given, and True is an error."""

    def elu(self, alpha: builtins.float = 1.0) -> FunctionalTensor:
        """Return x, and alpha * (exp(x) - 1) for negative x."""

    def embedding(self, weight: Given, padding_idx: builtins.int | None = None) -> FunctionalTensor:
        """Return the rows of a table at indices. `padding_idx` matters only to training."""

    def eq(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` equals `other`."""

    def equals(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` equals `other`."""

    def erf(self) -> FunctionalTensor:
        """Return the error function of each element."""

    def exp(self) -> FunctionalTensor:
        """Return e to the power of each element."""

    def exp2(self) -> FunctionalTensor:
        """Return 2 to the power of each element."""

    def expand(self, *sizes: Any) -> FunctionalTensor:
        """Repeat dims of size 1, and new dims in front, so that the sizes are reached. -1 keeps a dim."""

    def expand_as(self, other: Given) -> FunctionalTensor:
        """Repeat dims of size 1 so that the shape of another tensor is reached."""

    def expm1(self) -> FunctionalTensor:
        """Return exp(x) - 1 of each element, exact for small x too."""

    def fix(self) -> FunctionalTensor:
        """Round each element towards zero."""

    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> FunctionalTensor:
        """Join the dims from start_dim to end_dim."""

    def flip(self, dims: builtins.int | Sequence[builtins.int]) -> FunctionalTensor:
        """Return dims in reverse."""

    def fliplr(self) -> FunctionalTensor:
        """Return the columns (dim 1) in reverse."""

    def flipud(self) -> FunctionalTensor:
        """Return the rows (dim 0) in reverse."""

    def float(self) -> FunctionalTensor:
        """Return the input in float32."""

    def float_power(self, exponent: Given) -> FunctionalTensor:
        """Return input to the power of exponent, in float32 (PyTorch: float64) unless one of them is float64."""

    def floor(self) -> FunctionalTensor:
        """Round each element down."""

    def floor_divide(self, other: Given) -> FunctionalTensor:
        """Return input / other, rounded down. Integers stay integers."""

    def fmod(self, other: Given) -> FunctionalTensor:
        """Return input modulo other, with the sign of `input`, as C's fmod does."""

    def fold(
        self, output_size: Extent, kernel_size: Extent, dilation: Extent = 1, padding: Extent = 0, stride: Extent = 1
    ) -> FunctionalTensor:
        """Add up columns of windows to pictures: (batch, c * kernel, windows) becomes (batch, c, height, width)."""

    def frac(self) -> FunctionalTensor:
        """Return the part of each element behind the point, with its sign."""

    def full_like(
        self, fill_value: builtins.float | builtins.int | builtins.bool, *, dtype: DType = None
    ) -> FunctionalTensor:
        """Return a tensor of one value, in the shape and the dtype of the input."""

    def gather(self, dim: builtins.int, index: Given) -> FunctionalTensor:
        """Return the elements at indices along a dim; the result has the shape of the index."""

    def ge(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` is greater than `other`, or equal."""

    def gelu(self, approximate: Literal["none", "tanh"] = "none") -> FunctionalTensor:
        """Return x * the normal distribution's share below x."""

    def glu(self, dim: builtins.int = -1) -> FunctionalTensor:
        """Return the first half of a dim times the sigmoid of its second half."""

    def greater(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` is greater than `other`."""

    def greater_equal(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` is greater than `other`, or equal."""

    def grid_sample(
        self,
        grid: Given,
        mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
        padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
        align_corners: builtins.bool | None = None,
    ) -> FunctionalTensor:
        """Sample pictures or volumes at points of -1..1, x first."""

    def group_norm(
        self,
        num_groups: builtins.int,
        weight: Given | None = None,
        bias: Given | None = None,
        eps: builtins.float = 1e-05,
    ) -> FunctionalTensor:
        """Normalise groups of channels (dim 1) of each item of a batch by their mean and variance."""

    def gt(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` is greater than `other`."""

    def half(self) -> FunctionalTensor:
        """Return the input in float16."""

    def hardshrink(self, lambd: builtins.float = 0.5) -> FunctionalTensor:
        """Return x, and 0 for x from -lambd to lambd."""

    def hardsigmoid(self) -> FunctionalTensor:
        """Return clamp(x / 6 + 0.5, 0, 1) of each element."""

    def hardswish(self) -> FunctionalTensor:
        """Return x * clamp(x / 6 + 0.5, 0, 1) of each element."""

    def hardtanh(self, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> FunctionalTensor:
        """Limit each element to min_val..max_val."""

    def hypot(self, other: Given) -> FunctionalTensor:
        """Return sqrt(input² + other²)."""

    def index_add(
        self, dim: builtins.int, index: Given, source: Given, *, alpha: builtins.float = 1
    ) -> FunctionalTensor:
        """Add alpha times the slices of `source` at a row of indices along a dim."""

    def index_select(self, dim: builtins.int, index: Given) -> FunctionalTensor:
        """Return the slices at a row of indices along a dim."""

    def inner(self, other: Given) -> FunctionalTensor:
        """Return the sums of products along the last dims of both."""

    def instance_norm(
        self,
        running_mean: Given | None = None,
        running_var: Given | None = None,
        weight: Given | None = None,
        bias: Given | None = None,
        use_input_stats: builtins.bool = True,
        momentum: builtins.float = 0.1,
        eps: builtins.float = 1e-05,
    ) -> FunctionalTensor:
        """Normalise each channel (dim 1) of each item of a batch by its own mean and variance."""

    def int(self) -> FunctionalTensor:
        """Return the input in int32."""

    def interpolate(
        self,
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

    def isfinite(self) -> FunctionalTensor:
        """Return for each element whether it is a finite number."""

    def isinf(self) -> FunctionalTensor:
        """Return for each element whether it is infinite."""

    def isnan(self) -> FunctionalTensor:
        """Return for each element whether it is NaN."""

    def layer_norm(
        self,
        normalized_shape: builtins.int | Sequence[builtins.int],
        weight: Given | None = None,
        bias: Given | None = None,
        eps: builtins.float = 1e-05,
    ) -> FunctionalTensor:
        """Normalise the last dims by their mean and variance."""

    def le(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` is less than `other`, or equal."""

    def leaky_relu(self, negative_slope: builtins.float = 0.01) -> FunctionalTensor:
        """Return x, and negative_slope * x for negative x."""

    def lerp(self, end: Given, weight: Given) -> FunctionalTensor:
        """Return input + weight * (end - input)."""

    def less(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` is less than `other`."""

    def less_equal(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` is less than `other`, or equal."""

    def linear(self, weight: Given, bias: Given | None = None) -> FunctionalTensor:
        """Return input @ weight.T + bias; the weight is (outputs, inputs)."""

    def local_response_norm(
        self, size: builtins.int, alpha: builtins.float = 0.0001, beta: builtins.float = 0.75, k: builtins.float = 1.0
    ) -> FunctionalTensor:
        """Divide by (k + alpha * mean square of `size` neighbouring channels) ** beta."""

    def log(self) -> FunctionalTensor:
        """Return the natural logarithm of each element."""

    def log10(self) -> FunctionalTensor:
        """Return the logarithm of each element to base 10."""

    def log1p(self) -> FunctionalTensor:
        """Return log(1 + x) of each element, exact for small x too (Kahan's correction of the rounding of 1 + x)."""

    def log2(self) -> FunctionalTensor:
        """Return the logarithm of each element to base 2."""

    def log_softmax(self, dim: builtins.int = -1, *, dtype: DType = None) -> FunctionalTensor:
        """Return the logarithm of softmax along a dim."""

    def logaddexp(self, other: Given) -> FunctionalTensor:
        """Return log(exp(input) + exp(other)) without overflow."""

    def logical_and(self, other: Given) -> FunctionalTensor:
        """Join the truths of each two elements by `and`; 0 is false."""

    def logical_not(self) -> FunctionalTensor:
        """Return for each element whether it is false, or 0."""

    def logical_or(self, other: Given) -> FunctionalTensor:
        """Join the truths of each two elements by `or`; 0 is false."""

    def logical_xor(self, other: Given) -> FunctionalTensor:
        """Join the truths of each two elements by `xor`; 0 is false."""

    def logsigmoid(self) -> FunctionalTensor:
        """Return log(sigmoid(x)) of each element."""

    def logsumexp(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return log(sum(exp(x))) along dims (None: all)."""

    def long(self) -> FunctionalTensor:
        """Return the input in int64."""

    def lp_pool1d(
        self,
        norm_type: builtins.float,
        kernel_size: Extent,
        stride: Extent | None = None,
        ceil_mode: builtins.bool = False,
    ) -> FunctionalTensor:
        """Return the p-norm of each window in signals, of absolute values (PyTorch: with their signs)."""

    def lp_pool2d(
        self,
        norm_type: builtins.float,
        kernel_size: Extent,
        stride: Extent | None = None,
        ceil_mode: builtins.bool = False,
    ) -> FunctionalTensor:
        """Return the p-norm of each window in pictures, of absolute values (PyTorch: with their signs)."""

    def lp_pool3d(
        self,
        norm_type: builtins.float,
        kernel_size: Extent,
        stride: Extent | None = None,
        ceil_mode: builtins.bool = False,
    ) -> FunctionalTensor:
        """Return the p-norm of each window in volumes, of absolute values (PyTorch: with their signs)."""

    def lt(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` is less than `other`."""

    def masked_fill(self, mask: Given, value: Given) -> FunctionalTensor:
        """Replace the elements where a mask holds by a value."""

    def masked_select(self, mask: Given) -> FunctionalTensor:
        """Return the elements where a mask holds, in one row. Its length is known when the model runs."""

    def matmul(self, other: Given) -> FunctionalTensor:
        """Return the matrix product; dims ahead of the last two broadcast, and a row counts as a vector."""

    def max(self, dim: builtins.int | Given | None = None, keepdim: builtins.bool = False) -> Any:
        """Return the largest element of all; along a dim (a number) values and indices; or `maximum` with a tensor."""

    def max_pool1d(
        self,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        dilation: Extent = 1,
        ceil_mode: builtins.bool = False,
        return_indices: builtins.bool = False,
    ) -> Any:
        """Return the largest element of each window in signals, and its index in its plane if asked."""

    def max_pool2d(
        self,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        dilation: Extent = 1,
        ceil_mode: builtins.bool = False,
        return_indices: builtins.bool = False,
    ) -> Any:
        """Return the largest element of each window in pictures, and its index in its plane if asked."""

    def max_pool3d(
        self,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        dilation: Extent = 1,
        ceil_mode: builtins.bool = False,
        return_indices: builtins.bool = False,
    ) -> Any:
        """Return the largest element of each window in volumes, and its index in its plane if asked."""

    def max_unpool1d(
        self,
        indices: Given,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        output_size: Sequence[builtins.int] | None = None,
    ) -> FunctionalTensor:
        """Put the results of a max pool in signals back to their places; the rest is 0."""

    def max_unpool2d(
        self,
        indices: Given,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        output_size: Sequence[builtins.int] | None = None,
    ) -> FunctionalTensor:
        """Put the results of a max pool in pictures back to their places; the rest is 0."""

    def max_unpool3d(
        self,
        indices: Given,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        output_size: Sequence[builtins.int] | None = None,
    ) -> FunctionalTensor:
        """Put the results of a max pool in volumes back to their places; the rest is 0."""

    def maximum(self, other: Given) -> FunctionalTensor:
        """Return the larger one of each two elements."""

    def mean(self, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None) -> FunctionalTensor:
        """Return the mean along dims (None: all)."""

    def min(self, dim: builtins.int | Given | None = None, keepdim: builtins.bool = False) -> Any:
        """Return the smallest element of all; along a dim (a number) values and indices; or `minimum` with a tensor."""

    def minimum(self, other: Given) -> FunctionalTensor:
        """Return the smaller one of each two elements."""

    def mish(self) -> FunctionalTensor:
        """Return x * tanh(softplus(x)) of each element."""

    def mm(self, mat2: Given) -> FunctionalTensor:
        """Return the product of two matrices."""

    def moveaxis(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> FunctionalTensor:
        """Move dims to other places; the others keep their order."""

    def movedim(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> FunctionalTensor:
        """Move dims to other places; the others keep their order."""

    def mul(self, other: Given) -> FunctionalTensor:
        """Return input * other. Bools are joined by `and`."""

    def multinomial(
        self, num_samples: builtins.int, replacement: builtins.bool = False, *, seed: Seed = None
    ) -> FunctionalTensor:
        """Draw indices by rows of weights (a row, or (rows, classes)); without replacement no index comes twice."""

    def multiply(self, other: Given) -> FunctionalTensor:
        """Return input * other. Bools are joined by `and`."""

    def mv(self, vec: Given) -> FunctionalTensor:
        """Return the product of a matrix and a vector."""

    def nan_to_num(
        self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None
    ) -> FunctionalTensor:
        """Replace NaN and infinities by numbers; infinities become the largest numbers of the dtype unless given."""

    def narrow(self, dim: builtins.int, start: Size, length: Size) -> FunctionalTensor:
        """Return `length` elements of a dim from `start` on. Both may be tensors of one integer."""

    def ne(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` and `other` differ."""

    def neg(self) -> FunctionalTensor:
        """Return each element with the other sign."""

    def negative(self) -> FunctionalTensor:
        """Return each element with the other sign."""

    def nonzero(self, *, as_tuple: builtins.bool = False) -> Any:
        """Return the indices of elements that are not 0, a row each; with `as_tuple`, a row for each dim."""

    def norm(
        self, p: builtins.float | str = "fro", dim: Dims = None, keepdim: builtins.bool = False
    ) -> FunctionalTensor:
        """Return the p-norm along dims (None: all); "fro" is 2."""

    def normalize(
        self, p: builtins.float = 2.0, dim: builtins.int = 1, eps: builtins.float = 1e-12
    ) -> FunctionalTensor:
        """Divide by the p-norm along a dim, or by eps where the norm is smaller."""

    def not_equal(self, other: Given) -> FunctionalTensor:
        """Return for each element whether `input` and `other` differ."""

    def numel(self) -> FunctionalTensor:
        """Return the number of elements as an int64 without dims (PyTorch: a number of Python)."""

    def ones_like(self, *, dtype: DType = None) -> FunctionalTensor:
        """Return ones in the shape and the dtype of the input."""

    def outer(self, vec2: Given) -> FunctionalTensor:
        """Return the products of each element of one vector with each of another."""

    def pad(
        self,
        pad: Sequence[builtins.int],
        mode: Literal["constant", "reflect", "replicate", "circular"] = "constant",
        value: builtins.float | None = None,
    ) -> FunctionalTensor:
        """Add elements around a tensor: `pad` is (before, after) of the last dim, then of the dim before it, and so
        on.

        Negative numbers remove elements.
        """

    def permute(self, *dims: Any) -> FunctionalTensor:
        """Return the dims in another order."""

    def pixel_shuffle(self, upscale_factor: builtins.int) -> FunctionalTensor:
        """Turn channels into pixels: (batch, c * r², h, w) becomes (batch, c, h * r, w * r)."""

    def pixel_unshuffle(self, downscale_factor: builtins.int) -> FunctionalTensor:
        """Turn pixels into channels: (batch, c, h * r, w * r) becomes (batch, c * r², h, w)."""

    def positive(self) -> FunctionalTensor:
        """Return the input."""

    def pow(self, exponent: Given) -> FunctionalTensor:
        """Return input to the power of exponent."""

    def prelu(self, weight: Given) -> FunctionalTensor:
        """Return x, and weight * x for negative x. `weight` has one number, or one for each channel (dim 1)."""

    def prod(self, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None) -> FunctionalTensor:
        """Return the product along dims (None: all). Integers and bools give int64."""

    def rad2deg(self) -> FunctionalTensor:
        """Return radians as degrees."""

    def rand_like(self, *, dtype: DType = None, seed: Seed = None) -> FunctionalTensor:
        """Draw numbers from 0 to below 1, in the shape and the dtype of the input."""

    def randint_like(
        self, low: builtins.int, high: builtins.int | None = None, *, dtype: DType = None, seed: Seed = None
    ) -> FunctionalTensor:
        """Draw whole numbers from low to below high, in the shape and the dtype of the input."""

    def randn_like(self, *, dtype: DType = None, seed: Seed = None) -> FunctionalTensor:
        """Draw numbers of the standard normal distribution, in the shape and the dtype of the input."""

    def random_choice(self, size: Sizes, p: Given | None = None, *, seed: Seed = None) -> FunctionalTensor:
        """Draw elements of the flattened input, with replacement: all alike, or by probabilities `p`."""

    def ravel(self) -> FunctionalTensor:
        """Return all elements in one row."""

    def reciprocal(self) -> FunctionalTensor:
        """Return 1 / x of each element."""

    def reduce_l1(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return the sum of absolute values along dims (None: all)."""

    def reduce_l2(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return the square root of the sum of squares along dims (None: all)."""

    def reduce_log_sum_exp(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return log(sum(exp(x))) along dims (None: all)."""

    def reduce_max(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return the largest element along dims (None: all)."""

    def reduce_mean(self, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None) -> FunctionalTensor:
        """Return the mean along dims (None: all)."""

    def reduce_min(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return the smallest element along dims (None: all)."""

    def reduce_prod(self, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None) -> FunctionalTensor:
        """Return the product along dims (None: all). Integers and bools give int64."""

    def reduce_sum(self, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None) -> FunctionalTensor:
        """Return the sum along dims (None: all). Integers and bools give int64."""

    def reduce_sum_square(self, dim: Dims = None, keepdim: builtins.bool = False) -> FunctionalTensor:
        """Return the sum of squares along dims (None: all)."""

    def reduce_variance(
        self, dim: Dims = None, keepdim: builtins.bool = False, correction: builtins.float = 1.0
    ) -> FunctionalTensor:
        """Return the variance along dims (None: all), with Sentis' order of arguments."""

    def relu(self) -> FunctionalTensor:
        """Return each element, and 0 for negative ones."""

    def relu6(self) -> FunctionalTensor:
        """Return each element limited to 0..6."""

    def remainder(self, other: Given) -> FunctionalTensor:
        """Return input modulo other, with the sign of `other`, as Python's % does."""

    def repeat(self, *repeats: Any) -> FunctionalTensor:
        """Repeat the whole tensor along its dims: a count for each dim, and more of them for new dims in front."""

    def repeat_interleave(self, repeats: builtins.int, dim: builtins.int | None = None) -> FunctionalTensor:
        """Repeat each element, or each slice along a dim, a number of times."""

    def reshape(self, *shape: Any) -> FunctionalTensor:
        """Return the elements in another shape. -1 stands for the rest, a name for the size of that dim of the
        input.
        """

    def rms_norm(
        self,
        normalized_shape: builtins.int | Sequence[builtins.int],
        weight: Given | None = None,
        eps: builtins.float | None = None,
    ) -> FunctionalTensor:
        """Divide the last dims by the root of their mean square; `eps` is the dtype's precision unless given."""

    def roi_align(
        self,
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
        self, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None = None
    ) -> FunctionalTensor:
        """Move elements along dims; those beyond the end come back at the begin."""

    def round(self, *, decimals: builtins.int = 0) -> FunctionalTensor:
        """Round each element to a number of decimals; halves go to the even neighbour."""

    def rsqrt(self) -> FunctionalTensor:
        """Return 1 / sqrt(x) of each element."""

    def scatter(
        self, dim: builtins.int, index: Given, src: Given, *, reduce: Literal["add", "multiply"] | None = None
    ) -> FunctionalTensor:
        """Replace the elements at indices along a dim by those of `src`, or by one number; `reduce` joins them."""

    def scatter_add(self, dim: builtins.int, index: Given, src: Given) -> FunctionalTensor:
        """Add the elements of `src` at indices along a dim."""

    def scatter_reduce(
        self,
        dim: builtins.int,
        index: Given,
        src: Given,
        reduce: Literal["sum", "prod", "mean", "amax", "amin"],
        *,
        include_self: builtins.bool = True,
    ) -> FunctionalTensor:
        """Join the elements of `src` at indices along a dim, with or without the input's own elements."""

    def select(self, dim: builtins.int, index: Size) -> FunctionalTensor:
        """Return the slice at one index of a dim, without that dim. The index may be a tensor of one integer."""

    def select_scatter(self, src: Given, dim: builtins.int, index: builtins.int) -> FunctionalTensor:
        """Replace the slice at one index of a dim by `src`, which does not have that dim."""

    def selu(self) -> FunctionalTensor:
        """Return the scaled exponential linear unit of each element."""

    def sigmoid(self) -> FunctionalTensor:
        """Return 1 / (1 + exp(-x)) of each element."""

    def sign(self) -> FunctionalTensor:
        """Return -1, 0 or 1: the sign of each element."""

    def silu(self) -> FunctionalTensor:
        """Return x * sigmoid(x) of each element."""

    def sin(self) -> FunctionalTensor:
        """Return the sine of each element, in radians."""

    def sinh(self) -> FunctionalTensor:
        """Return the hyperbolic sine of each element."""

    def size(self, dim: builtins.int | None = None) -> FunctionalTensor:
        """Return the sizes of all dims as int64, or of one dim as an int64 without dims (PyTorch: numbers of
        Python).
        """

    def slice_scatter(
        self,
        src: Given,
        dim: builtins.int = 0,
        start: builtins.int | None = None,
        end: builtins.int | None = None,
        step: builtins.int = 1,
    ) -> FunctionalTensor:
        """Replace the elements start..end of a dim, `step` apart, by those of `src`."""

    def softmax(self, dim: builtins.int = -1, *, dtype: DType = None) -> FunctionalTensor:
        """Return exp(x) / sum(exp(x)) along a dim."""

    def softmin(self, dim: builtins.int = -1) -> FunctionalTensor:
        """Return softmax of -x along a dim."""

    def softplus(self, beta: builtins.float = 1.0, threshold: builtins.float = 20.0) -> FunctionalTensor:
        """Return log(1 + exp(beta * x)) / beta, and x where beta * x is above the threshold."""

    def softshrink(self, lambd: builtins.float = 0.5) -> FunctionalTensor:
        """Return x moved by lambd towards 0, and 0 for x from -lambd to lambd."""

    def softsign(self) -> FunctionalTensor:
        """Return x / (1 + |x|) of each element."""

    def sort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> ValuesAndIndices:
        """Return the elements along a dim in order, and their indices; equal elements keep their order."""

    def split(
        self, split_size_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
    ) -> tuple[FunctionalTensor, ...]:
        """Cut a dim into pieces of one size, the last of which may be smaller, or of the given sizes."""

    def sqrt(self) -> FunctionalTensor:
        """Return the square root of each element."""

    def square(self) -> FunctionalTensor:
        """Return x * x of each element; bools give int64."""

    def squeeze(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> FunctionalTensor:
        """Remove the dims of size 1, or those among the given dims."""

    def std(
        self, dim: Dims = None, *, correction: builtins.float = 1, keepdim: builtins.bool = False
    ) -> FunctionalTensor:
        """Return the standard deviation along dims (None: all)."""

    def std_mean(
        self, dim: Dims = None, *, correction: builtins.float = 1, keepdim: builtins.bool = False
    ) -> tuple[FunctionalTensor, FunctionalTensor]:
        """Return the standard deviation and the mean along dims (None: all)."""

    def stft(
        self,
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

    def sub(self, other: Given, *, alpha: builtins.float = 1) -> FunctionalTensor:
        """Return input - alpha * other."""

    def subtract(self, other: Given, *, alpha: builtins.float = 1) -> FunctionalTensor:
        """Return input - alpha * other."""

    def sum(self, dim: Dims = None, keepdim: builtins.bool = False, *, dtype: DType = None) -> FunctionalTensor:
        """Return the sum along dims (None: all). Integers and bools give int64."""

    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> FunctionalTensor:
        """Exchange two dims."""

    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> FunctionalTensor:
        """Exchange two dims."""

    def t(self) -> FunctionalTensor:
        """Exchange the two dims of a matrix; a tensor with fewer dims stays."""

    def take(self, index: Given) -> FunctionalTensor:
        """Return the elements at indices of the flattened input; the result has the shape of the index."""

    def take_along_dim(self, indices: Given, dim: builtins.int | None = None) -> FunctionalTensor:
        """Return the elements at indices along a dim, or in the flattened input; the other dims broadcast."""

    def tan(self) -> FunctionalTensor:
        """Return the tangent of each element, in radians."""

    def tanh(self) -> FunctionalTensor:
        """Return the hyperbolic tangent of each element."""

    def tanhshrink(self) -> FunctionalTensor:
        """Return x - tanh(x) of each element."""

    def threshold(self, threshold: builtins.float, value: builtins.float) -> FunctionalTensor:
        """Return each element above the threshold, and `value` for the others."""

    def tile(self, *dims: Any) -> FunctionalTensor:
        """Repeat the whole tensor along its last dims; missing counts are 1."""

    def to(self, dtype: DataType | str) -> FunctionalTensor:
        """Return the input in another dtype."""

    def topk(
        self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True
    ) -> ValuesAndIndices:
        """Return the k largest (or smallest) elements along a dim in order, and their indices."""

    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> FunctionalTensor:
        """Exchange two dims."""

    def tril(self, diagonal: builtins.int = 0) -> FunctionalTensor:
        """Return the elements of matrices on and below a diagonal, and 0 above it."""

    def triu(self, diagonal: builtins.int = 0) -> FunctionalTensor:
        """Return the elements of matrices on and above a diagonal, and 0 below it."""

    def true_divide(self, other: Given, *, rounding_mode: Literal["trunc", "floor"] | None = None) -> FunctionalTensor:
        """Return input / other; integers give float32 without a rounding mode."""

    def trunc(self) -> FunctionalTensor:
        """Round each element towards zero."""

    def type(self, dtype: DataType | str) -> FunctionalTensor:
        """Return the input in another dtype."""

    def type_as(self, other: FunctionalTensor) -> FunctionalTensor:
        """Return the input in the dtype of another tensor."""

    def unbind(self, dim: builtins.int = 0) -> tuple[FunctionalTensor, ...]:
        """Return the slices along a dim, without that dim."""

    def unflatten(self, dim: builtins.int, sizes: Sizes) -> FunctionalTensor:
        """Split one dim into several; one size may be -1."""

    def unfold(
        self, kernel_size: Extent, dilation: Extent = 1, padding: Extent = 0, stride: Extent = 1
    ) -> FunctionalTensor:
        """Return the windows of pictures as columns: (batch, c * kernel, windows). NaN spreads in a window."""

    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Any:
        """Return the different elements (or slices along a dim), and if asked for, where each went and how often it
        is.
        """

    def unsqueeze(self, dim: builtins.int) -> FunctionalTensor:
        """Insert a dim of size 1."""

    def upsample(
        self,
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
        self, dim: Dims = None, *, correction: builtins.float = 1, keepdim: builtins.bool = False
    ) -> FunctionalTensor:
        """Return the variance along dims (None: all): the sum of squared distances / (count - correction)."""

    def var_mean(
        self, dim: Dims = None, *, correction: builtins.float = 1, keepdim: builtins.bool = False
    ) -> tuple[FunctionalTensor, FunctionalTensor]:
        """Return the variance and the mean along dims (None: all)."""

    def view(self, *shape: Any) -> FunctionalTensor:
        """Return the elements in another shape. -1 stands for the rest, a name for the size of that dim of the
        input.
        """

    def zeros_like(self, *, dtype: DType = None) -> FunctionalTensor:
        """Return zeros in the shape and the dtype of the input."""
