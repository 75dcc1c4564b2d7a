"""Layers get their data in another order of the dims, and so do the layers between them.

A value gets a twin in the other order when the first layer wants one. A transposition is added only where a layer wants
a value in the order that it does not have. A transposition of the model between the two orders becomes a name for the
twin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.model import Layer, Model
from perframe.passes.match import Graph
from perframe.sizes.partial import DynamicTensorShape

Order = Callable[[Sequence[Any]], Sequence[Any]]
BY_OP = {
    **dict.fromkeys(("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"), "_reduction"),
    **dict.fromkeys(("Concat", "Split", "Softmax"), "_along_axis"),
    **dict.fromkeys(("Pad", "Resize", "Slice"), "_by_axes"),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear", "LookUp"), "_by_one_scale"),
    "QuantizedAdd": "_elementwise",
}


class Rewrite:
    """One walk over the layers, in order. `to` gives the dims of a value's twin, and `back` those of the value."""

    suffix = ":other"

    def __init__(self, model: Model, to: Order, back: Order) -> None:
        self.to, self.back = to, back
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
        """Rewrite the model, and return the number of layers whose data has the other order now."""
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

    def _order(self, source: str, target: str, order: Order, plain: str) -> None:
        """Add the layer that makes `target` from `source`: a Reshape if the order of the data is the same.

        One of them is the value `plain`, and the other is its twin.
        """
        shape, name = self._reshaped(plain, order), f"{target} in order"
        if shape is not None:
            constant = self._constant(f"shape of {target}", np.array(shape, np.int64))
            self._add(Layer("Reshape", name, [source, constant], [target], {"allowzero": int(shape[0] != 0)}))
        else:
            self._add(Layer("Transpose", name, [source], [target], {"perm": list(order(range(self._rank(plain))))}))

    def _reshaped(self, plain: str, order: Order) -> list[int] | None:
        """Return the shape in an order that leaves the data as it is, None if data would move. A batch of 0 is kept."""
        dims = self.specs[plain].shape
        if dims is None or not all(isinstance(dim, int) for dim in dims[1:]) or (0 in dims and not dims.is_static):
            return None
        given = list(dims if order is self.to else self.to(dims))
        moved = [axis for axis in order(range(len(given))) if given[axis] != 1]
        if moved != sorted(moved):
            return None
        return [dim if isinstance(dim, int) else 0 for dim in order(given)]

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        added = self.names.free(name)
        self.model.constants[added] = value
        self.available.add(added)
        return added

    def _name(self, source: str, target: str) -> None:
        """Give the twin of `source` the name `target`, by an Identity if the twin is read already, or is a value of the
        model.
        """
        twin = self.twins[source]
        makers = [layer for layer in self.layers if twin in layer.outputs]
        if makers and twin not in self.graph.specs and not any(twin in layer.inputs for layer in self.layers):
            makers[0].outputs = [target if name == twin else name for name in makers[0].outputs]
            self.twins[source] = target
            self.available.add(target)
        else:
            self._add(Layer("Identity", f"{target} unchanged", [twin], [target]))

    def _plain(self, name: str) -> str:
        """Return the value in the order of the model; it is made from its twin if necessary."""
        if name and name not in self.available:
            self._order(self.twins[name], name, self.back, name)
        return name

    def _twin(self, name: str) -> str:
        """Return the twin of a value, in the other order; it is made if necessary."""
        if name not in self.twins:
            if name in self.model.constants:
                value = self.model.constants[name]
                moved = np.ascontiguousarray(value.transpose(self.to(range(value.ndim))))
                self.twins[name] = self._constant(f"{name}{self.suffix}", moved)
            else:
                self.twins[name] = self.names.free(f"{name}{self.suffix}")
                self._order(name, self.twins[name], self.to, name)
        return self.twins[name]

    def _make(self, layer: Layer, inputs: list[str], **changes: object) -> bool:
        """Add the layer with these inputs, and with twins as outputs. Returns True."""
        for name in layer.outputs:
            self.twins[name] = self.names.free(f"{name}{self.suffix}")
        layer.inputs, layer.outputs = inputs, [self.twins[name] for name in layer.outputs]
        layer.attributes = {**layer.attributes, **changes}
        self._add(layer)
        return True

    # --- layers ---

    def _choose(self, layer: Layer) -> Callable[[Layer], bool] | None:
        """Return the method that rewrites a layer; None if the layer wants its values as they are."""
        if layer.op == "Transpose":
            return self._transpose if 3 <= self._rank(layer.inputs[0]) <= self.most else None
        if not self._wants(layer) or (layer.outputs[1:] and layer.op != "Split"):
            return None
        if not 3 <= self._rank(layer.outputs[0]) <= self.most:
            return None
        if layer.op in BY_OP:
            return getattr(self, BY_OP[layer.op])  # type: ignore[no-any-return]
        if layer.declaration.is_pointwise:
            return self._elementwise
        return None

    def _wants(self, layer: Layer) -> bool:
        """Whether a layer may be rewritten: one of its inputs has a twin."""
        return any(name in self.twins for name in layer.inputs)

    def _reduction(self, layer: Layer) -> bool:
        axes = self.model.constants.get((*layer.inputs, "")[1])
        if axes is None or not layer.attributes.get("keepdims", 1):
            return False
        rank = self._rank(layer.inputs[0])
        moved = np.array([self._moved(int(axis), rank) for axis in axes.reshape(-1)], np.int64)
        constant = self._constant(f"axes of {layer.name}", moved)
        return self._make(layer, [self._twin(layer.inputs[0]), constant])

    def _along_axis(self, layer: Layer) -> bool:
        rank = self._rank(layer.inputs[0])
        axis = layer.attributes.get("axis", -1 if layer.op == "Softmax" else 0)
        data = layer.inputs if layer.op == "Concat" else layer.inputs[:1]
        rest = layer.inputs[len(data) :]
        if any(self._rank(name) != rank for name in data) or any(name not in self.model.constants for name in rest):
            return False
        return self._make(layer, [*map(self._twin, data), *rest], axis=self._moved(axis, rank))

    def _by_axes(self, layer: Layer) -> bool:
        """Rewrite a layer with a constant number for each axis, in the order of the dims."""
        rank = self._rank(layer.inputs[0])
        given = [self.model.constants.get(name) if name else None for name in layer.inputs[1:]]
        if any(name and value is None for name, value in zip(layer.inputs[1:], given, strict=True)):
            return False
        inputs = [self._twin(layer.inputs[0])]
        listed = layer.attributes.get("axes")
        if listed is not None:
            return self._make(layer, inputs + layer.inputs[1:], axes=tuple(self._moved(axis, rank) for axis in listed))
        if layer.op == "Slice" or (layer.op == "Pad" and len(given) > 2 and given[2] is not None):
            every = np.arange(0 if given[0] is None else len(given[0]))
            axes = given[2] if len(given) > 2 and given[2] is not None else every
            names = [*layer.inputs[1:], "", "", ""][:4]
            moved = np.array([self._moved(int(axis), rank) for axis in axes], np.int64)
            names[2] = self._constant(f"axes of {layer.name}", moved)
            inputs += names if layer.op == "Slice" and names[3] else names[:3]
            return self._make(layer, inputs)
        for name, value in zip(layer.inputs[1:], given, strict=True):
            if value is None or value.size not in (rank, 2 * rank):
                inputs.append(name)
                continue
            moved = value.reshape(-1, rank)[:, list(self.to(range(rank)))].reshape(-1)
            inputs.append(self._constant(f"{name}{self.suffix}", moved))
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
                moved = np.ascontiguousarray(value.transpose(self.to(range(rank))))
                inputs.append(self._constant(f"{name}{self.suffix}", moved))
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

    def shuffled(self, layer: Layer) -> tuple[Layer, Layer, int] | None:
        """Return the transposition and the last reshape of a channel shuffle that a Reshape begins, and its groups."""
        turn = self.graph.only_user(layer.outputs[0])
        back = self.graph.only_user(turn.outputs[0]) if turn is not None and turn.op == "Transpose" else None
        if turn is None or back is None or back.op != "Reshape" or back.inputs[0] != turn.outputs[0]:
            return None
        shapes = [self.specs[name].shape for name in (layer.inputs[0], layer.outputs[0], back.outputs[0])]
        if any(shape is None or not shape.is_static for shape in shapes):
            return None
        given, split, made = ([*shape] for shape in shapes if shape is not None)
        order = [0, 2, 1, *range(3, len(split))]
        if given != made or [split[0], *split[3:]] != [given[0], *given[2:]]:
            return None
        is_turned = [*(turn.attributes.get("perm") or ())] == order
        return (turn, back, split[1]) if is_turned and isinstance(split[1], int) else None

    def _transpose(self, layer: Layer) -> bool:
        """Turn a transposition between the two orders into a name for the twin."""
        rank = self._rank(layer.inputs[0])
        perm = list(layer.attributes.get("perm") or range(rank)[::-1])
        source, target = layer.inputs[0], layer.outputs[0]
        if perm == list(self.back(range(rank))):
            self.twins[target] = self._plain(source)
            return True
        if perm == list(self.to(range(rank))) and (source in self.twins or self._reshaped(source, self.to)):
            self._twin(source)
            self._name(source, target)
            return True
        return False

    def _moved(self, axis: int, rank: int) -> int:
        """Return the index of an axis in the order of twins."""
        return list(self.to(range(rank))).index(axis % rank)
