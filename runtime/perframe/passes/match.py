"""Queries of passes: which layer makes or reads a value, and whether a pass may change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.model import Layer, Model
from perframe.sizes.partial import PartialTensor
from perframe.tensor import DataType


class Graph:
    """The producers, users and specs of a model at the beginning of a pass. Call `refresh` after a change."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.refresh()

    def refresh(self) -> None:
        """Read producers and users again, and forget the specs."""
        self.relink()
        self._specs: dict[str, PartialTensor] | None = None

    def relink(self) -> None:
        """Read producers and users again, and keep the specs."""
        self.producers, self.users = self.model.producers(), self.model.users()
        self._reads = {id(layer): tuple(layer.inputs) for layer in self.model.layers}

    @property
    def specs(self) -> dict[str, PartialTensor]:
        """The spec of each value, inferred at the first use."""
        if self._specs is None:
            self._specs = self.model.infer()
        return self._specs

    def constant(self, name: str) -> NDArray[Any] | None:
        """Return the value of a constant, or None if `name` is not a constant."""
        return self.model.constants.get(name)

    def only_user(self, name: str) -> Layer | None:
        """Return the only layer that reads a value; None if there are more or none, or the model outputs the value."""
        users = self.users.get(name, [])
        return users[0] if len(users) == 1 and name not in self.model.output_names else None

    def producer_for(self, name: str, *families: str) -> Layer | None:
        """Return the layer that makes `name`, or None.

        The layer must belong to one of these families, `name` must be its first output, and only one layer may read it.
        """
        layer = self.producers.get(name)
        if layer is None or layer.family not in families or layer.outputs[0] != name or not self.only_user(name):
            return None
        return layer

    def all_float32(self, *layers: Layer) -> bool:
        """Whether all inputs and outputs of these layers are float32."""
        names = [name for layer in layers for name in (*layer.inputs, *layer.outputs) if name]
        return all(self.specs[name].dtype is DataType.FLOAT32 for name in names)

    def absorb(self, kept: Layer, absorbed: Layer) -> None:
        """Remove `absorbed`, the only reader of `kept`. `kept` takes over its output, and its position in the model."""
        self.producers.pop(kept.outputs[0], None)
        kept.outputs[0] = absorbed.outputs[0]
        self.producers[kept.outputs[0]] = kept
        layers = self.model.layers
        layers.remove(kept)
        layers[layers.index(absorbed)] = kept
        self._read(kept, kept.inputs)
        self._read(absorbed, ())
        self.learn(kept)

    def remove(self, layer: Layer) -> None:
        """Remove a layer whose output no layer needs any more."""
        self.model.layers.remove(layer)
        for name in layer.outputs:
            self.producers.pop(name, None)
        self._read(layer, ())

    def add(self, layer: Layer) -> None:
        """Note a new layer of the model. Its outputs have the specs that they had, or are inferred now."""
        self.producers.update((name, layer) for name in layer.outputs if name)
        self._read(layer, layer.inputs)
        self.learn(layer)
        if self._specs is not None and any(name and name not in self._specs for name in layer.outputs):
            made = layer.infer([self._specs[name] if name else None for name in layer.inputs])
            self._specs.update((name, spec) for name, spec in zip(layer.outputs, made, strict=False) if name)

    def _read(self, layer: Layer, names: Sequence[str]) -> None:
        """Note that the layer now reads these values and no others. Constants without a reader are dropped."""
        before = dict.fromkeys(self._reads.get(id(layer), ()))
        for name in before:
            if name:
                self.users[name] = [user for user in self.users[name] if user is not layer]
        for name in dict.fromkeys(names):
            if name:
                self.users.setdefault(name, []).append(layer)
        self._reads[id(layer)] = tuple(names)
        for name in before:
            if name and not self.users[name]:
                del self.users[name]
                self._drop(name)

    def _drop(self, name: str) -> None:
        """Drop a constant that no layer reads any more. Old weights would double the memory of the model."""
        if name in self.model.constants and name not in self.model.output_names:
            del self.model.constants[name]
            if self._specs is not None:
                self._specs.pop(name, None)

    def learn(self, layer: Layer) -> None:
        """Add the specs of the layer's new constants; all other specs stay."""
        if self._specs is not None:
            new = [name for name in layer.inputs if name and name not in self._specs]
            self._specs.update((name, PartialTensor.of(self.model.constants[name])) for name in new)


