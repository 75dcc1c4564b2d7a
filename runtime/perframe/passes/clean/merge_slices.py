"""Slices that together cut one value along an axis become one Split."""

from __future__ import annotations

import numpy as np

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.declaration import normalize_axis
from perframe.passes.match import constant_of


def run(model: Model, evaluate: Evaluate) -> int:
    """Merge, and return the number of layers that were removed."""
    removed = 0
    slices: dict[tuple[Value, int], list[tuple[int, int, Layer]]] = {}  # first, end and layer, by source and axis
    for layer in model.walk():
        if layer.op == "Slice" and not layer.epilogue and not layer.on_host and not layer.output.is_output:
            cut = _cut(layer)
            if cut is not None:
                axis, first, end = cut
                slices.setdefault((layer.x, axis), []).append((first, end, layer))
    for (source, axis), cuts in slices.items():
        cuts.sort(key=lambda cut: cut[:2])
        shape = source.spec.shape
        ends = [0, *(end for _, end, _ in cuts)]
        if (
            len(cuts) > 1
            and shape is not None
            and [first for first, _, _ in cuts] == ends[:-1]
            and ends[-1] == shape[axis]
        ):
            _split(model, source, axis, [layer for _, _, layer in cuts], np.diff(ends))
            removed += len(cuts) - 1
    return removed


def _cut(layer: Layer) -> tuple[int, int, int] | None:
    """The axis, the first element and the end of a slice of one axis of a known size, with step 1; else None."""
    shape, given = layer.x.spec.shape, (layer.starts, layer.ends, layer.axes, layer.steps)
    starts, ends, axes, steps = (constant_of(value) for value in given)
    if (
        shape is None
        or any(value is not None and value.constant is None for value in given)
        or starts is None
        or ends is None
        or starts.size != 1
    ):
        return None
    axis = normalize_axis(0 if axes is None else int(axes.reshape(())), len(shape))
    size = shape[axis]
    if not isinstance(size, int) or (steps is not None and int(steps.reshape(())) != 1):
        return None
    first, end, _ = slice(int(starts.reshape(())), int(ends.reshape(()))).indices(size)
    return (axis, first, end) if first < end else None


def _split(
    model: Model, source: Value, axis: int, layers: list[Layer], sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> None:
    first = min(layers, key=model.layers.index)
    inputs = [source, model.add_constant(f"{layers[0].name} sizes", sizes.astype(np.int64))]
    outputs = [layer.output for layer in layers]
    split = Layer("Split", layers[0].name, inputs, outputs, {"axis": axis, "num_outputs": len(layers)})
    model.insert(split, before=first)
    model.remove(*layers)
