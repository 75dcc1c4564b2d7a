"""What a user's model file looks like from outside."""

from __future__ import annotations

from typing import Any

import perframe as pf


def sides(value: Any) -> list[int]:
    """The dims of a model's input or output, or of a tensor of it; -1 where one is open or its number is."""
    return [side if isinstance(side, int) else -1 for side in tuple(value.shape or ())]


def listed(model: pf.Model) -> str:
    """All inputs and outputs, for errors that refuse a model."""
    of = (("input", model.inputs), ("output", model.outputs))
    return ", ".join(f"{kind} {value.name} {value.dtype} {value.shape}" for kind, these in of for value in these)