def scalar(value: NDArray[Any] | None) -> float | None:
    """Return the number in a constant of one float32 element; None for any other constant."""
    if value is None or value.size != 1 or value.dtype != np.float32:
        return None
    return float(value.reshape(()))


RANGE = 40  # powers of two
FACTOR = 12  # powers of two


def may_fold(*constants: NDArray[Any] | float) -> bool:
    """Whether constants may be multiplied with each other before the run.

    The order of products decides what overflows and what is lost below the least number. With finite constants whose
    largest numbers lie within 2^40 and 2^-40, only values do so that are near the end of float32's range anyway.
    """
    return all(_size_within(constant, RANGE) for constant in constants)


def may_move(factor: float) -> bool:
    """Whether a factor of an operand may become a factor of the product: values 2^12 times as large do not occur."""
    return _size_within(factor, FACTOR)


def _size_within(constant: NDArray[Any] | float, most: int) -> bool:
    sizes = np.abs(np.asarray(constant, np.float64))
    largest = sizes.max(initial=0.0)  # NaN if one is
    return bool(largest == 0 or 2.0**-most <= largest <= 2.0**most)


def in_float32(*constants: NDArray[Any]) -> list[NDArray[Any]] | None:
    """Return constants in float32; None if one of their numbers is not finite in float32."""
    with np.errstate(over="ignore"):
        made = [np.asarray(constant).astype(np.float32) for constant in constants]
    return made if all(np.isfinite(value).all() for value in made) else None


def channel_vector(value: NDArray[Any] | None, channels: int, rank: int, axis: int) -> NDArray[Any] | None:
    """Return a constant that broadcasts over a tensor of `rank` only along `axis`, as a vector of `channels` numbers.

    None for any other constant.
    """
    if value is None or value.dtype != np.float32:
        return None
    if value.size == 1 and value.ndim <= rank:
        return np.full(channels, value.reshape(()), np.float32)
    shape = (1,) * (rank - value.ndim) + value.shape
    if value.ndim > rank or value.size != channels or shape[axis] != channels:
        return None
    return value.reshape(channels)


def channel_affine(
    graph: Graph, layer: Layer, source: str, channels: int, rank: int, axis: int = 1
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return (scale, shift) in float64 if the layer scales and shifts each channel of `source`, else None."""
    if layer.op == "BatchNormalization":
        if layer.inputs[0] != source or axis != 1:
            return None
        given = [graph.constant(name) for name in layer.inputs[1:5]]
        if any(value is None or value.dtype != np.float32 for value in given):
            return None
        scale, bias, mean, variance = (value.astype(np.float64) for value in given if value is not None)
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(variance + layer.attributes.get("epsilon", 1e-5))
            return factor, bias - mean * factor
    if layer.op == "MultiplyAdd":
        given = [channel_vector(graph.constant(name), channels, rank, axis) for name in layer.inputs[1:]]
        if layer.inputs[0] != source or any(value is None for value in given):
            return None
        scale, shift = (value.astype(np.float64) for value in given if value is not None)
        return scale, shift
    if layer.op not in ("Mul", "Add"):
        return None
    other = layer.inputs[1] if layer.inputs[0] == source else layer.inputs[0]
    vector = channel_vector(graph.constant(other), channels, rank, axis)
    if vector is None:
        return None
    number = vector.astype(np.float64)
    return (number, np.zeros(channels)) if layer.op == "Mul" else (np.ones(channels), number)
