"""Calls of every function of `pf.functional`, with small arrays: the table that the tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_random = np.random.default_rng(7)


def F(*shape: int) -> Array:
    """Normal numbers, float32."""
    return _random.standard_normal(shape).astype(np.float32)


def U(low: float, high: float, *shape: int) -> Array:
    """Even numbers from low to high, float32."""
    return _random.uniform(low, high, shape).astype(np.float32)


def N(low: int, high: int, *shape: int, dtype: Any = np.int64) -> Array:
    """Whole numbers from low to below high."""
    return _random.integers(low, high, shape).astype(dtype)


def B(*shape: int) -> Array:
    """Bools."""
    return _random.integers(0, 2, shape).astype(bool)


def R(*values: Any, dtype: Any = np.float32) -> Array:
    """These values."""
    return np.array(values, dtype)


@dataclass(frozen=True)
class Case:
    """One call. Arrays become inputs. `reference(torch, *arguments)` is used where PyTorch has no such function.

    A call with `fixed` needs inputs of known sizes; all others run with named dims. `tolerance` is of the
    largest value.
    """

    args: tuple[Any, ...]
    named: dict[str, Any] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    fixed: bool = False
    tolerance: float = 2e-6


def case(*args: Any, reference: Any = None, fixed: bool = False, tolerance: float = 2e-6, **named: Any) -> Case:
    return Case(args, named, reference, fixed, tolerance)


CASES: dict[str, list[Case]] = {}

INF, NAN = float("inf"), float("nan")
ODD = R(-INF, -2.5, -1.0, -0.5, -0.0, 0.0, 1e-8, 0.5, 1.5, 2.5, INF, NAN)
INTS = N(-9, 9, 3, 1)


def each(names: str, *cases: Case) -> None:
    """Test several functions with the same calls."""
    for name in names.split():
        CASES[name] = [*CASES.get(name, []), *cases]


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
each("relu", case(F(2, 3)), case(N(-5, 5, 4)))
each("elu celu", case(F(5), 0.7))
each("leaky_relu", case(F(5)), case(F(5), 0.3))
each("prelu", case(F(2, 3, 4), F(3)), case(F(2, 3), F(1)), case(F(2, 3, 2, 2), F(3)))
each("gelu", case(F(5), approximate="tanh"))
each("softplus", case(F(5) * 9, 2.0, 3.0))
each("hardtanh", case(F(5)), case(F(5), -0.3, 0.4))
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

# --- shapes ---

each(
    "reshape view",
    case(F(2, 3, 4), (4, 6)),
    case(F(2, 3, 4), -1, 2),
    case(F(2, 3), 3, 2),
    case(F(1), ()),
    case(F(0, 3), (3, 0)),
)
CASES["reshape"] = [case(*one.args, reference=lambda torch, x, *to: x.reshape(*to)) for one in CASES["reshape"]]
each("size", case(F(2, 3, 4), reference=lambda torch, x: torch.tensor(x.shape)))
each("size", case(F(2, 3), -1, reference=lambda torch, x, dim: torch.tensor(x.shape[dim])))
each("numel", case(F(2, 3, 4), reference=lambda torch, x: torch.tensor(x.numel())))
each(
    "flatten", case(F(2, 3, 4)), case(F(2, 3, 4), 1), case(F(2, 3, 4), 0, 1), case(F(2, 3), 1, 1), case(R(1.5)[0:1], 0)
)
each("ravel", case(F(2, 3)))
each("unflatten", case(F(2, 6), 1, (2, 3)), case(F(6, 2), 0, (-1, 2)))
each(
    "squeeze",
    case(F(1, 3, 1), fixed=True),
    case(F(1, 3, 1), 0),
    case(F(1, 3), 1, fixed=True),
    case(F(1, 3, 1), (0, -1)),
)
each("unsqueeze", case(F(2, 3), 0), case(F(2, 3), -1), case(F(2, 3), 1))
each("atleast_1d atleast_2d atleast_3d", case(F(3)), case(F(2, 3)), case(F(2, 3), F(2)), case(R(1)[0]))
each("permute", case(F(2, 3, 4), (2, 0, 1)), case(F(2, 3), (-1, 0)))
each("transpose swapaxes swapdims", case(F(2, 3, 4), 0, -1))
each("t", case(F(2, 3)), case(F(3)))
each("movedim moveaxis", case(F(2, 3, 4), 0, -1), case(F(2, 3, 4, 5), (0, 1), (2, 0)))
each("broadcast_to", case(F(3, 1), (2, 3, 4)), case(F(3), (2, 3)))
each("expand", case(F(3, 1), 3, 4), case(F(3, 1), (2, -1, 4)))
CASES["expand"] = [case(*one.args, reference=lambda torch, x, *sizes: x.expand(*sizes)) for one in CASES["expand"]]
each("expand_as", case(F(3, 1), F(2, 3, 4), reference=lambda torch, x, other: x.expand_as(other)))
each("tile", case(F(2, 3), (2,)), case(F(3), (2, 2)), case(F(2, 3), (2, 1)))
each("repeat", case(F(2, 3), 2, 1, 3, reference=lambda torch, x, *counts: x.repeat(*counts)))
each("repeat_interleave", case(F(2, 3), 2), case(F(2, 3), 3, 1), case(F(2, 3), 2, dim=0))

# --- pieces ---

each("narrow", case(F(5, 3), 0, 1, 3), case(F(5, 3), 1, -2, 2, fixed=True), case(F(5), 0, np.int64(1), 2))
each("select", case(F(5, 3), 0, 2), case(F(5, 3), 1, -1))
each("split", case(F(7, 2), 3, fixed=True), case(F(2, 6), (1, 2, 3), 1))
each("chunk", case(F(7, 2), 3, fixed=True), case(F(2, 6), 2, 1, fixed=True))
each("unbind", case(F(3, 2), fixed=True), case(F(3, 2), 1, fixed=True))
each("flip", case(F(2, 3, 4), (0, 2)), case(F(3), (-1,)))
each("fliplr flipud", case(F(2, 3)))
each("roll", case(F(5, 3), 2, 0), case(F(2, 3), (1, -1), (0, 1)), case(F(2, 3), 4), case(F(5), 7, 0, fixed=True))
each("cat concat concatenate", case([F(2, 3), F(2, 1)], 1), case([F(1, 3), F(2, 3)]), case([F(2), N(0, 9, 2)], 0))
each("stack", case([F(2, 3), F(2, 3)]), case([F(2, 3), F(2, 3)], -1), case([F(3), F(3), F(3)], 1))
each("clone", case(F(3)))
each("tril triu", case(F(4, 5)), case(F(2, 3, 3), 1), case(F(4, 4), -2))
each("diagonal", case(F(3, 4), fixed=True), case(F(3, 4), 1, fixed=True), case(F(2, 3, 4), -1, 1, 2, fixed=True))
each("as_strided", case(F(12), (2, 3), (4, 1)), case(F(3, 4), (3,), (5,), 0, fixed=True))
each("pad", case(F(2, 3), (1, 2)), case(F(2, 3), (1, 0, 0, 2), value=1.5), case(F(5, 6), (-1, 2, 1, -2)))
each("pad", *(case(F(2, 5, 6), (2, 1), mode) for mode in ("reflect", "replicate", "circular")))

# --- indices ---

each("gather", case(F(3, 4), 1, N(0, 4, 3, 2)), case(F(3, 4), 0, N(0, 3, 2, 2)))
each(
    "take_along_dim",
    case(F(3, 4), N(0, 4, 3, 2), 1, fixed=True),
    case(F(3, 4), N(0, 12, 5)),
    case(F(3, 4), N(0, 3, 1, 4), 0),
)
each("index_select", case(F(3, 4), 1, N(0, 4, 5)), case(F(3, 4), 0, N(0, 3, 2, dtype=np.int32)))
each("take", case(F(3, 4), N(0, 12, 2, 2)))
each("embedding", case(N(0, 5, 2, 3), F(5, 4)))
each("nonzero argwhere", case(N(0, 2, 3, 4)), case(B(5)))
each("nonzero", case(B(3, 4), as_tuple=True))
each("masked_fill", case(F(3, 4), B(3, 4), -INF), case(N(0, 9, 3), B(2, 3), 7))
each("masked_select", case(F(3, 4), B(3, 4)), case(F(3, 4), B(4)))
each("unique", case(N(0, 4, 9)), case(N(0, 3, 3, 4), True, True, True), case(N(0, 2, 5, 2), dim=0))
each("one_hot", case(N(0, 5, 2, 3), 5), case(N(0, 4, 6)))
SCATTER = (F(3, 5), 1, N(0, 5, 3, 1), F(3, 1))
each("scatter", case(*SCATTER), case(F(3, 5), 1, N(0, 5, 2, 1), F(3, 4)), case(F(3, 5), 0, N(0, 3, 1, 5), 1.5))
each("scatter", case(*SCATTER, reduce="add"), case(*SCATTER, reduce="multiply"))
each("scatter_add", case(F(3, 5), 1, N(0, 5, 3, 4), F(3, 4)), case(N(0, 9, 4), 0, N(0, 4, 6), N(0, 9, 6)))
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    each("scatter_reduce", case(F(3, 5), 1, N(0, 5, 3, 7), F(3, 7), _reduce))
    each("scatter_reduce", case(F(5), 0, N(0, 4, 7), F(7), _reduce, include_self=False))
each("index_add", case(F(5, 3), 0, N(0, 5, 4), F(4, 3)), case(F(2, 5), 1, N(0, 5, 4), F(2, 4), alpha=2))
each(
    "slice_scatter",
    case(F(5, 3), F(2, 3), 0, 1, 3),
    case(F(5), F(3), 0, 0, 5, 2, fixed=True),
    case(F(2, 5), F(2, 2), 1, 3),
)
each("select_scatter", case(F(5, 3), F(3), 0, 2), case(F(5, 3), F(5), 1, -1))

# --- made from numbers ---

each("constant", case([1.5, 2], reference=lambda torch, x: torch.tensor(x)))
each("tensor as_tensor", case([[1, 2], [3, 4]]), case(2.5), case(True))
each("full", case((2, 3), 1.5), case((2,), 3), case((), True))
each("zeros ones", case(2, 3), case((2, 0)), case(40, 40))
each("full_like", case(F(2, 3), 7), case(N(0, 9, 3), 2))
each("zeros_like ones_like", case(F(2, 3)), case(N(0, 9, 3)), case(F(40, 40)))
each("arange", case(5), case(1, 7, 2), case(5, 1, -1), case(0.0, 1.0, 0.25), case(3.5), case(2, 2))
each("linspace", case(0, 1, 5), case(-3.5, 2, 1), case(0, 1, 0))
each("logspace", case(0, 2, 5), case(0, 1, 3, 2.0))
each("eye", case(3), case(2, 4))
each("meshgrid", case(F(2), F(3), indexing="ij"), case(F(2), F(3), indexing="xy"), case(N(0, 9, 4), indexing="ij"))
each("hann_window hamming_window blackman_window", case(8), case(7, False), case(1))

# --- products ---

each(
    "matmul",
    case(F(2, 3), F(3, 4)),
    case(F(5, 2, 3), F(3, 4)),
    case(F(3), F(3)),
    case(F(2, 3), F(3)),
    case(F(3), F(2, 3, 4)),
)
each("mm", case(F(2, 3), F(3, 4)))
each("bmm", case(F(5, 2, 3), F(5, 3, 4)))
each("mv", case(F(2, 3), F(3)))
each("dot", case(F(7), F(7)))
each("inner", case(F(2, 3), F(4, 3)), case(F(3), F(3)), case(F(2, 2, 3), F(3)))
each("outer", case(F(2), F(3)))
each("addmm", case(F(4), F(2, 3), F(3, 4)), case(F(2, 4), F(2, 3), F(3, 4), beta=0.5, alpha=2))
each("baddbmm", case(F(5, 2, 4), F(5, 2, 3), F(5, 3, 4), alpha=0.5))
each("addbmm", case(F(2, 4), F(5, 2, 3), F(5, 3, 4), beta=2))
each("linear", case(F(2, 3), F(4, 3), F(4)), case(F(5, 2, 3), F(4, 3)), case(F(3), F(3)))
each("einsum", case("bij,bjk->bik", F(2, 3, 4), F(2, 4, 5)), case("ii->i", F(3, 3)), case("ij->ji", F(2, 3)))
each("det", case(F(3, 3)), case(F(2, 4, 4)))
QKV = (F(2, 3, 4, 8), F(2, 3, 5, 8), F(2, 3, 5, 6))
each(
    "scaled_dot_product_attention",
    case(*QKV, fixed=True),
    case(*QKV, B(4, 5) | True, scale=0.5),
    case(*QKV, F(4, 5), scale=1.0),
)
each("scaled_dot_product_attention", case(*QKV, is_causal=True, scale=0.3))
each("scaled_dot_product_attention", case(F(1, 4, 3, 8), F(1, 2, 5, 8), F(1, 2, 5, 8), enable_gqa=True, fixed=True))

# --- windows ---

WEIGHTS = {1: (5,), 2: (6, 7), 3: (4, 5, 4)}
for _rank, _size in WEIGHTS.items():
    _three, _two = (3,) * _rank, (2,) * _rank
    each(
        f"conv{_rank}d",
        case(F(2, 4, *_size), F(6, 4, *_three)),
        case(F(2, 4, *_size), F(6, 2, *_three), F(6), 2, 1, 1, 2),
        case(F(4, *_size), F(6, 4, *_two), F(6), padding="same", fixed=True),
        case(F(1, 4, *_size), F(6, 4, *_two), stride=_two, padding=(1,) * _rank, dilation=2),
    )
    each(
        f"conv_transpose{_rank}d",
        case(F(2, 4, *_size), F(4, 3, *_three), F(3), 2, 1, 1, fixed=True),
        case(F(4, *_size), F(4, 3, *_two), groups=2, dilation=2, fixed=True),
    )
    each(
        f"max_pool{_rank}d",
        case(F(2, 3, *_size), 2),
        case(F(2, 3, *_size), _three, 2, 1, 1, True),
        case(F(3, *_size), 2, 1, 0, 2, return_indices=True),
        case(F(2, 3, *_size), 2, return_indices=True),
    )
    each(
        f"avg_pool{_rank}d",
        case(F(2, 3, *_size), 2),
        case(F(2, 3, *_size), _three, 2, 1, True),
        case(F(3, *_size), 3, 2, 1, False, False),
    )
    each(
        f"adaptive_avg_pool{_rank}d adaptive_max_pool{_rank}d",
        case(F(2, 3, *_size), 1),
        case(F(2, 3, *_size), 3, fixed=True),
    )
    each(f"adaptive_avg_pool{_rank}d", case(F(3, *_size), _two, fixed=True))
    each(f"max_unpool{_rank}d", case(F(1, 2, *_two), N(0, 1, 1, 2, *_two), 2, fixed=True))
each("lp_pool1d", case(F(2, 3, 6), 2, 2), case(U(0, 1, 2, 3, 7), 3.0, 3, 2))
each("lp_pool2d", case(F(2, 3, 6, 5), 2, 2))
each("lp_pool3d", case(F(2, 3, 4, 4, 5), 2, 2))
each("avg_pool2d", case(F(2, 3, 6, 7), 2, divisor_override=3, fixed=True))
for _rank, _places in ((1, (0, 3)), (2, (0, 3, 9, 14)), (3, (0, 3, 5, 7, 33, 35, 37, 63))):
    CASES[f"max_unpool{_rank}d"] = [
        case(F(1, 1, *(2,) * _rank), np.array(_places).reshape(1, 1, *(2,) * _rank), 2, fixed=True)
    ]

# --- normalisations ---

each("batch_norm", case(F(2, 3, 4), F(3), U(0.5, 2, 3)), case(F(2, 3), F(3), U(0.5, 2, 3), F(3), F(3), eps=1e-3))
each("instance_norm", case(F(2, 3, 5), fixed=True), case(F(2, 3, 4, 5), weight=F(3), bias=F(3), fixed=True))
each("instance_norm", case(F(2, 3, 4), F(3), U(0.5, 2, 3), use_input_stats=False))
each("group_norm", case(F(2, 4, 5), 2, fixed=True), case(F(2, 6, 3, 3), 3, F(6), F(6), fixed=True))
each("layer_norm", case(F(2, 3, 4), (4,)), case(F(2, 3, 4), (3, 4), F(3, 4), F(3, 4)), case(F(2, 4), (4,), F(4)))
each("rms_norm", case(F(2, 3, 4), (4,)), case(F(2, 3, 4), (3, 4), F(3, 4), 1e-3))
each("local_response_norm", case(F(2, 7, 3), 3), case(F(2, 7, 3), 4, 0.1, 0.5, 2.0), case(F(2, 5, 3, 3), 5, 1.0))

# --- pictures ---

IMAGE = F(1, 2, 5, 6)
each("interpolate upsample", case(IMAGE, (7, 4)), case(IMAGE, scale_factor=2))
each("interpolate", *(case(IMAGE, (7, 4), mode=mode) for mode in ("nearest-exact", "bilinear", "bicubic")))
each("interpolate", *(case(IMAGE, (9, 4), mode=mode, align_corners=True) for mode in ("bilinear", "bicubic")))
each("interpolate", *(case(IMAGE, (3, 4), mode=mode, antialias=True, fixed=True) for mode in ("bilinear", "bicubic")))
each("interpolate", case(IMAGE, scale_factor=(1.7, 0.6), mode="bilinear"), case(IMAGE, scale_factor=1.7))
each("interpolate", case(IMAGE, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True, fixed=True))
each("interpolate", case(F(1, 2, 5), 8, mode="linear"), case(F(1, 2, 3, 4, 5), 6, mode="trilinear"))
each("interpolate", case(IMAGE, (1, 1), mode="bilinear"), case(IMAGE, (3, 2), mode="area", fixed=True))
for _mode in ("bilinear", "nearest", "bicubic"):
    each("grid_sample", case(IMAGE, U(-1.2, 1.2, 1, 3, 4, 2), _mode, align_corners=True, tolerance=1e-5))
for _padding in ("zeros", "border", "reflection"):
    each("grid_sample", case(IMAGE, U(-1.4, 1.4, 1, 3, 4, 2), "bilinear", _padding, tolerance=1e-5))
each("grid_sample", case(F(1, 2, 3, 4, 5), U(-1.2, 1.2, 1, 2, 3, 4, 3), tolerance=1e-5))
each("affine_grid", case(F(2, 2, 3), (2, 1, 4, 5)), case(F(1, 3, 4), (1, 1, 2, 3, 4), align_corners=True))
each("pixel_shuffle", case(F(2, 8, 3, 4), 2), case(F(9, 2, 2), 3))
each("pixel_unshuffle", case(F(2, 2, 6, 4), 2), case(F(1, 3, 6), 3))
each("channel_shuffle", case(F(2, 6, 3), 3, fixed=True))
each("unfold", case(F(2, 3, 5, 6), 3, fixed=True), case(F(2, 3, 5, 6), (2, 3), 2, 1, 2, fixed=True))
each("fold", case(F(2, 12, 20), (5, 6), 2), case(F(12, 12), (6, 8), (2, 2), stride=2))

# --- signals, boxes ---

each(
    "stft",
    case(F(2, 40), 8, reference=lambda torch, x, n: _parts(torch, x, n)),
    case(F(40), 8, 3, 6, U(0.1, 1, 6), reference=lambda torch, *all: _parts(torch, *all), fixed=True),
    case(
        F(2, 40), 8, 4, center=False, normalized=True, onesided=False,
        reference=lambda torch, *all, **named: _parts(torch, *all, **named),
    ),
)  # fmt: skip


def _parts(torch: Any, x: Any, *rest: Any, **named: Any) -> Any:
    return torch.view_as_real(torch.stft(x, *rest, return_complex=True, **named))


def boxes(count: int, extent: float) -> Array:
    corners, sizes = U(0, extent, count, 2), U(extent / 4, extent / 2, count, 2)
    return np.concatenate([corners, corners + sizes], 1)


def _areas(torch: Any, x: Any) -> Any:
    return (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])


def _overlaps(torch: Any, a: Any, b: Any) -> Any:
    low, high = torch.maximum(a[:, None, :2], b[:, :2]), torch.minimum(a[:, None, 2:], b[:, 2:])
    common = (high - low).clamp(min=0).prod(-1)
    return common / (_areas(torch, a)[:, None] + _areas(torch, b) - common)


def _kept(torch: Any, x: Any, scores: Any, most: float, least: float = -INF) -> Any:
    """Greedy suppression, box by box."""
    overlap, kept = _overlaps(torch, x, x), []
    for index in scores.argsort(descending=True).tolist():
        if scores[index] > least and all(overlap[index, other] <= most for other in kept):
            kept.append(index)
    return torch.tensor(kept)


each(
    "nms",
    case(boxes(20, 9), U(0, 1, 20), 0.3, reference=_kept),
    case(boxes(20, 9), U(0, 1, 20), 0.5, 0.4, reference=_kept),
)
each("box_area", case(boxes(5, 9), reference=_areas))
each("box_iou", case(boxes(5, 9), boxes(4, 9), reference=_overlaps))


def _aligned(torch: Any, x: Any, rows: Any, size: Any, scale: float, samples: int, aligned: bool) -> Any:
    """Means of bilinear samples, by grid_sample: torchvision is not needed."""
    height, width, found = *x.shape[2:], []
    for row in rows:
        left, top, right, bottom = (row[1:] * scale - (0.5 if aligned else 0)).tolist()
        long, high = right - left, bottom - top
        if not aligned:
            long, high = max(long, 1), max(high, 1)
        places = [
            (torch.arange(n * samples) + 0.5) / (n * samples) * extent + first
            for n, extent, first in zip(size, (high, long), (top, left), strict=True)
        ]
        y, z = (
            place.clamp(0, most - 1) / (most - 1) * 2 - 1 for place, most in zip(places, (height, width), strict=True)
        )
        grid = torch.stack(torch.meshgrid(z, y, indexing="xy"), -1)[None].to(x.dtype)
        picture = x[int(row[0]) : int(row[0]) + 1]
        sampled = torch.nn.functional.grid_sample(picture, grid, align_corners=True)
        found.append(torch.nn.functional.avg_pool2d(sampled, samples))
    return torch.cat(found)


ROWS = np.concatenate([R([0], [1], [1]), boxes(3, 5) + 0.6], 1)
each(
    "roi_align",
    case(F(2, 3, 9, 9), ROWS, (2, 3), 1.0, 2, True, reference=_aligned, tolerance=1e-5),
    case(F(2, 3, 9, 9), ROWS, (2, 2), 0.5, 2, False, reference=_aligned, tolerance=1e-5),
)

# tests of their own: random numbers, and a model inside
ELSEWHERE = {
    "bernoulli",
    "forward",
    "multinomial",
    "normal",
    "normal_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random_choice",
}


def all_cases() -> Iterator[tuple[str, int, Case]]:
    for name, cases in CASES.items():
        for index, one in enumerate(cases):
            yield name, index, one
