"""torchvision without its compiled operators, which load only beside the PyTorch that they were built with.

torchvision's wheel asks for one build of PyTorch, often the one for CUDA. `library` imports torchvision, or a library
that imports it, after it has defined in Python the operators that torchvision's models call while they are exported.
Exporters write them as ONNX's NonMaxSuppression and RoiAlign.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
}


def suppress_overlaps(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The indices of the boxes that no kept box with a higher score overlaps by more than the threshold."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order, kept = scores.argsort(descending=True, stable=True), []
    while order.numel():
        best, others = order[0], order[1:]
        kept.append(best)
        low, high = boxes[others, :2].maximum(boxes[best, :2]), boxes[others, 2:].minimum(boxes[best, 2:])
        common = (high - low).clamp(min=0).prod(1)
        order = others[common <= iou_threshold * (areas[others] + areas[best] - common)]
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.int64)


def operators_are_loaded() -> bool:
    """What torchvision asks before it calls an operator."""
    return True


@cache
def library(name: str) -> Any:
    """torchvision, or a library that imports it where it is installed."""
    if "torchvision" not in sys.modules and find_spec("torchvision"):
        define_operators()
    return import_module(name)


def define_operators() -> None:
    """Import torchvision with operators in place of its own."""
    for operator, schema in SCHEMAS.items():
        LIBRARY.define(operator + schema)
    extension = import_module("torchvision.extension")
    roi_align = import_module("torchvision.ops.roi_align")
    extension._has_ops = roi_align._has_ops = operators_are_loaded  # type: ignore[attr-defined]
    LIBRARY.impl("nms", suppress_overlaps, "CPU")
    LIBRARY.impl("roi_align", roi_align._roi_align, "CPU")
