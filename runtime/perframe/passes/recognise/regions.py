"""Regions of a model that compute one value from one value, for passes that recognize a function by its values.

Exporters spell a function such as Gelu in many ways. Its values on probes say what it is, however it is spelled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

import numpy as np

from perframe.errors import PerframeError
from perframe.ir import Array, Evaluate, Layer, Model, Value
from perframe.passes.match import scalar
from perframe.safety.records import dataclass
from perframe.tensor import DataType
from perframe.tensor.background import in_turns

MAX_LAYERS = 12  # of a region


@dataclass(frozen=True)
class Region:
    """Layers that compute `root`'s output from the value `source` and constants, in run order. No other layer reads
    what they make on the way.
    """

    source: Value
    root: Layer
    layers: tuple[Layer, ...]

    def key(self) -> Hashable:
        """Everything that decides what the region computes; regions of repeated blocks have equal keys."""
        numbers = {self.source: 0}
        made = list[Hashable]()
        for layer in self.layers:
            inputs = [None if value is None else numbers.get(value, _bytes(value.constant)) for value in layer.inputs]
            made.append((layer.op, tuple(inputs), str(sorted(layer.attributes.items()))))
            numbers[layer.output] = len(numbers)
        return tuple(made)

    def values(self, evaluate: Evaluate, x: Array, passed: tuple[Layer, Value] | None = None) -> Array | None:
        """The region's result for another value of its source, in the dtype of `x`; None if a layer refuses it.
        `passed` holds a layer to leave out, and the input that takes its place.
        """
        known = {self.source: x}

        def read(value: Value | None) -> Array | None:
            array = None if value is None else known.get(value, value.constant)
            return array.astype(x.dtype) if array is not None and array.dtype == np.float32 else array

        with np.errstate(all="ignore"):
            for layer in in_turns(self.layers):
                if passed is not None and layer is passed[0]:
                    known[layer.output] = known[passed[1]]
                    continue
                try:
                    known[layer.output] = evaluate(layer, [read(value) for value in layer.inputs])[0]
                except PerframeError:
                    return None
        return known[self.root.output]

    def operands(self) -> Iterator[tuple[Layer, Value]]:
        """Yield each layer with each of its inputs that is not a constant."""
        for layer in self.layers:
            yield from ((layer, value) for value in dict.fromkeys(layer.operands) if value.constant is None)


def _bytes(value: Array | None) -> Hashable:
    return None if value is None else (str(value.dtype), value.shape, value.tobytes())


def regions(model: Model, takes: Callable[[Layer], bool], fewest: int) -> Iterator[Region]:
    """Yield regions of layers that `takes` accepts, of at least `fewest` layers, the largest first for each root. The
    caller may replace a region before it asks for the next one.
    """
    positions = {layer: at for at, layer in enumerate(model.layers)}
    gone, taken = set[Layer](), _Taken(takes)  # a layer is asked for with each root and source near it
    for root in in_turns(model.layers[::-1]):
        if root in gone or not taken[root]:
            continue
        cone = _cone(root, taken, positions)
        beyond = {value for value in root.operands if value.constant is None and value.producer not in cone}
        if len(cone) < fewest or len(beyond) > 1:  # it reads more than one value from outside
            continue
        for source in _sources(root, cone, positions):
            region = None if beyond - {source} else _between(source, root, taken, positions)
            if region is None or len(region.layers) < fewest:
                continue
            yield region
            if not root.is_linked:  # it was replaced
                gone.update(region.layers)
                taken.clear()
                break


class _Taken(dict[Layer, bool]):
    """Whether layers may be part of a region. Each is asked for once."""

    def __init__(self, takes: Callable[[Layer], bool]) -> None:
        self._takes = takes

    def __missing__(self, layer: Layer) -> bool:
        found = self[layer] = self._takes(layer)
        return found


def _cone(root: Layer, taken: _Taken, positions: Mapping[Layer, int], stop: Value | None = None) -> dict[Layer, None]:
    """The layers that `root` reads, near it, itself included; none of those before the value `stop`."""
    found: dict[Layer, None] = {root: None}
    waiting = [root]
    while waiting and len(found) <= 2 * MAX_LAYERS:
        for value in waiting.pop(0).operands:
            before = value.producer if value is not stop else None
            if before is not None and before in positions and before not in found and taken[before]:
                found[before] = None
                waiting.append(before)
    return found


def _sources(root: Layer, cone: Iterable[Layer], positions: Mapping[Layer, int]) -> list[Value]:
    """The values from which all values of `root` and its cone may come, the furthest first."""
    read = dict.fromkeys(value for layer in cone for value in layer.operands if value.constant is None)
    shape = root.output.spec.shape

    def position(value: Value) -> int:
        maker = value.producer
        return -1 if maker is None else positions.get(maker, len(positions))

    return sorted((value for value in read if value.spec.shape == shape), key=position)


def _between(source: Value, root: Layer, taken: _Taken, positions: Mapping[Layer, int]) -> Region | None:
    cone = _cone(root, taken, positions, source)
    if len(cone) > MAX_LAYERS:
        return None
    inside = {layer.output for layer in cone} | {source}
    for layer in cone:
        if any(value not in inside and value.constant is None for value in layer.operands):
            return None
        if layer is not root and (not layer.output.users.keys() <= cone.keys() or layer.output.is_output):
            return None
    if not source.users.keys() & cone.keys():
        return None
    return Region(source, root, tuple(sorted(cone, key=positions.__getitem__)))


def replace_region(model: Model, region: Region, *layers: Layer) -> None:
    """Put other layers in the position of a region; the last one makes its result."""
    model.replace(region.root, *layers)
    model.remove(*(layer for layer in region.layers if layer is not region.root))


def is_plain_formula(layer: Layer) -> bool:
    """Whether a layer is elementwise in float32, with constant numbers at most, and without an epilogue."""
    if not layer.declaration.is_pointwise or layer.epilogue or layer.outputs[1:] or layer.on_host:
        return False
    others = [value for value in layer.operands if scalar(value.constant) is None]
    if any(value.constant is not None for value in others):
        return False
    return all(value.spec.dtype is DataType.FLOAT32 for value in (*others, layer.output))


def agree(one: Array | None, other: Array | None, allowed: Array | float) -> bool:
    """Whether two arrays have the same shape, and values that differ by `allowed` at most. Infinities and NaN must be
    equal.
    """
    if one is None or other is None or one.shape != other.shape or one.dtype != other.dtype:
        return False
    finite = np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(one[finite]).all():
        return False
    apart = np.abs(one[finite].astype(np.float64) - other[finite].astype(np.float64))
    return bool((apart <= np.broadcast_to(allowed, other.shape)[finite]).all())


def within(values: Array, tolerance: float, least: float) -> Array:
    """What values of this size may differ by: relative to their absolute value, or to `least` if that is larger."""
    return tolerance * np.maximum(np.abs(values.astype(np.float64)), least)
