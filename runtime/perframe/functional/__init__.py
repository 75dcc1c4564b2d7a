"""Functions on functional tensors, named and used as in PyTorch; those of Unity's Sentis are all among them.

Each function whose first parameter is `input` is a method of functional tensors too (methods.py).
"""

from __future__ import annotations

# fmt: off
from perframe.functional.activations import (
    celu, dropout, elu, gelu, glu, hardshrink, hardsigmoid, hardswish, hardtanh, leaky_relu, log_softmax, logsigmoid,
    mish, prelu, relu, relu6, selu, silu, softmax, softmin, softplus, softshrink, softsign, swish, tanhshrink,
    threshold,
)
from perframe.functional.convolutions import (
    conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d,
)
from perframe.functional.detection import box_area, box_iou, nms, roi_align
from perframe.functional.drawing import (
    bernoulli, multinomial, normal, normal_like, rand, rand_like, randint, randint_like, randn, randn_like,
    random_choice,
)
from perframe.functional.elementwise import (
    abs_ as abs, absolute, add, ceil, clamp, clip, div, divide, erf, exp, exp2, expm1, fix, float_power, floor,
    floor_divide, fmod, frac, lerp, log, log10, log1p, log2, logaddexp, maximum, minimum, mul, multiply, neg,
    negative, positive, pow_ as pow, reciprocal, remainder, round_ as round, rsqrt, sigmoid, sign, sqrt, square, sub,
    subtract, true_divide, trunc,
)
from perframe.functional.gathering import (
    argwhere, embedding, gather, index_add, index_select, masked_fill, masked_select, nonzero, one_hot, scatter,
    scatter_add, scatter_reduce, select_scatter, slice_scatter, take, take_along_dim, unique,
)
from perframe.functional.logic import (
    bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, bool_ as bool, double,
    eq, equals, float_ as float, ge, greater, greater_equal, gt, half, int_ as int, isfinite, isinf, isnan, le, less,
    less_equal, logical_and, logical_not, logical_or, logical_xor, long, lt, nan_to_num, ne, not_equal, to, type_ as
    type, type_as, where,
)
from perframe.functional.making import (
    arange, as_tensor, blackman_window, constant, eye, full, full_like, hamming_window, hann_window, linspace,
    logspace, meshgrid, ones, ones_like, tensor, zeros, zeros_like,
)
from perframe.functional.methods import give_methods
from perframe.functional.models import apply, forward
from perframe.functional.moving import (
    atleast_1d, atleast_2d, atleast_3d, broadcast_to, expand, expand_as, flatten, moveaxis, movedim, numel, permute,
    ravel, repeat, repeat_interleave, reshape, size, squeeze, swapaxes, swapdims, t, tile, transpose, unflatten,
    unsqueeze, view,
)
from perframe.functional.normalization import (
    batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm,
)
from perframe.functional.pictures import (
    affine_grid, channel_shuffle, fold, grid_sample, interpolate, pixel_shuffle, pixel_unshuffle, unfold, upsample,
)
from perframe.functional.pieces import (
    as_strided, cat, chunk, clone, concat, concatenate, diagonal, flip, fliplr, flipud, narrow, pad, roll, select,
    split, stack, tril, triu, unbind,
)
from perframe.functional.pools import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d,
    adaptive_max_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, lp_pool1d, lp_pool2d, lp_pool3d, max_pool1d, max_pool2d,
    max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d,
)
from perframe.functional.products import (
    addbmm, addmm, baddbmm, bmm, det, dot, einsum, inner, linear, matmul, mm, mv, outer, scaled_dot_product_attention,
)
from perframe.functional.reductions import (
    all_ as all, amax, amin, any_ as any, argmax, argmin, argsort, cosine_similarity, count_nonzero, cumprod, cumsum,
    logsumexp, max_ as max, mean, min_ as min, norm, normalize, prod, reduce_l1, reduce_l2, reduce_log_sum_exp,
    reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum, reduce_sum_square, reduce_variance, sort, std,
    std_mean, sum_ as sum, topk, var, var_mean,
)
from perframe.functional.spectra import mel_filters, mel_spectrogram, stft, whisper_spectrogram
from perframe.functional.trigonometry import (
    acos, acosh, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, asin, asinh, atan, atan2, atanh, cos,
    cosh, deg2rad, hypot, rad2deg, sin, sinh, tan, tanh,
)

