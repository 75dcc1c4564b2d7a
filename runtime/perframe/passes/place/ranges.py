"""The range of the numbers of each value, as far as constants, dims and operators decide it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perframe.ir import Layer, Value
from perframe.ir.sizes.partial import PartialTensor
from perframe.ir.sizes.size import is_symbolic
from perframe.layers.quantize import WHOLE_RANGES
from perframe.passes.match import constant_of
from perframe.tensor import DataType

Range = tuple[float, float]  # the least and the largest number

ANY: Range = (-math.inf, math.inf)
INT32: Range = (-(2.0**31), 2.0**31 - 1)
HELD = {DataType.INT64: INT32}  # the numbers of 64 bits that a GPU holds
MOST = 2.0**28  # elements of a tensor on a GPU
_BY_DTYPE: Mapping[DataType, Range] = {
    **WHOLE_RANGES,
    **HELD,
    DataType.INT32: INT32,
    DataType.UINT32: (0.0, 2.0**32 - 1),
    DataType.UINT64: (0.0, 2.0**64 - 1),
    DataType.BOOL: (0.0, 1.0),
}

# the output holds numbers of these inputs and no others
_MOVES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("Identity", "Dropout", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"), (0,)),
    **dict.fromkeys(("Expand", "Tile", "Slice", "Split", "Gather", "GatherElements", "GatherND"), (0,)),
    **dict.fromkeys(("Compress", "DepthToSpace", "SpaceToDepth", "ReverseSequence", "Unique", "TopK"), (0,)),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool", "CumMax"), (0,)),
    **dict.fromkeys(("Where", "ScatterND", "ScatterElements"), (1, 2)),
}
_INDICES = {"ArgMax": 0, "ArgMin": 0, "NonZero": 0, "TopK": 1, "MaxPool": 1}  # the output that holds them
_TO_ONE = dict.fromkeys(("Sigmoid", "HardSigmoid", "Softmax", "Hardmax"), (0.0, 1.0))
_AROUND_ZERO = dict.fromkeys(("Tanh", "Softsign", "Sin", "Cos", "Erf", "Sign"), (-1.0, 1.0))


class Ranges:
    """The range of each tensor's numbers, of those that are asked for and of those that decide them. A GPU's 64-bit
    numbers are assumed to be within `HELD`.
    """

    def __init__(self) -> None:
        self._found: dict[Value, Range] = {}

    def __getitem__(self, value: Value) -> Range:
        waiting = [value]
        while waiting:  # not by recursion: a network may be deep
            last = waiting[-1]
            needed = [] if last in self._found else [v for v in _decisive(last) if v not in self._found]
            waiting += needed
            if not needed:
                if last not in self._found:
                    self._found[last] = self._range_of(last)
                waiting.pop()
        return self._found[value]

    def _range_of(self, value: Value) -> Range:
        layer = value.producer
        if layer is not None:
            at = _INDICES.get(layer.op)
            if at is not None and layer.outputs[at:] and layer.outputs[at] is value:
                return 0.0, _most_index(layer)
            if layer.outputs[0] is value and value.spec.value is None:
                made = _made(layer, self._found)
                if made is not None:
                    return made
        return _of(value.spec)


def _decisive(value: Value) -> Sequence[Value]:
    """The values whose ranges decide that of a value."""
    layer = value.producer
    if layer is None or layer.epilogue or layer.outputs[0] is not value or value.spec.value is not None:
        return ()
    return layer.operands if layer.op in _MOVES or layer.op in _RULES else ()


def _most_index(layer: Layer) -> float:
    """The largest index of an element, or along an axis."""
    shape = layer.input(0).spec.shape
    if shape is None:
        return MOST
    dims = [float(dim) if isinstance(dim, int) else MOST for dim in shape]
    if layer.op == "MaxPool":
        return min(math.prod(dims), MOST)
    if layer.op == "NonZero":
        return max(dims, default=1.0)
    axis = layer.axis
    return dims[axis] if dims else 1.0


def _of(spec: PartialTensor) -> Range:
    """The range of a value of which only the dtype is known, or all numbers are."""
    if spec.kind == "tensor" and spec.value is not None and spec.value.size and spec.value.dtype.kind in "iufb":
        low, high = float(spec.value.min()), float(spec.value.max())
        return ANY if math.isnan(low) else (low, high)
    if spec.kind == "tensor" and spec.value is None and spec.values is not None and spec.values.size:
        ends = [_ends(value) for value in spec.values.flat]
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        return (low, high) if low > -math.inf else _BY_DTYPE.get(spec.dtype, ANY)
    return _BY_DTYPE.get(spec.dtype, ANY)


def _ends(value: Any) -> Range:
    """The range of a number or a symbolic size."""
    low = value.scope.low(value.terms) if is_symbolic(value) else value
    if low is None:
        return ANY
    return float(low), MOST if is_symbolic(value) else float(low)


def _made(layer: Layer, found: Mapping[Value, Range]) -> Range | None:
    """The range of a layer's first output; None if only its dtype decides."""
    if layer.epilogue:
        last = layer.epilogue[-1]
        return last.limits or _TO_ONE.get(last.op) or _AROUND_ZERO.get(last.op)
    given = [ANY if value is None else found.get(value, ANY) for value in layer.inputs]
    if layer.op in _MOVES:
        read = [given[index] for index in _MOVES[layer.op] if index < len(given)]
        if layer.op.startswith("Scatter"):
            read.append(given[0])
        plain = layer.attributes.get("reduction", "none") == "none"
        return _union(read) if plain else ANY
    rule = _RULES.get(layer.op)
    if rule is not None:
        return rule(layer, given)
    if layer.op in _UNBOUNDED:
        return ANY
    return _TO_ONE.get(layer.op) or _AROUND_ZERO.get(layer.op)


