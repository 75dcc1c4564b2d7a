"""torchvision without its compiled operators, which load only beside the PyTorch that they were built with.

PyPI has torchvision for CUDA alone, and beside a PyTorch for the CPU it cannot be imported. `library` imports it, or a
library that imports it, after it has defined in Python the operators that torchvision's models call while they are
exported. Exporters write them as ONNX's NonMaxSuppression and RoiAlign.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
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
    order = np.argsort(-scores.numpy(), kind="stable")
    low_x, low_y, high_x, high_y = boxes.numpy()[order].T
    areas = (high_x - low_x) * (high_y - low_y)
    alive, kept = np.ones(len(order), bool), []
    for index in range(len(order)):
        if not alive[index]:
            continue
        kept.append(order[index])
        rest = slice(index + 1, None)
        width = np.minimum(high_x[rest], high_x[index]) - np.maximum(low_x[rest], low_x[index])
        height = np.minimum(high_y[rest], high_y[index]) - np.maximum(low_y[rest], low_y[index])
        common = width.clip(0) * height.clip(0)
        alive[rest] &= common <= iou_threshold * (areas[rest] + areas[index] - common)
    return torch.tensor(kept, dtype=torch.int64)


def operators_are_loaded() -> bool:
    """What torchvision asks before it calls an operator."""
    return True


@cache
def library(name: str) -> Any:
    """torchvision, or a library that imports it where it is installed."""
    if "torchvision" not in sys.modules and find_spec("torchvision"):
        try:
            import_module("torchvision")
        except RuntimeError:  # an operator does not exist
            for module in [module for module in sys.modules if module.partition(".")[0] == "torchvision"]:
                del sys.modules[module]
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
