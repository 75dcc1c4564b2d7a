"""Calls of functions that move, gather and make elements."""

from __future__ import annotations

import numpy as np

from functional.table import CASES, INF, B, F, N, R, case, each

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
