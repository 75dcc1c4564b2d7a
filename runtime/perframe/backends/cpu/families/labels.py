"""Labels on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Look up the value of each key. Of equal keys the first counts, and NaN equals NaN."""
    x, given = inputs[0], layer.attributes
    pairs = zip(map(_key, given["keys"].tolist()), given["values"].tolist(), strict=True)
    table: dict[Any, Any] = {}
    for key, value in pairs:
        table.setdefault(key, value)
    default = given["default"].reshape(-1)[0]
    result = np.empty(x.size, given["values"].dtype)
    for index, key in enumerate(x.reshape(-1).tolist()):
        result[index] = table.get(_key(key), default)
    return [result.reshape(x.shape)]


def _key(value: Any) -> Any:
    """The key in a dict: None for NaN, which a dict would never find since it does not equal itself."""
    return value if value == value else None
