"""Convolutions and the layers between them get their data in blocks of four channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.layers.blocks import BLOCK, blocks_of
from perframe.passes.layout.channel_order import Order, Rewrite, rank_of
from perframe.passes.match import constant_of
from perframe.tensor import DataType

POOLS = ("MaxPool", "AveragePool")
GLOBAL = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}
COLOURS = 3  # the most channels of a picture that a convolution reads in planes
MOST = 2  # times the products of a convolution that its filled blocks may take


def run(model: Model, evaluate: Evaluate) -> int:
    """Rewrite the model, and return the number of layers whose data is in blocks now."""
    return _ChannelBlocks(model).run()


class _ChannelBlocks(Rewrite):
    """Values of (batch, channels, *spatial) are reordered to (batch, blocks, *spatial, 4).

    Only a convolution may fill a block up; every other reordered value has whole blocks. So no layer meets the filling.
    """

    suffix = ":blocks"

    def __init__(self, model: Model) -> None:
        super().__init__(model, lambda dims: (*dims, BLOCK), lambda dims: dims[:-1])
        self.most = 4

    # --- values in blocks or not ---

    def _channels(self, value: Value) -> int:
        """The channels of a value; 0 if they are unknown."""
        shape = value.spec.shape
        channels = shape[1] if shape is not None and len(shape) > 1 else 0
        return channels if isinstance(channels, int) else 0

    def _is_whole(self, value: Value) -> bool:
        """Whether a value may be reordered: its channels make whole blocks."""
        channels, rank = self._channels(value), rank_of(value)
        return 3 <= rank <= self.most and channels > 0 and channels % BLOCK == 0

    def _order(self, source: Value, target: Value, order: Order, plain: Value) -> None:
        """Add the layer that makes `target` from `source`: a Reshape if there is one pixel.

        One of them is the value `plain`, and the other is the reordered one.
        """
        shape, name, channels = plain.spec.shape, f"{target.name} in order", self._channels(plain)
        if shape is not None and self._is_whole(plain) and all(dim == 1 for dim in shape[2:]):
            ones = [1] * (len(shape) - 2)
            wanted = [0, channels // BLOCK, *ones, BLOCK] if order is self.to else [0, channels, *ones]
            constant = self._constant(f"shape of {target.name}", np.array(wanted, np.int64))
            self._add(Layer("Reshape", name, [source, constant], [target]))
        elif order is self.to:
            self._add(Layer("ToBlocks", name, [source], [target]))
        else:
            self._add(Layer("FromBlocks", name, [source], [target], {"channels": channels}))

    def _blocks(self, value: NDArray[Any], rank: int) -> NDArray[Any] | None:
        """A constant that is broadcast to this number of dims, in blocks; None if its channels make no whole blocks."""
        value = value.reshape((1,) * (rank - value.ndim) + value.shape)
        channels = value.shape[1]
        if channels == 1:
            return value[..., None]
        if channels % BLOCK:
            return None
        split = value.reshape(value.shape[0], channels // BLOCK, BLOCK, *value.shape[2:])
        return np.ascontiguousarray(np.moveaxis(split, 2, -1))

    def _moved(self, axis: int, rank: int) -> int:
        return axis % rank

    # --- layers ---

    def _choose(self, layer: Layer) -> Callable[[Layer], bool] | None:
        """Return the method that rewrites a layer; None if the layer wants its values as they are."""
        if layer.op == "Transpose" or layer.channels_last or layer.on_host:
            return None
        if layer.op == "Conv":
            return self._conv if self._fits(layer) else None
        if not layer.outputs or layer.outputs[1:] or not self._wants(layer):
            return None
        if layer.op == "Reshape" and self._is_whole(layer.input(0)):
            return self._shuffle
        if layer.op == "DepthToSpace" and self._is_whole(layer.input(0)):
            return self._spread
        if not all(map(self._is_whole, layer.results)) or not self._is_whole(layer.input(0)):
            return self._elementwise if self._is_mixed(layer) else None
        if layer.op in POOLS:
            return self._pool
        if layer.op in GLOBAL:
            return self._global
        return super()._choose(layer)

    def _is_mixed(self, layer: Layer) -> bool:
        """Whether an elementwise layer of whole blocks begins with another operand, as 1 - x does."""
        return layer.declaration.is_pointwise and self._is_whole(layer.output)

    def _fits(self, layer: Layer) -> bool:
        """Whether there is a kernel for a convolution's groups, and its blocks are not mostly filling."""
        x: Value = layer.x
        if any(value and value.constant is None for value in layer.inputs[1:]) or layer.inputs[3:]:
            return False
        if not 3 <= rank_of(x) <= 4:
            return False
        if x.spec.dtype is not DataType.FLOAT32 or len(layer.outputs) > 1 or x.constant is not None:
            return False
        outputs, depth = layer.w.constant.shape[:2]
        groups = layer.group
        if not outputs or not depth:
            return False
        if groups > 1:
            is_depthwise = depth == 1 and outputs == groups
            return outputs % BLOCK == 0 if is_depthwise else _together(groups, depth, outputs // groups) > 0
        taken = depth if depth <= COLOURS else blocks_of(depth) * BLOCK
        return bool(taken * blocks_of(outputs) * BLOCK <= MOST * depth * outputs)

    def _conv(self, layer: Layer) -> bool:
        x, depth = layer.input(0), layer.w.constant.shape[1]
        groups = layer.group
        if groups > 1 and depth > 1:
            self._merge_groups(layer)
        source = self._plain(x) if depth * groups <= COLOURS else self._reordered(x)
        layer.op, made = "BlockConv", layer.output
        self._make(layer, [source, *layer.inputs[1:]], map_size=self._map_size(made))
        if not self._is_whole(made):
            self._order(self.reordered.pop(made), made, self.back, made)
        return True

    def _map_size(self, value: Value) -> int:
        """The number of a value's pixels if it is the same in every run; else 0."""
        shape = value.spec.shape
        return math.prod(dim if isinstance(dim, int) else 0 for dim in (shape or (0, 0, 0))[2:])

    def _merge_groups(self, layer: Layer) -> None:
        """Make fewer groups of whole blocks; their weights are zero where a channel met none before."""
        w, groups = layer.w.constant, layer.group
        outputs, depth = w.shape[0] // groups, w.shape[1]
        count = _together(groups, depth, outputs)
        if count == 1:
            return
        merged = np.zeros((groups // count, count, outputs, count, depth, *w.shape[2:]), w.dtype)
        for k in range(count):
            merged[:, k, :, k] = w.reshape(groups // count, count, outputs, depth, *w.shape[2:])[:, k]
        array = merged.reshape(w.shape[0], count * depth, *w.shape[2:])
        layer.set_input(1, self._constant(f"{layer.w.name} in {groups // count} groups", array))
        layer.attributes = {**layer.attributes, "group": groups // count}

    def _shuffle(self, layer: Layer) -> bool:
        """Rewrite a channel shuffle: a reshape of channels to (groups, channels), a transposition, a reshape back."""
        found = self.shuffled(layer)
        if found is None:
            return False
        turn, back, groups = found
        source, target = self._reordered(layer.x), back.output
        self.reordered[target] = self._fresh(target)
        self._add(Layer("ShuffleBlocks", turn.name, [source], [self.reordered[target]], {"groups": groups}))
        self.dropped += [turn, back]
        return True

    def _spread(self, layer: Layer) -> bool:
        """Rewrite a DepthToSpace that keeps whole blocks, or one that makes pixels of each block."""
        source, size = layer.input(0), layer.blocksize
        if layer.mode == "DCR":
            layer.op = "BlocksToSpace" if self._is_whole(layer.output) else layer.op
            return layer.op == "BlocksToSpace" and self._make(layer, [self._reordered(source)])
        if size != 2 and size % BLOCK:
            return False
        layer.op, layer.inputs = "BlocksToSpace", [self._reordered(source)]
        self._add(layer)
        return True

    def _reordered(self, value: Value) -> Value:
        """Return the value in the other order; it is made if necessary. A value without whole blocks is not kept,
        since only a convolution can read it.
        """
        if value.constant is not None and value not in self.reordered:
            blocks = self._blocks(value.constant, rank_of(value))
            assert blocks is not None
            self.reordered[value] = self._constant(f"{value.name}{self.suffix}", blocks)
        reordered = super()._reordered(value)
        return reordered if value.constant is not None or self._is_whole(value) else self.reordered.pop(value)

    def _pool(self, layer: Layer) -> bool:
        """Pool over one more dim, that of the channels of a block."""
        given = layer.attributes
        changes: dict[str, Any] = {
            name: (*given[name], 1) for name in ("kernel_shape", "strides", "dilations") if given.get(name)
        }
        pads = given.get("pads")
        if pads:
            half = len(pads) // 2
            changes["pads"] = (*pads[:half], 0, *pads[half:], 0)
        return self._make(layer, [self._reordered(layer.x)], **changes)

    def _global(self, layer: Layer) -> bool:
        axes = np.arange(2, rank_of(layer.input(0)))
        layer.op = GLOBAL[layer.op]
        constant = self._constant(f"axes of {layer.name}", axes.astype(np.int64))
        return self._make(layer, [self._reordered(layer.input(0)), constant], keepdims=1)

    def _reduction(self, layer: Layer) -> bool:
        axes, rank = constant_of(layer.axes), rank_of(layer.x)
        spatial = axes is not None and axes.size > 0 and all(int(axis) % rank >= 2 for axis in axes.reshape(-1))
        return spatial and super()._reduction(layer)

    def _along_axis(self, layer: Layer) -> bool:
        """Rewrite a Concat of whole blocks, or a layer along another axis than that of the channels."""
        axis = layer.axis % rank_of(layer.input(0))
        if layer.op == "Split" or (axis == 1 and layer.op != "Concat"):
            return False
        data = layer.operands if layer.op == "Concat" else layer.operands[:1]
        return all(map(self._is_whole, data)) and super()._along_axis(layer)

    def _by_axes(self, layer: Layer) -> bool:
        """Rewrite a layer with a constant number for each axis; it may not touch the channels."""
        rank, rest = rank_of(layer.x), layer.inputs[1:]
        given = [constant_of(value) for value in rest]
        if any(value is not None and array is None for value, array in zip(rest, given, strict=True)):
            return False
        if layer.op == "Slice":
            return self._slice(layer, given, rank)
        if layer.axes is not None:
            return False
        inputs: list[Value | None] = [self._reordered(layer.x)]
        for value, array in zip(rest, given, strict=True):
            if value is None or array is None or array.size == 1 or not array.size:
                inputs.append(value)
                continue
            more = self._with_block(layer, array, rank)
            if more is None:
                return False
            inputs.append(self._constant(f"{value.name}{self.suffix}", more))
        return self._make(layer, inputs)

    def _with_block(self, layer: Layer, value: NDArray[Any], rank: int) -> NDArray[Any] | None:
        """The numbers of all axes and one more, that of the channels of a block; None if blocks would be cut."""
        if layer.op == "Pad" and value.size == 2 * rank:
            amounts = np.pad(value.reshape(2, rank), ((0, 0), (0, 1)))
            is_constant = layer.mode == "constant"
            if amounts[:, 0].any() or (amounts[:, 1] % BLOCK).any() or (amounts[:, 1].any() and not is_constant):
                return None
            amounts[:, 1] //= BLOCK
            return amounts.reshape(-1)
        if layer.op == "Resize" and value.size == rank:
            if value.dtype.kind == "f":
                return np.append(value, value.dtype.type(1)) if (value[:2] == 1).all() else None
            return np.append([value[0], value[1] // BLOCK], [*value[2:], BLOCK]).astype(value.dtype)
        return None

    def _slice(self, layer: Layer, given: Sequence[NDArray[Any] | None], rank: int) -> bool:
        """Rewrite a Slice whose pieces of channels are whole blocks."""
        starts, ends, axes, steps = (*given, None, None)[:4]
        if starts is None or ends is None:
            return False
        axes = np.arange(starts.size) if axes is None else axes % rank
        steps = np.ones(starts.size, np.int64) if steps is None else steps
        if 0 in axes:
            return False
        first, last = starts.astype(np.int64), ends.astype(np.int64)
        for at in np.flatnonzero(axes == 1):
            channels = self._channels(layer.x)
            begin, end = (int(n) + channels * (n < 0) for n in (first[at], last[at]))
            begin, end = min(max(begin, 0), channels), min(max(end, 0), channels)
            if begin % BLOCK or end % BLOCK or steps[at] != 1:
                return False
            first[at], last[at] = begin // BLOCK, end // BLOCK
        arrays = {"starts": first, "ends": last, "axes": axes.astype(np.int64), "steps": steps.astype(np.int64)}
        numbers = [self._constant(f"{what} of {layer.name}", array) for what, array in arrays.items()]
        return self._make(layer, [self._reordered(layer.x), *numbers])

    def _elementwise(self, layer: Layer) -> bool:
        rank, channels = rank_of(layer.output), self._channels(layer.output)
        inputs: list[Value | None] = []
        for given in layer.inputs:
            shape = None if given is None else given.spec.shape
            if given is None or (shape is not None and len(shape) <= 1 and shape.size == 1):
                inputs.append(None if given is None else self._plain(given))
            elif given.constant is not None:
                blocks = self._blocks(given.constant, rank)
                if blocks is None:
                    return False
                inputs.append(self._constant(f"{layer.name}{self.suffix}", blocks))
            elif shape is None or len(shape) != rank or self._channels(given) != channels:
                return False
            else:
                inputs.append(self._reordered(given))
        return self._make(layer, inputs)


def _together(groups: int, depth: int, outputs: int) -> int:
    """The number of groups that make whole blocks of inputs and outputs together; 0 if they would be too many."""
    for count in range(1, MOST + 1):
        if groups % count == 0 and count * depth % BLOCK == 0 and count * outputs % BLOCK == 0:
            return count
    return 0