__all__ = [
    "abs", "absolute", "acos", "acosh", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "add", "addbmm", "addmm", "affine_grid", "all",
    "amax", "amin", "any", "apply", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "argmax", "argmin", "argsort", "argwhere", "as_strided", "as_tensor", "asin", "asinh", "atan", "atan2", "atanh",
    "atleast_1d", "atleast_2d", "atleast_3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "baddbmm", "batch_norm",
    "bernoulli", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "blackman_window", "bmm", "bool", "box_area", "box_iou", "broadcast_to", "cat", "ceil", "celu", "channel_shuffle",
    "chunk", "clamp", "clip", "clone", "concat", "concatenate", "constant", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cos", "cosh", "cosine_similarity", "count_nonzero",
    "cumprod", "cumsum", "deg2rad", "det", "diagonal", "div", "divide", "dot", "double", "dropout", "einsum", "elu",
    "embedding", "eq", "equals", "erf", "exp", "exp2", "expand", "expand_as", "expm1", "eye", "fix", "flatten", "flip",
    "fliplr", "flipud", "float", "float_power", "floor", "floor_divide", "fmod", "fold", "forward", "frac", "full",
    "full_like", "gather", "ge", "gelu", "glu", "greater", "greater_equal", "grid_sample", "group_norm", "gt", "half",
    "hamming_window", "hann_window", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hypot", "index_add",
    "index_select", "inner", "instance_norm", "int", "interpolate", "isfinite", "isinf", "isnan", "layer_norm", "le",
    "leaky_relu", "lerp", "less", "less_equal", "linear", "linspace", "local_response_norm", "log", "log10", "log1p",
    "log2", "log_softmax", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "logsigmoid",
    "logspace", "logsumexp", "long", "lp_pool1d", "lp_pool2d", "lp_pool3d", "lt", "masked_fill", "masked_select",
    "matmul", "max", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
    "maximum", "mean", "mel_filters", "mel_spectrogram", "meshgrid", "min", "minimum", "mish", "mm", "moveaxis",
    "movedim", "mul", "multinomial", "multiply", "mv", "nan_to_num", "narrow", "ne", "neg", "negative", "nms",
    "nonzero", "norm", "normal", "normal_like", "normalize", "not_equal", "numel", "one_hot", "ones", "ones_like",
    "outer", "pad", "permute", "pixel_shuffle", "pixel_unshuffle", "positive", "pow", "prelu", "prod", "rad2deg",
    "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random_choice", "ravel", "reciprocal",
    "reduce_l1", "reduce_l2", "reduce_log_sum_exp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod",
    "reduce_sum", "reduce_sum_square", "reduce_variance", "relu", "relu6", "remainder", "repeat", "repeat_interleave",
    "reshape", "rms_norm", "roi_align", "roll", "round", "rsqrt", "scaled_dot_product_attention", "scatter",
    "scatter_add", "scatter_reduce", "select", "select_scatter", "selu", "sigmoid", "sign", "silu", "sin", "sinh",
    "size", "slice_scatter", "softmax", "softmin", "softplus", "softshrink", "softsign", "sort", "split", "sqrt",
    "square", "squeeze", "stack", "std", "std_mean", "stft", "sub", "subtract", "sum", "swapaxes", "swapdims", "swish",
    "t", "take", "take_along_dim", "tan", "tanh", "tanhshrink", "tensor", "threshold", "tile", "to", "topk",
    "transpose", "tril", "triu", "true_divide", "trunc", "type", "type_as", "unbind", "unflatten", "unfold", "unique",
    "unsqueeze", "upsample", "var", "var_mean", "view", "where", "whisper_spectrogram", "zeros", "zeros_like",
]
# fmt: on

give_methods()
