"""Slices that together cut one value along an axis become one Split."""

from __future__ import annotations

import numpy as np

from perframe.layers.base import normalize_axis
from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph


def run(model: Model, evaluate: Evaluate) -> int:
    """Merge, and return the number of layers that were removed."""
    graph, removed, outputs = Graph(model), 0, set(model.output_names)
    slices: dict[tuple[str, int], list[tuple[int, int, Layer]]] = {}  # first, end and layer, by source and axis
    for layer in model.layers:
        if layer.op == "Slice" and not layer.epilogue and not layer.on_host and not outputs & set(layer.outputs):
            cut = _cut(graph, layer)
            if cut is not None:
                axis, first, end = cut
                slices.setdefault((layer.inputs[0], axis), []).append((first, end, layer))
    for (source, axis), cuts in slices.items():
        cuts.sort(key=lambda cut: cut[:2])
        shape = graph.specs[source].shape
        ends = [0, *(end for _, end, _ in cuts)]
        if (
            len(cuts) > 1
            and shape is not None
            and [first for first, _, _ in cuts] == ends[:-1]
            and ends[-1] == shape[axis]
        ):
            _split(graph, source, axis, [layer for _, _, layer in cuts], np.diff(ends))
            removed += len(cuts) - 1
    return removed


def _cut(graph: Graph, layer: Layer) -> tuple[int, int, int] | None:
    """The axis, the first element and the end of a slice of one axis of a known size, with step 1; else None."""
    shape = graph.specs[layer.inputs[0]].shape
    given = [graph.constant(name) if name else None for name in layer.inputs[1:]]
    missing = any(value is None and name for name, value in zip(layer.inputs[1:], given, strict=True))
    starts, ends, axes, steps = (*given, None, None)[:4]
    if shape is None or missing or starts is None or ends is None or starts.size != 1:
        return None
    axis = normalize_axis(0 if axes is None else int(axes.reshape(())), len(shape))
    size = shape[axis]
    if not isinstance(size, int) or (steps is not None and int(steps.reshape(())) != 1):
        return None
    first, end, _ = slice(int(starts.reshape(())), int(ends.reshape(()))).indices(size)
    return (axis, first, end) if first < end else None


def _split(
    graph: Graph, source: str, axis: int, layers: list[Layer], sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> None:
    model = graph.model
    at = min(map(model.layers.index, layers))
    names = [source, model.add_constant(f"{layers[0].name} sizes", sizes.astype(np.int64))]
    outputs = [layer.outputs[0] for layer in layers]
    split = Layer("Split", layers[0].name, names, outputs, {"axis": axis, "num_outputs": len(layers)})
    model.layers.insert(at, split)
    for layer in layers:
        graph.remove(layer)
    graph.add(split)
