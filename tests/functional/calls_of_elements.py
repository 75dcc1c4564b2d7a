"""Calls of functions of elements, activations and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from functional.table import CASES, INF, NAN, B, F, N, R, U, case, each

ODD = R(-INF, -2.5, -1.0, -0.5, -0.0, 0.0, 1e-8, 0.5, 1.5, 2.5, INF, NAN)
INTS = N(-9, 9, 3, 1)

# --- elementwise ---

each("cos sin atan tanh erf exp sigmoid sinh cosh asinh arctan arcsinh expm1 exp2", case(F(2, 3)), case(INTS))
each("tan", case(U(-1.2, 1.2, 3, 4)))
each("acos asin atanh arccos arcsin arctanh", case(U(-0.9, 0.9, 2, 3)))
each("acosh arccosh", case(U(1, 9, 2, 3)))
each("log sqrt rsqrt log2 log10", case(U(0.1, 9, 2, 3)), case(N(1, 9, 4)))
each("log1p", case(U(-0.9, 9, 5)), case(R(1e-8, -1e-7, 3e-5, 0, INF, -1)))
each("expm1", case(R(1e-8, -1e-7, 3e-5, 0, INF, -INF, 20)))
each("reciprocal", case(U(0.1, 9, 2, 3)), case(N(1, 9, 4)))
each("abs absolute neg negative sign square positive", case(F(2, 3)), case(INTS), case(ODD[1:-2]))
each("ceil floor trunc fix", case(F(2, 3)), case(INTS), case(ODD[:-1]))
each("frac", case(F(2, 3)), case(ODD[1:-2]))
each("round", case(F(2, 3)), case(INTS), case(ODD[:-1]), case(F(4), decimals=1), case(F(4) * 100, decimals=-1))
each("deg2rad rad2deg", case(F(2, 3)), case(INTS))
each("isnan isinf isfinite nan_to_num", case(ODD), case(INTS))
each("nan_to_num", case(ODD, nan=1.0, posinf=2.0, neginf=3.0))
PAIRS = [case(F(2, 3), F(3)), case(F(2, 1), 1.5), case(N(-5, 5, 4), N(1, 5, 3, 1)), case(N(0, 9, 3), F(3))]
MIXED = [case(N(0, 9, 3), 2.5), case(N(0, 9, 3, dtype=np.int32), 2), case(N(1, 5, 3), N(1, 5, 3, dtype=np.int32))]
each("add sub subtract mul multiply eq ne gt ge lt le", *PAIRS, *MIXED)
each("maximum minimum", PAIRS[0], *PAIRS[2:], case(ODD, R(0.0)))
each("greater greater_equal less less_equal not_equal", *PAIRS[:2])
each("equals", case(F(2, 3), F(3), reference=lambda torch, a, b: a == b))
each("add sub", case(F(2, 3), F(3), alpha=2.5))
each("add mul", case(B(3), B(2, 1)), case(B(3), 2), case(np.float32(2.5), N(0, 5, 3)))
DIVISORS = [case(F(2, 3), U(0.5, 3, 3)), case(N(-9, 9, 4), N(1, 5, 3, 1)), case(F(3), -1.5), case(N(-9, 9, 4), -2)]
each("div divide true_divide", *DIVISORS)
each("div", *(case(*one.args, rounding_mode=mode) for one in DIVISORS for mode in ("trunc", "floor")))
each("floor_divide remainder fmod", *DIVISORS)
each("floor_divide", case(R(1.0, -1.0, 5.0), R(0.1, 0.1, 0.0)))
each("pow float_power", case(U(0.1, 3, 2, 3), F(3)), case(F(3), 2), case(2.0, F(3)))
each("float_power", case(F(3).astype(np.float16), 2))
each("pow", case(N(1, 4, 3), 2))
CASES["float_power"] = [
    case(*one.args, reference=lambda torch, a, b: torch.float_power(a, b).float()) for one in CASES["float_power"]
]
each("clamp clip", case(F(2, 3), -0.5, 0.5), case(F(3), min=0), case(N(-9, 9, 4), max=2), case(F(2, 3), F(3), F(2, 1)))
each("clamp", case(N(-9, 9, 4), -1.5, 1.5))
each("lerp", case(F(2, 3), F(3), 0.3), case(F(2, 3), F(2, 3), U(0, 1, 3)))
each("logaddexp", case(F(2, 3), F(3)), case(R(INF, -INF, 90, 3), R(INF, -INF, 90, -INF)))
each("atan2 arctan2", case(F(4, 5), F(4, 5)), case(R(0, 1, -1, 0), R(0, 0, 0, -2)))
each("hypot", case(F(2, 3), F(3)))
each("logical_and logical_or logical_xor", case(B(3), B(2, 1)), case(F(3), N(0, 2, 3)))
each("logical_not", case(B(3)), case(N(0, 2, 5)))
each("bitwise_and bitwise_or bitwise_xor", case(N(-9, 9, 4), N(-9, 9, 3, 1)), case(B(3), B(3)), case(N(0, 9, 3), 5))
each("bitwise_not", case(N(-9, 9, 4)), case(B(3)))
each("bitwise_left_shift bitwise_right_shift", case(N(0, 9, 4), N(0, 4, 4)), case(N(0, 99, 4), 2))
each("where", case(B(2, 3), F(2, 3), F(3)), case(B(3), N(0, 9, 3), 1.5), case(B(3, 1), 1.0, 0.0))
each("where", case(B(3, 4)))
each("bool double float half int long", case(F(2, 3)), case(N(-2, 3, 4)))
for _name, _dtype in {"bool": "bool", "double": "float64", "float": "float32", "half": "float16"}.items():
    CASES[_name] = [
        case(*one.args, reference=lambda torch, x, dtype=_dtype: x.to(getattr(torch, dtype))) for one in CASES[_name]
    ]
CASES["int"] = [case(F(5) * 9, reference=lambda torch, x: x.int())]
CASES["long"] = [case(F(5) * 9, reference=lambda torch, x: x.long())]
each("type to", case(F(5) * 9, "int64", reference=lambda torch, x, _: x.long()))
each("type_as", case(F(5), N(0, 2, 1), reference=lambda torch, x, other: x.type_as(other)))

# --- activations ---

each(
    "hardswish mish selu silu softsign relu6 tanhshrink logsigmoid hardsigmoid gelu elu celu softplus",
    case(F(2, 7) * 4),
)
each("swish", case(F(2, 7) * 4, reference=lambda torch, x: x * torch.sigmoid(x)))
each("swish", case(F(2, 7) * 4, 1.702, reference=lambda torch, x, alpha: x * torch.sigmoid(alpha * x)))
each("swish", case(F(9), alpha=-2.5, reference=lambda torch, x, alpha: x * torch.sigmoid(alpha * x)))
each("relu", case(F(2, 3)), case(N(-5, 5, 4)))
each("elu celu", case(F(5), 0.7))
each("leaky_relu", case(F(5)), case(F(5), 0.3))
each("prelu", case(F(2, 3, 4), F(3)), case(F(2, 3), F(1)), case(F(2, 3, 2, 2), F(3)))
each("gelu", case(F(5), approximate="tanh"))
each("softplus", case(F(5) * 9, 2.0, 3.0))
each("hardtanh", case(N(-3, 4, 9, dtype=np.int32)), case(F(5)), case(F(5), -0.3, 0.4))
each("hardshrink softshrink", case(F(9)), case(F(9), 0.2))
each("threshold", case(F(9), 0.1, -7.0))
each("glu", case(F(3, 4), fixed=True), case(F(4, 3), 0, fixed=True))
each("softmax log_softmax softmin", case(F(2, 3, 4), 1), case(F(5), -1), case(F(2, 5) * 50, dim=0))
each("dropout", case(F(5), 0.5, False))

# --- reductions ---

REDUCED = [case(F(2, 3, 4)), case(F(2, 3, 4), 1), case(F(2, 3, 4), -1, True), case(F(2, 3, 4), (0, 2)), case(F(1, 5))]
each("sum mean amax amin", *REDUCED, case(F(3, 4), dim=(0, -1), keepdim=True))
each("sum amax", case(N(-9, 9, 3, 4)), case(N(-9, 9, 3, 4), 1))
each("sum", case(B(3, 4), 1))
each("prod", case(F(2, 3)), case(F(2, 3), 1), case(N(1, 4, 2, 3), 0, True))
each("logsumexp", case(F(2, 3), 1), case(F(2, 3) * 50, (0, 1), True))
each("amax amin", case(F(2, 3), 1))


def _norm(p: float) -> Any:
    return lambda torch, x, dim=None, keepdim=False: torch.linalg.vector_norm(x, p, dim, keepdim)


each("reduce_l1", case(F(2, 3), 1, reference=_norm(1)), case(F(2, 3), reference=_norm(1)))
each("reduce_l2", case(F(2, 3), 1, reference=_norm(2)), case(F(2, 3), (0, 1), True, reference=_norm(2)))
each("reduce_sum_square", case(F(2, 3), 1, True, reference=lambda torch, x, dim, keep: (x * x).sum(dim, keep)))
for _name, _first in (("sum", "sum"), ("mean", "mean"), ("max", "amax"), ("min", "amin"), ("prod", "prod")):
    each(f"reduce_{_name}", case(F(2, 3), 1, True, reference=lambda torch, *all, of=_first: getattr(torch, of)(*all)))
each("reduce_log_sum_exp", case(F(2, 3), 1, True, reference=lambda torch, *all: torch.logsumexp(*all)))
each(
    "reduce_variance",
    case(F(2, 3), 1, True, 0.0, reference=lambda torch, x, d, k, c: torch.var(x, d, correction=c, keepdim=k)),
)
SPREAD = [case(F(2, 3, 4)), case(F(2, 3, 4), 1), case(F(2, 3), (0, 1), correction=0), case(F(5), 0, keepdim=True)]
each("var std var_mean std_mean", *SPREAD)
each("norm", case(F(2, 3)), case(F(2, 3), 2, 1), *(case(F(2, 3), p, 1, True) for p in (0, 1, 3, INF, -INF)))
each("normalize", case(F(2, 3)), case(F(2, 3), 1, 0))
each("cosine_similarity", case(F(2, 3), F(2, 3)), case(F(4), F(4), 0))
each("any all", case(B(2, 3)), case(B(2, 3), 1), case(F(2, 3), 0, True))
each("count_nonzero", case(N(0, 2, 3, 4)), case(B(3, 4), 1), case(N(0, 2, 3, 4), (0, 1)))
each(
    "argmax argmin",
    case(F(2, 3)),
    case(F(2, 3), 1),
    case(F(2, 3), 0, True),
    case(N(0, 3, 9)),
    case(F(2, 3), keepdim=True),
)
each("max min", case(F(2, 3)), case(F(2, 3), 1), case(F(2, 3), 0, True), case(F(2, 3), F(3)), case(N(-9, 9, 4)))
each("topk", case(F(2, 7), 3), case(F(7, 2), 2, 0, False), case(N(-99, 99, 9), 4))
each("sort", case(F(2, 7), fixed=True), case(F(7, 2), 0, True, fixed=True))
each("argsort", case(F(2, 7), fixed=True), case(F(7), descending=True, fixed=True))
each("cumsum cumprod", case(F(2, 5), 1), case(F(2, 5), 0), case(N(1, 4, 5), -1))

for _name, _args in {"sum": (1,), "mean": (0,), "prod": (), "cumsum": (1,), "cumprod": (0,), "softmax": (1,)}.items():
    each(
        _name,
        case(
            N(-3, 4, 2, 3),
            *_args,
            dtype="float64",
            reference=lambda torch, *all, of=_name, dtype: getattr(torch, of)(*all, dtype=torch.float64),
        ),
    )
each("square", case(B(3)))
