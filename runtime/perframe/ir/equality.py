"""Layers that are equal but for their operands, as in the repeated blocks of most networks.

A plan infers and lowers such layers once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from perframe.ir.shape_arithmetic import is_followed
from perframe.ir.sizes.partial import PartialTensor

MAX_VALUES = 64  # longer values that decide a shape are not compared


def signature(layer: Any) -> Hashable | None:
    """Return everything but the operands that decides what a layer does; None if that cannot be compared."""
    made = (layer.op, tuple(sorted(layer.attributes.items())), layer.epilogue, layer.channels_last, layer.is_wide)
    try:
        hash(made)
    except TypeError:  # an array, or a list
        return None
    return made


def inference_key(layer: Any, same: Hashable, given: Sequence[PartialTensor | None]) -> Hashable | None:
    """Return everything that decides a layer's shapes; None if that is more than shapes, dtypes and small values.

    The values of an input that is not a host input matter only if the values of all inputs are followed.
    """
    parts: list[Hashable] = [same]
    follows, declared = True, layer.declaration
    for index, spec in enumerate(given):
        if spec is None:
            parts.append(None)
            continue
        if spec.kind != "tensor":
            return None
        if spec.values is None:
            follows = follows and is_followed(spec)
        elif declared.is_host(index):
            if spec.value is None or spec.value.size > MAX_VALUES or spec.value.dtype == object:
                return None
            parts.append(spec.value.tobytes())
        parts.append(spec.dtype)
        parts.append(spec.shape)
    return None if follows else tuple(parts)
