"""Where the layers of an optimized model come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from perframe.ir import Layer, Model, Value
from perframe.ir.epilogue import Stage
from perframe.ir.report import Origin


class _State(NamedTuple):
    """What decides the values that a layer makes."""

    op: str
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value | None, ...]
    epilogue: tuple[Stage, ...]


class Origins:
    """Follows the layers of a model from pass to pass.

    A layer that a pass made computes its outputs from its inputs. In the model before the pass, the layers between
    these values computed the same: the new layer comes from them.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._file = [_text(layer) for layer in model.layers]
        self._of: dict[Layer, tuple[int, ...]] = {layer: (index,) for index, layer in enumerate(model.layers)}
        self._remember()

    def _remember(self) -> None:
        model = self._model
        self._before = {layer: _State(layer.op, layer.inputs, layer.outputs, layer.epilogue) for layer in model.layers}

    def follow(self) -> None:
        """Follow the layers through a pass that has just changed the model."""
        made = {value: layer for layer, state in self._before.items() for value in state.outputs if value}
        now: dict[Layer, tuple[int, ...]] = {}
        names = {layer.name: layer for layer in self._before}
        for layer in self._model.layers:
            before = self._before.get(layer)
            if before == _State(layer.op, layer.inputs, layer.outputs, layer.epilogue):
                now[layer] = self._of[layer]
                continue
            between = self._between(layer, made)
            if not between:  # a value that was not there before
                between = {layer} if before is not None else {names[layer.name]} if layer.name in names else set()
            now[layer] = tuple(sorted({source for one in between for source in self._of[one]}))
        self._of = now
        self._remember()

    def _between(self, layer: Layer, made: Mapping[Value, Layer]) -> set[Layer]:
        """The layers before the pass that computed the layer's outputs from its inputs."""
        stop, found = set(layer.operands), set[Layer]()
        waiting = [value for value in layer.results if value in made]
        while waiting:
            maker = made[waiting.pop()]
            if maker not in found:
                found.add(maker)
                waiting += [v for v in self._before[maker].inputs if v is not None and v in made and v not in stop]
        return found

    def result(self) -> tuple[tuple[Origin, ...], tuple[str, ...]]:
        """Return the origins of the current layers, and the layers of the file that are in none of them."""
        of = [self._of[layer] for layer in self._model.layers]
        origins = tuple(
            Origin(_text(layer), tuple(self._file[index] for index in sources))
            for layer, sources in zip(self._model.layers, of, strict=True)
        )
        used = {index for sources in of for index in sources}
        return origins, tuple(text for index, text in enumerate(self._file) if index not in used)


def _text(layer: Layer) -> str:
    """A layer by its name and its operators."""
    return f"{layer.name} ({' + '.join((layer.op, *_stages(layer)))})"


def _stages(layer: Layer) -> Sequence[str]:
    return [stage.op for stage in layer.epilogue]
