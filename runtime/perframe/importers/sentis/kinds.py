"""The kinds of layers in .sentis files: their inputs and arguments in order, which the reader and the writer share.

A line is `Kind: inputs; arguments; outputs`. An input with ? may be absent, and `*` stands for any number of inputs. A
layer of ours takes an input with # as int64, and one with ! as bool: the file has int32 for both. An output with # or !
is cast to int32. An argument is `name:code`, then `@version` if older files lack it, and `=number` for its value there.
Inputs, arguments and kinds have the names of our layers and attributes where these exist.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from perframe.safety.records import dataclass
from perframe.tensor import DataType

OLDEST, NEWEST = 1, 8  # versions of the format

ENUMERATIONS = {
    "padding": ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"),
    "activation": ("", "Relu"),
    "reduction": ("none", "add", "mul", "max", "min"),
    "roi_mode": ("avg", "max"),
    "roi_space": ("output_half_pixel", "half_pixel"),
    "direction": ("forward", "reverse", "bidirectional"),
    "border": ("constant", "reflect", "edge", "symmetric", "wrap"),
    "sampling": ("nearest", "linear", "cubic"),
    "rounding": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "space": ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"),
    "outside": ("zeros", "border", "reflection"),
    "blocks": ("DCR", "CRD"),
}
ACTIVATIONS = (  # of recurrent layers
    *("Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh"),
    *("HardSigmoid", "Elu", "Softsign", "Softplus"),
)
DTYPES = (
    DataType.FLOAT32,
    DataType.INT32,
    DataType.FLOAT16,
    DataType.UINT8,
)  # by their numbers; the last two of constants
# argument codes: i int, f float, b bool, s text, I ints or None, F floats or None, t dtype, or an enumeration's name


@dataclass(frozen=True)
class KindInput:
    """An input of a kind. `form` is "#" where layers take int64, "!" where they take bool."""

    name: str
    is_optional: bool
    form: str


@dataclass(frozen=True)
class KindArgument:
    """An argument of a kind. Files before version `since` lack it; its value there is `default`."""

    name: str
    code: str
    since: int
    default: int | None


@dataclass(frozen=True)
class LayerKind:
    """A kind of layers. `outputs` has a form for each output: "#", "!", or "" for one that needs no cast."""

    name: str
    inputs: tuple[KindInput, ...]
    is_variadic: bool
    arguments: tuple[KindArgument, ...]
    outputs: tuple[str, ...]
    since: int

    def stored(self, version: int) -> tuple[KindArgument, ...]:
        """Return the arguments that a file of a version has."""
        return tuple(one for one in self.arguments if one.since <= version)


_FLOATS = "Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor HardSwish Log Reciprocal Round Sigmoid Sin Sinh"
_UNARY = f"{_FLOATS} Abs Gelu GeluFast Identity Neg Relu Relu6 Sign Softplus Softsign Sqrt Square Tan Tanh"
_BINARY = "Add Sub Mul Div Pow"
_COMPARISONS = "Equal Greater GreaterOrEqual Less LessOrEqual"
_REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
_TABLE = f"""
{_UNARY} GlobalAveragePool GlobalMaxPool: x
Mish@5 BitwiseNot@7 Expm1@7 Log1p@7 Log2@7 Log10@7 Rsqrt@7 Trunc@7: x
IsNaN: x;; !
Not: x!;; !
Swish: x; alpha:f@8=1
Celu Elu LeakyRelu ThresholdedRelu: x; alpha:f
HardSigmoid: x; alpha:f beta:f
Selu: x; alpha:f gamma:f
Shrink: x; bias:f lambd:f
HardTanh@7: x; low:f high:f
IsInf: x; detect_negative:b detect_positive:b; !
PRelu: x slope
Clip: x low? high?
Cast: x; to:t
CastLike: x like
ScalarMad: x; dtype:t scale:f shift:f int_scale:i int_shift:i
{_BINARY}: a b
And Or Xor: a! b!;; !
{_COMPARISONS}: a b;; !
NotEqual@7: a b;; !
Atan2@7 BitwiseAnd@7 BitwiseOr@7 BitwiseXor@7 FloorDiv@7 TruncDiv@7 BroadcastArgs@5: a b
Min Max Sum Mean: *
Mod: a b; fmod:b
Where: condition! a b
MatMul: a b
MatMul2D: a b; transA:b transB:b
Dense DenseBatched@3: x w b?; activation:activation
Einsum: *; equation:s
Conv: x w b?; auto_pad:padding dilations:I group:i pads:I strides:I kernel_shape:I activation:activation
ConvTranspose: x w b?; auto_pad:padding dilations:I@6 group:i@6=1 output_padding:I pads:I strides:I kernel_shape:I \
activation:activation
MaxPool AveragePool: x; kernel_shape:I strides:I pads:I auto_pad:padding
Resize: x by; scale_mode:i coordinate_transformation_mode:space mode:sampling nearest_mode:rounding axes:I
GridSample@2: x grid; mode:sampling padding_mode:outside align_corners:b
RoiAlign: x rois batch_indices#; mode:roi_mode output_height:i output_width:i sampling_ratio:i spatial_scale:f \
coordinate_transformation_mode:roi_space@5=0
DepthToSpace: x; blocksize:i mode:blocks
SpaceToDepth: x; blocksize:i
BatchNormalization: x scale bias mean variance; epsilon:f
ScaleBias: x scale bias
InstanceNormalization: x scale bias; epsilon:f
LayerNormalization: x scale bias?; epsilon:f
RMSNormalization@4: x scale; epsilon:f
LRN: x; alpha:f beta:f bias:f size:i
Softmax LogSoftmax Hardmax: x; axis:i
{" ".join(f"Reduce{name}" for name in _REDUCTIONS.split())}: x axes#?; keepdims:b noop_with_empty_axes:b
ReduceVariance@7: x axes#?; keepdims:b noop_with_empty_axes:b correction:f
ArgMax ArgMin: x; axis:i keepdims:b select_last_index:b; #
CumSum: x axis; reverse:b exclusive:b
Reshape: x shape#; allowzero:b
Flatten: x; axis:i
Transpose: x; perm:I
Squeeze: x axes#?
Unsqueeze: x axes#
Expand: x shape#
Tile: x repeats#
Concat: *; axis:i
Split: x split#?; axis:i num_outputs:i
Slice: x starts ends axes? steps?
Pad: x pads# value? axes#?; mode:border
Shape: x; start:i end:i; #
Size: x;; #
ConstantOfShape: shape#; dtype:t float:f int:i
Range: start limit delta
Gather GatherElements: x indices; axis:i
GatherND: x indices#; batch_dims:i
ScatterElements: x indices updates; axis:i reduction:reduction
ScatterND: x indices# updates; reduction:reduction
OneHot: indices depth values; axis:i allow_negative:b@5=1
TopK: x k#; axis:i largest:b sorted:b;  _ #
NonZero: x;; #
Compress: x condition!; has_axis:b axis:i
Trilu: x k#?; upper:i
NonMaxSuppression: boxes scores max_output_boxes_per_class#? iou_threshold? score_threshold?; center_point_box:i; #
Narrow: x dim start length
Select: x dim index
SliceSet: x values starts ends axes? steps?
MoveDim: x; source:I destination:I
Diagonal@7: x; offset:i dim1:i dim2:i
AsStrided@7: x shape strides offset
LSTM: x w r b? sequence_lens? initial_h? initial_c? p?; hidden_size:i direction:direction activations:I \
activation_alpha:F activation_beta:F clip:f input_forget:b layout:i; _ _ _
RandomNormal:; mean:f scale:f shape:I has_seed:b seed:i
RandomNormalLike: x; mean:f scale:f has_seed:b seed:i
RandomUniform:; low:f high:f shape:I has_seed:b seed:i
RandomUniformLike: x; low:f high:f has_seed:b seed:i
Bernoulli: x; dtype:t has_seed:b seed:i
Multinomial: x; sample_size:i has_seed:b seed:i
BlackmanWindow@7 HammingWindow@7 HannWindow@7: size; periodic:b
DFT@7: x dft_length? axis? matrix?; inverse:b onesided:b
STFT@7: signal frame_step window? frame_length? matrix?; onesided:b
MelWeightMatrix@7: num_mel_bins dft_length sample_rate lower_edge_hertz upper_edge_hertz
DequantizeUint8: x; scale:f zero_point:i
"""


@functools.cache
def kinds() -> Mapping[str, LayerKind]:
    """Return all kinds by name."""
    found: dict[str, LayerKind] = {}
    for line in _TABLE.strip().splitlines():
        names, _, rest = line.partition(":")
        inputs, arguments, outputs = (*(part.split() for part in rest.split(";")), [], [])[:3]
        given = tuple(_input(text) for text in inputs if text != "*")
        taken = tuple(_argument(text) for text in arguments)
        made = tuple(text.replace("_", "") for text in outputs) or ("",)
        for text in names.split():
            name, _, since = text.partition("@")
            found[name] = LayerKind(name, given, "*" in inputs, taken, made, int(since or 2))
    return found


def _input(text: str) -> KindInput:
    return KindInput(text.rstrip("?#!"), "?" in text, "#" if "#" in text else "!" if "!" in text else "")


def _argument(text: str) -> KindArgument:
    name, _, code = text.partition(":")
    code, _, default = code.partition("=")
    code, _, since = code.partition("@")
    return KindArgument(name, code, int(since or 1), int(default) if default else None)
