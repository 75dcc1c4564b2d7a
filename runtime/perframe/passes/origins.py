"""Where the layers of an optimized model come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from perframe.model import Layer, Model
from perframe.model.report import Origin


class Origins:
    """Follows the layers of a model from pass to pass.

    A layer that a pass made computes its outputs from its inputs. In the model before the pass, the layers between
    these values computed the same: the new layer comes from them.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._file = [_text(layer) for layer in model.layers]
        self._of: dict[int, tuple[int, ...]] = {id(layer): (index,) for index, layer in enumerate(model.layers)}
        self._remember()

    def _remember(self) -> None:
        model = self._model
        self._layers = list(model.layers)  # alive, so that no other object gets the id of one
        self._before = [_copy(layer) for layer in model.layers]
        self._constants = set(model.constants)

    def follow(self) -> None:
        """Follow the layers through a pass that has just changed the model."""
        made = {name: index for index, layer in enumerate(self._before) for name in layer.outputs if name}
        now: dict[int, tuple[int, ...]] = {}
        position = {id(layer): index for index, layer in enumerate(self._layers)}
        names = {layer.name: index for index, layer in enumerate(self._before)}
        for layer in self._model.layers:
            index = position.get(id(layer))
            if index is not None and _computes_as_before(self._before[index], layer):
                now[id(layer)] = self._of[id(layer)]
                continue
            between = self._between(layer.outputs, layer.inputs, made)
            if not between:  # a value that was not there before
                between = {index} if index is not None else {names[layer.name]} if layer.name in names else set()
            sources = {source for one in between for source in self._of[id(self._layers[one])]}
            now[id(layer)] = tuple(sorted(sources))
        self._of = now
        self._remember()

    def _between(self, outputs: Iterable[str], inputs: Iterable[str], made: Mapping[str, int]) -> set[int]:
        """The layers before the pass that computed these outputs from these inputs."""
        stop, found = set(inputs), set[int]()
        waiting = [name for name in outputs if name in made]
        while waiting:
            index = made[waiting.pop()]
            if index not in found:
                found.add(index)
                waiting += [name for name in self._before[index].inputs if name in made and name not in stop]
        return found

    def result(self) -> tuple[tuple[Origin, ...], tuple[str, ...]]:
        """Return the origins of the current layers, and the layers of the file that are in none of them."""
        of = [self._of[id(layer)] for layer in self._model.layers]
        origins = tuple(
            Origin(_text(layer), tuple(self._file[index] for index in sources))
            for layer, sources in zip(self._model.layers, of, strict=True)
        )
        used = {index for sources in of for index in sources}
        return origins, tuple(text for index, text in enumerate(self._file) if index not in used)


def _copy(layer: Layer) -> Layer:
    return replace(layer, inputs=list(layer.inputs), outputs=list(layer.outputs), attributes=dict(layer.attributes))


def _computes_as_before(before: Layer, layer: Layer) -> bool:
    """Whether a layer is what it was, other names of its inputs' constants aside."""
    same = (before.op, before.outputs, before.inputs) == (layer.op, layer.outputs, layer.inputs)
    return same and before.epilogue == layer.epilogue


def _text(layer: Layer) -> str:
    """A layer by its name and its operators."""
    return f"{layer.name} ({' + '.join((layer.op, *_stages(layer)))})"


def _stages(layer: Layer) -> Sequence[str]:
    return [stage.op for stage in layer.epilogue]
