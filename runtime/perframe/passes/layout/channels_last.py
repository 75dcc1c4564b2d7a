"""Convolutions, pools and the layers between them get the channels as their last dim."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from perframe.ir import Evaluate, Layer, Model
from perframe.ir.channels_last import first, last
from perframe.passes.layout.channel_order import Rewrite, rank_of
from perframe.tensor import DataType

POOLS = ("MaxPool", "AveragePool", "QuantizedMean")
GLOBAL = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}
COLOURS = 3  # the most channels of a picture that stays in planes
DTYPES = (DataType.FLOAT32, DataType.FLOAT16, DataType.UINT8, DataType.INT8)  # of a convolution


def run(model: Model, evaluate: Evaluate) -> int:
    """Rewrite the model, and return the number of layers that have their channels last now."""
    return _ChannelsLast(model).run()


class _ChannelsLast(Rewrite):
    """Values have their channels second, and reordered values have them last."""

    suffix = ":last"

    def __init__(self, model: Model) -> None:
        super().__init__(model, last, first)

    def _choose(self, layer: Layer) -> Callable[[Layer], bool] | None:
        """Return the method that rewrites a layer; None if the layer wants its channels second."""
        rank = rank_of(layer.inputs[0]) if layer.inputs and layer.inputs[0] else 0
        if (
            layer.op in ("Conv", "ConvTranspose", "QuantizedConv")
            and not layer.outputs[1:]
            and 3 <= rank <= (5 if layer.op == "Conv" else 4)
            and layer.x.spec.dtype in DTYPES
        ):
            return self._window if layer.input(1).constant is not None and not self._of_colours(layer) else None
        if self._wants(layer) and not layer.outputs[1:]:
            rank = rank_of(layer.output)
            if layer.op == "Reshape" and 3 <= rank <= 5:
                return self._shuffle
            if layer.op in POOLS and 3 <= rank <= self.most:
                return self._window
            if layer.op in GLOBAL and 3 <= rank <= self.most:
                return self._global
        return super()._choose(layer)

    def _of_colours(self, layer: Layer) -> bool:
        """Whether a convolution makes a few planes from a few planes. They would fill a small part of each vector with
        their channels last, while vectors along the lines are full.
        """
        if layer.op != "Conv" or layer.x in self.reordered or rank_of(layer.x) > 4:
            return False
        outputs, depth = layer.w.constant.shape[:2]
        few: bool = max(outputs, depth * layer.group) <= COLOURS
        return few and max(layer.strides or (1,)) == 1

    def _window(self, layer: Layer) -> bool:
        layer.channels_last = True
        inputs = [
            self._reordered(value) if value is not None and layer.declaration.is_spatial(index) else value
            for index, value in enumerate(layer.inputs)
        ]
        return self._make(layer, inputs)

    def _global(self, layer: Layer) -> bool:
        axes = list(range(1, rank_of(layer.input(0)) - 1))
        constant = self._constant(f"axes of {layer.name}", np.array(axes, np.int64))
        layer.op = GLOBAL[layer.op]
        return self._make(layer, [self._reordered(layer.input(0)), constant], keepdims=1)

    def _shuffle(self, layer: Layer) -> bool:
        """Rewrite a channel shuffle: a reshape of channels to (groups, channels), a transposition, a reshape back."""
        found = self.shuffled(layer)
        given = layer.x.spec.shape
        if found is None or given is None or not isinstance(given[1], int):
            return False
        turn, back, groups = found
        channels = given[1] // groups
        source, last_shape = self._reordered(layer.x), [given[0], *given[2:]]
        apart = self._constant(f"shape of {layer.name}", np.array([*last_shape, groups, channels], np.int64))
        whole = self._constant(f"shape of {back.name}", np.array([*last_shape, given[1]], np.int64))
        rank = len(given) + 1
        made = [self._fresh(old.output) for old in (layer, turn, back)]
        self._add(Layer("Reshape", layer.name, [source, apart], [made[0]]))
        perm = [*range(rank - 2), rank - 1, rank - 2]
        self._add(Layer("Transpose", turn.name, [made[0]], [made[1]], {"perm": perm}))
        self._add(Layer("Reshape", back.name, [made[1], whole], [made[2]]))
        self.reordered[back.output] = made[2]
        self.dropped += [turn, back]
        return True
