"""The run order of a model's layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from perframe.ir.layer import Layer


class Order:
    """Layers in run order. A change takes no longer in a long model: the tuple is made when it is asked for."""

    def __init__(self, layers: Iterable[Layer] = ()) -> None:
        self._layers: tuple[Layer, ...] | None = tuple(layers)
        self._slots = [[layer] for layer in self._layers]  # the layers that took the place of one
        self._slot_of = {layer: slot for slot in self._slots for layer in slot}

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers."""
        if self._layers is None:
            self._layers = tuple(chain.from_iterable(self._slots))
        return self._layers

    def append(self, layers: Sequence[Layer]) -> None:
        """Add layers at the end."""
        self._slots.append([])
        self._put(self._slots[-1], 0, layers)

    def insert(self, beside: Layer, layers: Sequence[Layer], after: bool) -> None:
        """Add layers before or after another one."""
        slot = self._slot_of[beside]
        self._put(slot, slot.index(beside) + after, layers)

    def replace(self, old: Layer, new: Sequence[Layer]) -> None:
        """Put layers at the place of another one."""
        self.insert(old, new, after=False)
        self.remove(old)

    def remove(self, layer: Layer) -> None:
        """Remove a layer."""
        self._layers = None
        self._slot_of.pop(layer).remove(layer)

    def _put(self, slot: list[Layer], at: int, layers: Sequence[Layer]) -> None:
        self._layers = None
        slot[at:at] = layers
        self._slot_of.update(dict.fromkeys(layers, slot))
