"""The functions of Unity's Sentis (com.unity.ai.inference 2.6, class Functional), and what they are called here."""

from __future__ import annotations

import re

_SAME = """
Abs Acos Acosh Add Asin Asinh Atan Atanh Atan2 BatchNorm Bernoulli BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
BlackmanWindow BroadcastTo Ceil Celu Clamp Clone Concat Constant Cos Cosh Diagonal Div Einsum Elu Equals Erf Exp Expm1
Flip Float FloatPower Floor FloorDivide Forward Frac Full FullLike Gather Gelu Greater GreaterEqual GridSample
HammingWindow HannWindow IndexSelect InstanceNorm Int Interpolate LayerNorm LeakyRelu Lerp Less LessEqual
LocalResponseNorm Log Log10 Log2 LogSoftmax LogicalAnd LogicalNot LogicalOr LogicalXor Max Min Mish Mul Multinomial
Narrow Neg Normal NormalLike NotEqual OneHot Ones OnesLike Pad Permute PixelShuffle PixelUnshuffle Positive Pow Rand
RandLike RandomChoice Ravel Reciprocal ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
ReduceSum ReduceSumSquare ReduceVariance Relu Relu6 Remainder Reshape Round Scatter ScatterAdd Select SelectScatter Selu
Sigmoid Sign Sin Sinh SliceScatter Softmax Softplus Softsign Split Sqrt Square Squeeze Stack Sub Take Tan Tanh Tile
Transpose Trunc Type Unsqueeze Where Zeros ZerosLike AsStrided
"""  # these are in snake_case

_OTHER = {
    "ARange": "arange",
    "AddBMM": "baddbmm",
    "ArgMax": "argmax",
    "ArgMin": "argmin",
    "AtLeast1D": "atleast_1d",
    "AtLeast2D": "atleast_2d",
    "AtLeast3D": "atleast_3d",
    **{
        f"{kind}{rank}D": f"{ours}{rank}d"
        for rank in (1, 2, 3)
        for kind, ours in (
            ("AvgPool", "avg_pool"),
            ("Conv", "conv"),
            ("ConvTranspose", "conv_transpose"),
            ("MaxPool", "max_pool"),
        )
    },
    "CumSum": "cumsum",
    "Deg2Rad": "deg2rad",
    "FMod": "fmod",
    "FlipLR": "fliplr",
    "FlipUD": "flipud",
    "ForwardWithCopy": "forward",
    "HardSigmoid": "hardsigmoid",
    "HardSwish": "hardswish",
    "IsFinite": "isfinite",
    "IsInf": "isinf",
    "IsNaN": "isnan",
    "LinSpace": "linspace",
    "Log1P": "log1p",
    "LogAddExp": "logaddexp",
    "LogSpace": "logspace",
    "MatMul": "matmul",
    "MoveDim": "movedim",
    "NMS": "nms",
    "NonZero": "nonzero",
    "PRelu": "prelu",
    "RSqrt": "rsqrt",
    "Rad2Deg": "rad2deg",
    "RandInt": "randint",
    "RandIntLike": "randint_like",
    "RandN": "randn",
    "RandNLike": "randn_like",
    "STFT": "stft",
    "Swish": "swish",
    "TopK": "topk",
    "TriL": "tril",
    "TriU": "triu",
}


def snake_case(name: str) -> str:
    """Return a name of capitalized words in snake_case."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


SENTIS: dict[str, str] = {**{name: snake_case(name) for name in _SAME.split()}, **_OTHER}
