"""Layers between convolutions in channels-last models, such as TensorFlow's, get the channels as their second dim.

There each convolution and each pool stands between two transpositions. This pass lets the layers in between have their
channels second too, so that most transpositions meet and vanish, and other passes find a convolution beside its
activation and its padding.
"""

from __future__ import annotations

from collections.abc import Sequence

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.channels_last import first, last
from perframe.passes.layout.channel_order import BY_OP, Rewrite, rank_of
from perframe.tensor.background import in_turns


def run(model: Model, evaluate: Evaluate) -> int:
    """Rewrite the model if that removes transpositions. Returns how many it removed."""
    before = _transpositions(model.layers)
    if before < 2:
        return 0
    trial = model.copy()
    _MoveChannels(trial).run()
    removed = before - _transpositions(trial.layers)
    if removed <= 0:
        trial.layers = ()  # unlinked layers are freed at once
        return 0
    model.take_over(trial)
    return removed


def _transpositions(layers: Sequence[Layer]) -> int:
    return sum(layer.op == "Transpose" for layer in layers)


class _MoveChannels(Rewrite):
    """Values have their channels last, and reordered values have them second."""

    suffix = ":second"

    def __init__(self, model: Model) -> None:
        super().__init__(model, first, last)
        self.wanted: set[Value] = set()  # values that layers read in the other order only
        for layer in in_turns(reversed(model.layers)):
            for value in layer.results:
                if value.users and not value.is_output and all(map(self._reads_twin, value.users)):
                    self.wanted.add(value)

    def _reads_twin(self, layer: Layer) -> bool:
        if layer.op == "Transpose":
            rank = rank_of(layer.x)
            return 3 <= rank <= self.most and tuple(layer.perm or ()) == first(range(rank))
        return self._moves(layer) and layer.output in self.wanted

    def _moves(self, layer: Layer) -> bool:
        return layer.op in BY_OP or layer.declaration.is_pointwise

    def _wants(self, layer: Layer) -> bool:
        return super()._wants(layer) or (bool(layer.inputs) and layer.output in self.wanted)
