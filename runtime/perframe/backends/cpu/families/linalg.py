"""Linear algebra on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute determinants, in float64."""
    return [np.linalg.det(inputs[0].astype(np.float64)).astype(inputs[0].dtype)]
