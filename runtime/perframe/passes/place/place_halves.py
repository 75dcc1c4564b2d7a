"""In a float16 file, values that passes made become halves too.

`widen_halves` notes what the file holds in float16. Beside float32 of the file, new values stay float32, and a constant
does if halves are not near its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from perframe.ir import Evaluate, Model, Value
from perframe.passes.match import is_near_halves
from perframe.tensor import DataType

LEAST = 256  # elements of a weight; smaller constants stay float32 in any case


def run(model: Model, evaluate: Evaluate) -> int:
    """Mark values, and return their number."""
    results = [value for layer in model.layers for value in layer.results if not value.is_output]
    weights = [value for value in model.constant_values if value.constant is not None and value.constant.size >= LEAST]
    if not any(value.is_half for value in (*results, *weights)):
        return 0
    new = [value for value in _new(weights) if is_near_halves(value.constant)]
    new += _new(results)
    for value in new:
        value.is_half = True
    return len(new)


def _new(values: Sequence[Value]) -> list[Value]:
    """The values of float32 that passes made; none beside those of the file."""
    floats = [value for value in values if value.spec.dtype is DataType.FLOAT32]
    return (
        [] if any(value.is_half is False for value in floats) else [value for value in floats if value.is_half is None]
    )