def _union(read: Sequence[Range]) -> Range:
    return min(low for low, _ in read), max(high for _, high in read)


def _corners(function: Callable[[float, float], float], a: Range, b: Range) -> Range:
    """The range of a function that is largest and smallest at the ends of its arguments' ranges."""
    with np.errstate(all="ignore"):
        values = [function(x, y) for x in a for y in b]
    return ANY if any(math.isnan(value) for value in values) else (min(values), max(values))


def _count(layer: Layer) -> float:
    """The most numbers that a sum adds."""
    shape = layer.input(0).spec.shape
    if shape is None:
        return MOST
    axes = constant_of(layer.inputs[1] if layer.inputs[1:] else None)
    chosen = shape if axes is None or not axes.size else [shape[int(axis)] for axis in axes.reshape(-1)]
    return min(math.prod(float(dim) if isinstance(dim, int) else MOST for dim in chosen), MOST)


def _sum(layer: Layer, given: Sequence[Range]) -> Range:
    count, (low, high) = _count(layer), given[0]
    return min(0.0, low * count), max(0.0, high * count)


def _cast(layer: Layer, given: Sequence[Range]) -> Range | None:
    (low, high), dtype = given[0], layer.output.spec.dtype
    if dtype.is_float or dtype in HELD:
        return low, high  # of floats, the part before the point
    kept = _of(PartialTensor(dtype))
    return (low, high) if kept[0] <= low and high <= kept[1] else kept


def _divide(layer: Layer, given: Sequence[Range]) -> Range:
    a, b = given
    if b[0] > 0 or b[1] < 0:
        return _corners(lambda x, y: x / y if math.isfinite(x) or math.isfinite(y) else math.nan, a, b)
    most = max(map(abs, a))
    return ANY if layer.output.spec.dtype.is_float else (-most, most)


def _remainder(layer: Layer, given: Sequence[Range]) -> Range:
    a, b = given
    most = max(0.0, max(map(abs, b)) - (0.0 if layer.output.spec.dtype.is_float else 1.0))
    return (0.0, min(a[1], most)) if a[0] >= 0 and b[0] > 0 else (-most, most)


def _clip(layer: Layer, given: Sequence[Range]) -> Range:
    low, high = given[0]
    bounds = [given[index] if layer.inputs[index : index + 1] not in ((), (None,)) else ANY for index in (1, 2)]
    low = min(max(low, bounds[0][0]), bounds[1][1])
    return low, max(low, min(high, bounds[1][1]))


def _shift(layer: Layer, given: Sequence[Range]) -> Range:
    if layer.direction == "RIGHT":
        return _union([given[0], (0.0, 0.0)])
    return _corners(lambda x, y: x * 2.0 ** min(max(y, 0.0), 64.0), *given)


def _is_real(layer: Layer) -> bool:
    return layer.output.spec.dtype.is_float


def _all(choose: Callable[..., float]) -> Callable[[Layer, Sequence[Range]], Range]:
    return lambda _layer, given: (choose(low for low, _ in given), choose(high for _, high in given))


def _product(x: float, y: float) -> float:
    return x * y if x and y else 0.0


_RULES: dict[str, Callable[[Layer, Sequence[Range]], Range | None]] = {
    "Add": lambda _layer, given: _corners(lambda x, y: x + y, *given),
    "Sub": lambda _layer, given: _corners(lambda x, y: x - y, *given),
    "Mul": lambda _layer, given: _corners(_product, *given),
    "Neg": lambda _layer, given: (-given[0][1], -given[0][0]),
    "Abs": lambda _layer, given: (0.0, max(map(abs, given[0]))),
    "Relu": lambda _layer, given: (max(0.0, given[0][0]), max(0.0, given[0][1])),
    **dict.fromkeys(
        ("Floor", "Ceil", "Round"),
        lambda _layer, given: (
            (math.floor(given[0][0]), math.ceil(given[0][1])) if all(map(math.isfinite, given[0])) else given[0]
        ),
    ),
    "Div": _divide,
    "Mod": _remainder,
    "Clip": _clip,
    "Min": _all(min),
    "Max": _all(max),
    "Cast": _cast,
    "Concat": lambda _layer, given: _union(given),
    "Pad": lambda _layer, given: _union([given[0], *(given[2:3] or [(0.0, 0.0)]), (0.0, 0.0)]),
    "Trilu": lambda _layer, given: _union([given[0], (0.0, 0.0)]),
    "Range": lambda _layer, given: _union(given[:2]),
    "OneHot": lambda _layer, given: given[2],
    "ReduceSum": _sum,
    "CumSum": lambda layer, given: _sum(Layer(layer.op, "", layer.inputs[:1], []), given),
    "ReduceMean": lambda layer, given: given[0] if _is_real(layer) else _sum(layer, given),
    "BitShift": _shift,
}
_UNBOUNDED = {"MatMul", "Gemm", "Einsum", "BitwiseNot", "Pow", "CumProd"}
_UNBOUNDED |= {"ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2"}
