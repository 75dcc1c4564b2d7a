"""Calls of functions that networks are made of: products, windows, normalisations, pictures, signals, boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from functional.table import CASES, INF, Array, B, F, N, R, U, case, each

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
each("addbmm", case(N(0, 9, 2, 2), *(N(0, 9, 3, 2, 2, dtype=np.int64) for _ in range(2))))
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
each(
    "avg_pool2d",
    case(F(2, 3, 6, 7), 2, divisor_override=3, fixed=True),
    case(F(3, 6, 7), 2, divisor_override=3, fixed=True),
)
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
