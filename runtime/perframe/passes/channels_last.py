"""Convolutions and pools get data with the channels as the last dim, and so do the layers between them.

A value with its channels second gets a twin with its channels last when the first layer wants one. A transposition is
added only where a layer wants a value in the order that it does not have. A transposition of the model between the two
orders becomes a name for the twin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.layers.channels_last import first, is_data, last
from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph
from perframe.tensor import DataType
from perframe.tensor.partial import DynamicTensorShape

POOLS = ("MaxPool", "AveragePool")
GLOBAL = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}
COLOURS = 3  # the most channels of a picture that stays in planes
REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")
DTYPES = (DataType.FLOAT32, DataType.FLOAT16, DataType.UINT8, DataType.INT8)  # of a convolution


def run(model: Model, evaluate: Evaluate) -> int:
    """Rewrite the model, and return the number of layers that have their channels last now."""
    return _Rewrite(model).run()


class _Rewrite:
    """One walk over the layers, in order."""

    def __init__(self, model: Model) -> None:
        self.model, self.graph = model, Graph(model)
        self.specs = dict(self.graph.specs)
        self.twins: dict[str, str] = {}
        self.names = model.names
        self.available = {value.name for value in model.inputs} | set(model.constants)
        self.layers: list[Layer] = []
        self.dropped: list[Layer] = []
        convolved = [layer for layer in model.layers if layer.op == "Conv"]
        self.most = 5 if any(self._rank(layer.inputs[0]) == 5 for layer in convolved) else 4

    def run(self) -> int:
        count = 0
        for layer in self.model.layers:
            if layer in self.dropped:
                continue
            rewrite = self._choose(layer)
            if rewrite is None or not rewrite(layer):
                layer.inputs = [self._plain(name) for name in layer.inputs]
                self._add(layer)
            else:
                count += 1
        for value in self.model.outputs:
            self._plain(value.name)
        self.model.layers = self.layers
        return count

    # --- values in one order or the other ---

    def _rank(self, name: str) -> int:
        shape = self.specs[name].shape
        return 0 if shape is None else len(shape)

    def _add(self, layer: Layer) -> None:
        self.layers.append(layer)
        self.available.update(name for name in layer.outputs if name)

    def _order(self, source: str, target: str, order: Callable[[Sequence[int]], Sequence[int]], rank: int) -> None:
        """Add the layer that makes `target` from `source`: a Reshape if the order of the data is the same."""
        dims = self.specs[target if order is first else source].shape
        moved = [dim for dim in (dims or ())[1:] if dim != 1]
        name = f"{target} in order"
        channels = (dims or (None, None))[1]
        if dims is not None and dims.is_static and (channels == 1 or moved in ([], [channels])):
            shape = order(dims.to_shape()) if order is last else dims.to_shape()
            constant = self._constant(f"shape of {target}", np.array(shape, np.int64))
            self._add(Layer("Reshape", name, [source, constant], [target], {"allowzero": 1}))
        else:
            self._add(Layer("Transpose", name, [source], [target], {"perm": list(order(range(rank)))}))

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        added = self.names.free(name)
        self.model.constants[added] = value
        self.available.add(added)
        return added

    def _name(self, source: str, target: str) -> None:
        """Give the twin of `source` the name `target`, by an Identity if a layer has read the twin already."""
        twin = self.twins[source]
        makers = [layer for layer in self.layers if twin in layer.outputs]
        if makers and not any(twin in layer.inputs for layer in self.layers):
            makers[0].outputs = [target if name == twin else name for name in makers[0].outputs]
            self.twins[source] = target
            self.available.add(target)
        else:
            self._add(Layer("Identity", f"{target} as it is", [twin], [target]))

    def _plain(self, name: str) -> str:
        """Return the value with its channels second; it is made from its twin if necessary."""
        if name and name not in self.available:
            self._order(self.twins[name], name, first, self._rank(name))
        return name

    def _twin(self, name: str) -> str:
        """Return the twin of a value, with its channels last; it is made if necessary."""
        if name not in self.twins:
            if name in self.model.constants:
                value = np.ascontiguousarray(np.moveaxis(self.model.constants[name], 1, -1))
                self.twins[name] = self._constant(f"{name}:last", value)
            else:
                self.twins[name] = self.names.free(f"{name}:last")
                self._order(name, self.twins[name], last, self._rank(name))
        return self.twins[name]

    def _make(self, layer: Layer, inputs: list[str], **changes: object) -> bool:
        """Add the layer with these inputs, and with twins as outputs. Returns True."""
        for name in layer.outputs:
            self.twins[name] = self.names.free(f"{name}:last")
        layer.inputs, layer.outputs = inputs, [self.twins[name] for name in layer.outputs]
        layer.attributes = {**layer.attributes, **changes}
        self._add(layer)
        return True

    # --- layers ---

    def _choose(self, layer: Layer) -> Callable[[Layer], bool] | None:
        """Return the method that rewrites a layer; None if the layer wants its channels second."""
        rank = self._rank(layer.inputs[0]) if layer.inputs and layer.inputs[0] else 0
        if layer.op == "Transpose":
            return self._transpose if 3 <= rank <= self.most else None
        if layer.outputs[1:] and layer.op != "Split":
            return None
        if (
            layer.op in ("Conv", "ConvTranspose", "QuantizedConv")
            and 3 <= rank <= (5 if layer.op == "Conv" else 4)
            and self.specs[layer.inputs[0]].dtype in DTYPES
        ):
            return self._window if layer.inputs[1] in self.model.constants and not self._of_colours(layer) else None
        if not any(name in self.twins for name in layer.inputs):
            return None
        if not 3 <= self._rank(layer.outputs[0]) <= (5 if layer.op == "Reshape" else self.most):
            return None
        if layer.op == "Reshape":
            return self._shuffle
        if layer.op in POOLS:
            return self._window
        if layer.op in GLOBAL:
            return self._global
        if layer.op in REDUCTIONS:
            return self._reduction
        if layer.op in ("Concat", "Split", "Softmax"):
            return self._along_axis
        if layer.op in ("Pad", "Resize", "Slice"):
            return self._by_axes
        if layer.op == "QuantizedMean":
            return self._window
        if layer.op in ("QuantizeLinear", "DequantizeLinear", "LookUp"):
            return self._by_one_scale
        if layer.op == "QuantizedAdd":
            return self._elementwise
        if layer.family == "elementwise" and layer.op != "BatchNormalization":
            return self._elementwise
        return None

    def _of_colours(self, layer: Layer) -> bool:
        """Whether a convolution makes a few planes from a few planes. They would fill a small part of each vector with
        their channels last, while vectors along the lines are full.
        """
        if layer.op != "Conv" or layer.inputs[0] in self.twins or self._rank(layer.inputs[0]) > 4:
            return False
        outputs, depth = self.model.constants[layer.inputs[1]].shape[:2]
        few = max(outputs, depth * layer.attributes.get("group", 1)) <= COLOURS
        return few and max(layer.attributes.get("strides") or (1,)) == 1

    def _window(self, layer: Layer) -> bool:
        layer.channels_last = True
        inputs = [
            self._twin(name) if name and is_data(layer.declaration, index) else name
            for index, name in enumerate(layer.inputs)
        ]
        return self._make(layer, inputs)

    def _global(self, layer: Layer) -> bool:
        axes = list(range(1, self._rank(layer.inputs[0]) - 1))
        constant = self._constant(f"axes of {layer.name}", np.array(axes, np.int64))
        layer.op = GLOBAL[layer.op]
        return self._make(layer, [self._twin(layer.inputs[0]), constant], keepdims=1)

    def _reduction(self, layer: Layer) -> bool:
        axes = self.model.constants.get((*layer.inputs, "")[1])
        if axes is None or not layer.attributes.get("keepdims", 1):
            return False
        rank = self._rank(layer.inputs[0])
        moved = np.array([_moved(int(axis), rank) for axis in axes.reshape(-1)], np.int64)
        constant = self._constant(f"axes of {layer.name}", moved)
        return self._make(layer, [self._twin(layer.inputs[0]), constant])

    def _along_axis(self, layer: Layer) -> bool:
        rank = self._rank(layer.inputs[0])
        axis = layer.attributes.get("axis", -1 if layer.op == "Softmax" else 0)
        data = layer.inputs if layer.op == "Concat" else layer.inputs[:1]
        rest = layer.inputs[len(data) :]
        if any(self._rank(name) != rank for name in data) or any(name not in self.model.constants for name in rest):
            return False
        return self._make(layer, [*map(self._twin, data), *rest], axis=_moved(axis, rank))

    def _by_axes(self, layer: Layer) -> bool:
        """Rewrite a layer with a constant number for each axis, in the order of the dims."""
        rank = self._rank(layer.inputs[0])
        given = [self.model.constants.get(name) if name else None for name in layer.inputs[1:]]
        if any(name and value is None for name, value in zip(layer.inputs[1:], given, strict=True)):
            return False
        if layer.attributes.get("axes") is not None:
            return False
        inputs = [self._twin(layer.inputs[0])]
        if layer.op == "Slice" or (layer.op == "Pad" and len(given) > 2 and given[2] is not None):
            axes = given[2] if len(given) > 2 and given[2] is not None else np.arange(len(given[0] or ()))
            names = [*layer.inputs[1:], "", "", ""][:4]
            moved = np.array([_moved(int(axis), rank) for axis in axes], np.int64)
            names[2] = self._constant(f"axes of {layer.name}", moved)
            inputs += names if layer.op == "Slice" and names[3] else names[:3]
            return self._make(layer, inputs)
        for name, value in zip(layer.inputs[1:], given, strict=True):
            if value is None or value.size not in (rank, 2 * rank):
                inputs.append(name)
                continue
            moved = value.reshape(-1, rank)[:, list(last(range(rank)))].reshape(-1)
            inputs.append(self._constant(f"{name}:last", moved))
        return self._make(layer, inputs)

    def _elementwise(self, layer: Layer) -> bool:
        rank = self._rank(layer.outputs[0])
        inputs: list[str] = []
        for name in layer.inputs:
            shape = self.specs[name].shape if name else DynamicTensorShape(())
            if shape is None or (len(shape) not in (0, rank) and not self._is_small(name)):
                return False
        for name in layer.inputs:
            if not name or (self.specs[name].shape or ()) == () or self._scalar(name):
                inputs.append(self._plain(name))
            elif self._rank(name) == rank:
                inputs.append(self._twin(name))
            else:
                value = self.model.constants[name]
                value = value.reshape((1,) * (rank - value.ndim) + value.shape)
                inputs.append(self._constant(f"{name}:last", np.ascontiguousarray(np.moveaxis(value, 1, -1))))
        return self._make(layer, inputs)

    def _by_one_scale(self, layer: Layer) -> bool:
        """Rewrite a layer whose further inputs are the same for all elements."""
        if layer.op != "LookUp" and not all(self._scalar(name) for name in layer.inputs[1:] if name):
            return False
        return self._make(layer, [self._twin(layer.inputs[0]), *layer.inputs[1:]])

    def _scalar(self, name: str) -> bool:
        """Whether a value is one number. It has no more dims than the value that it meets."""
        shape = self.specs[name].shape
        return shape is not None and shape.size == 1

    def _is_small(self, name: str) -> bool:
        """Whether a value is available in either order: it is a constant or one number."""
        return name in self.model.constants or self._scalar(name)

    def _shuffle(self, layer: Layer) -> bool:
        """Rewrite a channel shuffle: a reshape of channels to (groups, channels), a transposition, a reshape back."""
        turn = self.graph.only_user(layer.outputs[0])
        back = self.graph.only_user(turn.outputs[0]) if turn is not None and turn.op == "Transpose" else None
        if turn is None or back is None or back.op != "Reshape" or back.inputs[0] != turn.outputs[0]:
            return False
        shapes = [self.specs[name].shape for name in (layer.inputs[0], layer.outputs[0], back.outputs[0])]
        if any(shape is None or not shape.is_static for shape in shapes):
            return False
        given, split, made = ([*shape] for shape in shapes if shape is not None)
        order = [0, 2, 1, *range(3, len(split))]
        if (
            given != made
            or split[3:] != given[2:]
            or split[0] != given[0]
            or [*(turn.attributes.get("perm") or ())] != order
        ):
            return False
        groups, channels = split[1:3]
        source, last_shape = self._twin(layer.inputs[0]), [given[0], *given[2:]]
        apart = self._constant(f"shape of {layer.name}", np.array([*last_shape, groups, channels], np.int64))
        whole = self._constant(f"shape of {back.name}", np.array([*last_shape, given[1]], np.int64))
        rank = len(split)
        names = [self.names.free(f"{old.outputs[0]}:last") for old in (layer, turn, back)]
        self._add(Layer("Reshape", layer.name, [source, apart], [names[0]]))
        perm = [*range(rank - 2), rank - 1, rank - 2]
        self._add(Layer("Transpose", turn.name, [names[0]], [names[1]], {"perm": perm}))
        self._add(Layer("Reshape", back.name, [names[1], whole], [names[2]]))
        self.twins[back.outputs[0]] = names[2]
        self.dropped += [turn, back]
        return True

    def _transpose(self, layer: Layer) -> bool:
        """Turn a transposition between the two orders into a name for the twin."""
        rank = self._rank(layer.inputs[0])
        perm = list(layer.attributes.get("perm") or range(rank)[::-1])
        source, target = layer.inputs[0], layer.outputs[0]
        if perm == list(first(range(rank))):
            self.twins[target] = self._plain(source)
            return True
        if perm == list(last(range(rank))) and source in self.twins:
            self._name(source, target)
            return True
        return False


def _moved(axis: int, rank: int) -> int:
    """Return the index of an axis in the order with the channels last."""
    axis %= rank
    return axis if axis == 0 else rank - 1 if axis == 1 else axis - 1
