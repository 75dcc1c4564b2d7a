"""Layers get their data in another order of the dims, and so do the layers between them.

A reordered value is made when the first layer wants one. A transposition is added only where a layer wants a value in
the order that it does not have. A transposition of the model between the two orders becomes a name for the
reordered value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Layer, Model, Value
from perframe.passes.match import constant_of
from perframe.tensor.background import in_turns

Order = Callable[[Sequence[Any]], Sequence[Any]]
BY_OP = {
    **dict.fromkeys(("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"), "_reduction"),
    **dict.fromkeys(("Concat", "Split", "Softmax"), "_along_axis"),
    **dict.fromkeys(("Pad", "Resize", "Slice"), "_by_axes"),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear", "LookUp"), "_by_one_scale"),
    "QuantizedAdd": "_elementwise",
}


class Rewrite:
    """One walk over the layers, in order. `to` gives the dims of a reordered value, and `back` those of the value."""

    suffix = ":other"

    def __init__(self, model: Model, to: Order, back: Order) -> None:
        self.to, self.back = to, back
        self.model = model
        model.infer()
        self.reordered: dict[Value, Value] = {}
        self.fresh: set[Value] = set()  # reordered values that were not in the model before
        self.available = set(model.inputs)
        self.layers: list[Layer] = []
        self.dropped: list[Layer] = []
        convolved = [layer for layer in model.layers if layer.op == "Conv"]
        self.most = 5 if any(rank_of(layer.x) == 5 for layer in convolved) else 4

    def run(self) -> int:
        """Rewrite the model, and return the number of layers whose data has the other order now."""
        count = 0
        for layer in in_turns(self.model.layers):
            if layer in self.dropped:
                continue
            rewrite = self._choose(layer)
            if rewrite is None or not rewrite(layer):
                for value in layer.operands:
                    self._plain(value)
                self._add(layer)
            else:
                count += 1
        for value in self.model.outputs:
            self._plain(value)
        self.model.layers = self.layers
        return count

    # --- values in one order or the other ---

    def _add(self, layer: Layer) -> None:
        layer.link()
        self.layers.append(layer)
        self.available.update(layer.results)

    def _order(self, source: Value, target: Value, order: Order, plain: Value) -> None:
        """Add the layer that makes `target` from `source`: a Reshape if the order of the data is the same.

        One of them is the value `plain`, and the other is its reordered value.
        """
        shape, name = self._reshaped(plain, order), f"{target.name} in order"
        if shape is not None:
            constant = self._constant(f"shape of {target.name}", np.array(shape, np.int64))
            self._add(Layer("Reshape", name, [source, constant], [target], {"allowzero": int(shape[0] != 0)}))
        else:
            self._add(Layer("Transpose", name, [source], [target], {"perm": list(order(range(rank_of(plain))))}))

    def _reshaped(self, plain: Value, order: Order) -> list[int] | None:
        """Return the shape in an order that moves no data; None if there is none. A batch of 0 is kept."""
        dims = plain.spec.shape
        if dims is None or not all(isinstance(dim, int) for dim in dims[1:]) or (0 in dims and not dims.is_static):
            return None
        given = list(dims if order is self.to else self.to(dims))
        moved = [axis for axis in order(range(len(given))) if given[axis] != 1]
        if moved != sorted(moved):
            return None
        return [dim if isinstance(dim, int) else 0 for dim in order(given)]

    def _constant(self, name: str, array: NDArray[Any]) -> Value:
        return self.model.add_constant(name, array)

    def _name(self, source: Value, target: Value) -> None:
        """Make the reordered value of `source` the value `target`: by an Identity if other layers read it already, or
        if the model has it.
        """
        reordered = self.reordered[source]
        maker = reordered.producer
        if maker is not None and reordered in self.fresh and not reordered.users:
            maker.outputs = [target if value is reordered else value for value in maker.outputs]
            self.reordered[source] = target
            self.available.add(target)
        else:
            self._add(Layer("Identity", f"{target.name} unchanged", [reordered], [target]))

    def _plain(self, value: Value) -> Value:
        """Return the value in the order of the model; it is made from the reordered value if necessary."""
        if value not in self.available and value.constant is None:
            self._order(self.reordered[value], value, self.back, value)
        return value

    def _reordered(self, value: Value) -> Value:
        """Return the value in the other order; it is made if necessary."""
        if value not in self.reordered:
            array = value.constant
            if array is not None:
                moved = np.ascontiguousarray(array.transpose(self.to(range(array.ndim))))
                self.reordered[value] = self._constant(f"{value.name}{self.suffix}", moved)
            else:
                self.reordered[value] = self._fresh(value)
                self._order(value, self.reordered[value], self.to, value)
        return self.reordered[value]

    def _fresh(self, value: Value) -> Value:
        reordered = Value(f"{value.name}{self.suffix}")
        self.fresh.add(reordered)
        return reordered

    def _make(self, layer: Layer, inputs: Sequence[Value | None], **changes: object) -> bool:
        """Add the layer with these inputs, and with reordered values as outputs. Returns True."""
        for value in layer.results:
            self.reordered[value] = self._fresh(value)
        layer.inputs = inputs
        layer.outputs = [None if value is None else self.reordered[value] for value in layer.outputs]
        layer.attributes = {**layer.attributes, **changes}
        self._add(layer)
        return True

    # --- layers ---

    def _choose(self, layer: Layer) -> Callable[[Layer], bool] | None:
        """Return the method that rewrites a layer; None if the layer wants its values as they are."""
        if layer.op == "Transpose":
            return self._transpose if 3 <= rank_of(layer.x) <= self.most else None
        if not self._wants(layer) or (layer.outputs[1:] and layer.op != "Split"):
            return None
        if not 3 <= rank_of(layer.output) <= self.most:
            return None
        if layer.op in BY_OP:
            return getattr(self, BY_OP[layer.op])  # type: ignore[no-any-return]
        if layer.declaration.is_pointwise:
            return self._elementwise
        return None

    def _wants(self, layer: Layer) -> bool:
        """Whether a layer may be rewritten: one of its inputs has a reordered value."""
        return any(value in self.reordered for value in layer.operands)

    def _reduction(self, layer: Layer) -> bool:
        axes = constant_of(layer.axes)
        if axes is None or not layer.keepdims:
            return False
        rank = rank_of(layer.x)
        moved = np.array([self._moved(int(axis), rank) for axis in axes.reshape(-1)], np.int64)
        return self._make(layer, [self._reordered(layer.x), self._constant(f"axes of {layer.name}", moved)])

    def _along_axis(self, layer: Layer) -> bool:
        rank = rank_of(layer.input(0))
        data = layer.operands if layer.op == "Concat" else [layer.input(0)]
        rest = layer.inputs[len(data) :]
        if any(rank_of(value) != rank for value in data) or any(constant_of(value) is None for value in rest):
            return False
        return self._make(layer, [*map(self._reordered, data), *rest], axis=self._moved(layer.axis, rank))

    def _by_axes(self, layer: Layer) -> bool:
        """Rewrite a layer with a constant number for each axis, in the order of the dims."""
        rank, rest = rank_of(layer.x), layer.inputs[1:]
        given = [constant_of(value) for value in rest]
        if any(value is not None and array is None for value, array in zip(rest, given, strict=True)):
            return False
        listed = layer.axes
        if isinstance(listed, tuple | list):  # an attribute of Resize
            moved_axes = tuple(self._moved(axis, rank) for axis in listed)
            return self._make(layer, [self._reordered(layer.x), *rest], axes=moved_axes)
        if layer.op == "Slice" or (layer.op == "Pad" and listed is not None):
            every = np.arange(0 if given[0] is None else len(given[0]))
            axes = every if listed is None else listed.constant
            moved = np.array([self._moved(int(axis), rank) for axis in axes], np.int64)
            more = [*rest, None, None, None][:4]
            more[2] = self._constant(f"axes of {layer.name}", moved)
            return self._make(layer, [self._reordered(layer.x), *(more if more[3] is not None else more[:3])])
        inputs: list[Value | None] = [self._reordered(layer.x)]
        for value, array in zip(rest, given, strict=True):
            if value is None or array is None or array.size not in (rank, 2 * rank):
                inputs.append(value)
                continue
            moved = array.reshape(-1, rank)[:, list(self.to(range(rank)))].reshape(-1)
            inputs.append(self._constant(f"{value.name}{self.suffix}", moved))
        return self._make(layer, inputs)

    def _elementwise(self, layer: Layer) -> bool:
        rank = rank_of(layer.output)
        for value in layer.operands:
            shape = value.spec.shape
            if shape is None or (len(shape) not in (0, rank) and not self._is_small(value)):
                return False
        inputs: list[Value | None] = []
        for given in layer.inputs:
            if given is None or given.spec.shape == () or self._scalar(given):
                inputs.append(None if given is None else self._plain(given))
            elif rank_of(given) == rank:
                inputs.append(self._reordered(given))
            else:
                array = given.constant
                assert array is not None
                array = array.reshape((1,) * (rank - array.ndim) + array.shape)
                moved = np.ascontiguousarray(array.transpose(self.to(range(rank))))
                inputs.append(self._constant(f"{given.name}{self.suffix}", moved))
        return self._make(layer, inputs)

    def _by_one_scale(self, layer: Layer) -> bool:
        """Rewrite a layer whose further inputs are the same for all elements."""
        rest = layer.inputs[1:]
        if layer.op != "LookUp" and not all(self._scalar(value) for value in rest if value is not None):
            return False
        return self._make(layer, [self._reordered(layer.input(0)), *rest])

    def _scalar(self, value: Value) -> bool:
        """Whether a value is one number. It has no more dims than the value that it meets."""
        shape = value.spec.shape
        return shape is not None and shape.size == 1

    def _is_small(self, value: Value) -> bool:
        """Whether a value is available in either order: it is a constant or one number."""
        return value.constant is not None or self._scalar(value)

    def shuffled(self, layer: Layer) -> tuple[Layer, Layer, int] | None:
        """Return the transposition and the last reshape of a channel shuffle that a Reshape begins, and its groups."""
        turn = layer.output.only_user
        back = turn.output.only_user if turn is not None and turn.op == "Transpose" else None
        if turn is None or back is None or back.op != "Reshape" or back.x is not turn.output:
            return None
        shapes = [value.spec.shape for value in (layer.x, layer.output, back.output)]
        if any(shape is None or not shape.is_static for shape in shapes):
            return None
        given, split, made = ([*shape] for shape in shapes if shape is not None)
        order = [0, 2, 1, *range(3, len(split))]
        if given != made or [split[0], *split[3:]] != [given[0], *given[2:]]:
            return None
        is_turned = [*(turn.perm or ())] == order
        return (turn, back, split[1]) if is_turned and isinstance(split[1], int) else None

    def _transpose(self, layer: Layer) -> bool:
        """Turn a transposition between the two orders into a name for the reordered value."""
        rank, source, target = rank_of(layer.x), layer.input(0), layer.output
        perm = list(layer.perm or range(rank)[::-1])
        if perm == list(self.back(range(rank))):
            self.reordered[target] = self._plain(source)
        elif perm == list(self.to(range(rank))) and (source in self.reordered or self._reshaped(source, self.to)):
            layer.unlink()
            self._reordered(source)
            self._name(source, target)
        else:
            return False
        return True

    def _moved(self, axis: int, rank: int) -> int:
        """Return the index of an axis in the other order."""
        return list(self.to(range(rank))).index(axis % rank)


def rank_of(value: Value) -> int:
    """Return the number of dims; 0 if it is unknown."""
    shape = value.spec.shape
    return 0 if shape is None else len(shape)
