"""Regions of a model that compute one value from one value, for passes that recognize a function by its values.

Exporters spell a function such as Gelu in many ways. Its values on probes say what it is, however it is spelled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perframe.errors import PerframeError
from perframe.model import Array, Evaluate, Layer, Model
from perframe.passes.match import Graph, scalar
from perframe.tensor import DataType

MAX_LAYERS = 12  # of a region


@dataclass(frozen=True)
class Region:
    """Layers that compute `root`'s output from the value `source` and constants, in run order. No other layer reads
    what they make on the way.
    """

    source: str
    root: Layer
    layers: tuple[Layer, ...]

    def key(self, graph: Graph) -> Hashable:
        """Everything that decides what the region computes; regions of repeated blocks have equal keys."""
        names = {self.source: 0}
        made = list[Hashable]()
        for layer in self.layers:
            inputs = [names.get(name, _bytes(graph.constant(name))) if name else None for name in layer.inputs]
            made.append((layer.op, tuple(inputs), str(sorted(layer.attributes.items()))))
            names[layer.outputs[0]] = len(names)
        return tuple(made)

    def values(
        self, graph: Graph, evaluate: Evaluate, given: Mapping[str, Array], passed: tuple[Layer, str] | None = None
    ) -> Array | None:
        """The region's result for other values of its source and perhaps of others, in the dtype of the source; None if
        a layer refuses them. `passed` holds a layer to leave out, and the name of its input that takes its place.
        """
        known = dict(given)
        dtype = given[self.source].dtype

        def read(name: str) -> Array | None:
            value = known.get(name, graph.constant(name)) if name else None
            return value.astype(dtype) if value is not None and value.dtype == np.float32 else value

        with np.errstate(all="ignore"):
            for layer in self.layers:
                if passed is not None and layer is passed[0]:
                    known[layer.outputs[0]] = known[passed[1]]
                    continue
                try:
                    known[layer.outputs[0]] = evaluate(layer, [read(name) for name in layer.inputs])[0]
                except PerframeError:
                    return None
        return known[self.root.outputs[0]]

    def operands(self, graph: Graph) -> Iterator[tuple[Layer, str]]:
        """Yield each layer with each of its inputs that is not a constant."""
        for layer in self.layers:
            yield from ((layer, name) for name in dict.fromkeys(layer.inputs) if name and graph.constant(name) is None)


def _bytes(value: Array | None) -> Hashable:
    return None if value is None else (str(value.dtype), value.shape, value.tobytes())


def regions(graph: Graph, model: Model, takes: Callable[[Graph, Layer], bool], fewest: int) -> Iterator[Region]:
    """Yield regions of layers that `takes` accepts, of at least `fewest` layers, the largest first for each root. The
    caller may replace a region before it asks for the next one.
    """
    positions = {id(layer): at for at, layer in enumerate(model.layers)}
    gone, taken = set[int](), dict[int, bool]()  # a layer is asked for with each root and source near it

    def accepts(graph: Graph, layer: Layer) -> bool:
        found = taken.get(id(layer))
        if found is None:
            found = taken[id(layer)] = takes(graph, layer)
        return found

    for root in model.layers[::-1]:
        if id(root) in gone or not accepts(graph, root):
            continue
        for source in _sources(graph, root, accepts, positions):
            region = _between(graph, source, root, accepts, positions)
            if region is None or len(region.layers) < fewest:
                continue
            yield region
            if graph.producers.get(root.outputs[0]) is not root:  # it was replaced
                gone.update(map(id, region.layers))
                taken.clear()
                break


def _cone(
    graph: Graph, root: Layer, takes: Callable[[Graph, Layer], bool], positions: Mapping[int, int], stop: str = ""
) -> dict[int, Layer]:
    """The layers that `root` reads, near it, itself included; none of those before the value `stop`."""
    found, waiting = {id(root): root}, [root]
    while waiting and len(found) <= 2 * MAX_LAYERS:
        layer = waiting.pop(0)
        for name in layer.inputs:
            before = graph.producers.get(name) if name != stop else None
            if before is not None and id(before) in positions and id(before) not in found and takes(graph, before):
                found[id(before)] = before
                waiting.append(before)
    return found


def _sources(
    graph: Graph, root: Layer, takes: Callable[[Graph, Layer], bool], positions: Mapping[int, int]
) -> list[str]:
    """The values from which all of `root`'s values may come, the furthest first."""
    cone = _cone(graph, root, takes, positions)
    read = {name for layer in cone.values() for name in layer.inputs if name and graph.constant(name) is None}
    shape = graph.specs[root.outputs[0]].shape
    same = [name for name in read if graph.specs[name].shape == shape]

    def position(name: str) -> int:
        maker = graph.producers.get(name)
        return -1 if maker is None else positions.get(id(maker), len(positions))

    return sorted(same, key=position)


def _between(
    graph: Graph, source: str, root: Layer, takes: Callable[[Graph, Layer], bool], positions: Mapping[int, int]
) -> Region | None:
    cone = _cone(graph, root, takes, positions, source)
    if len(cone) > MAX_LAYERS:
        return None
    inside = {layer.outputs[0] for layer in cone.values()}
    for layer in cone.values():
        if any(
            name and name != source and name not in inside and graph.constant(name) is None for name in layer.inputs
        ):
            return None
        read = {id(user) for user in graph.users.get(layer.outputs[0], [])}
        if layer is not root and (not read <= cone.keys() or layer.outputs[0] in graph.model.output_names):
            return None
    if not any(source in layer.inputs for layer in cone.values()):
        return None
    layers = sorted(cone.values(), key=lambda layer: positions[id(layer)])
    return Region(source, root, tuple(layers))


def replace_region(graph: Graph, region: Region, layers: Sequence[Layer]) -> None:
    """Put other layers in the position of a region; the last one makes its result."""
    at = graph.model.layers.index(region.root)
    graph.model.layers[at:at] = layers
    for layer in region.layers[::-1]:
        graph.remove(layer)
    for layer in layers:
        graph.add(layer)


def is_plain_formula(graph: Graph, layer: Layer) -> bool:
    """Whether a layer is elementwise in float32, with constant numbers at most, and without an epilogue."""
    if not layer.declaration.is_pointwise or layer.epilogue or layer.outputs[1:] or layer.on_host:
        return False
    others = [name for name in layer.inputs if name and scalar(graph.constant(name)) is None]
    if any(graph.constant(name) is not None for name in others):
        return False
    return all(graph.specs[name].dtype is DataType.FLOAT32 for name in (*others, layer.outputs[0]))


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
