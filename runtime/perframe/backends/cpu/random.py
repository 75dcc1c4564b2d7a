"""Random numbers on the CPU, by NumPy's generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand

Draw = Callable[[np.random.Generator, Sequence[int], Mapping[str, Any], Any], Any]


def _generator(seed: float | None) -> np.random.Generator:
    """The seed is a float, and all its bits count."""
    return np.random.default_rng(None if seed is None else int(np.float64(seed).view(np.uint64)))


def _normal(generator: np.random.Generator, shape: Sequence[int], attributes: Mapping[str, Any], x: Any) -> Any:
    return generator.normal(attributes["mean"], attributes["scale"], shape)


def _uniform(generator: np.random.Generator, shape: Sequence[int], attributes: Mapping[str, Any], x: Any) -> Any:
    low, high = attributes["low"], attributes["high"]
    return low + (high - low) * generator.random(shape)


def _bernoulli(generator: np.random.Generator, shape: Sequence[int], attributes: Mapping[str, Any], x: Any) -> Any:
    return generator.random(shape) < x.astype(np.float64)


def _multinomial(generator: np.random.Generator, shape: Sequence[int], attributes: Mapping[str, Any], x: Any) -> Any:
    """Classes by their logarithms: the largest after Gumbel noise (Maddison et al., 2014), one sample at a time."""
    noise = generator.gumbel(size=(*shape, x.shape[1]))
    return np.argmax(x.astype(np.float64)[:, None] + noise, axis=2)


_DRAW: dict[str, Draw] = {
    "RandomNormal": _normal,
    "RandomNormalLike": _normal,
    "RandomUniform": _uniform,
    "RandomUniformLike": _uniform,
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Drawn in float64."""
    attributes = layer.declaration.bind(layer.attributes)
    given = inputs[0] if inputs else None
    drawn = _DRAW[layer.op](_generator(attributes["seed"]), tuple(outputs[0].shape), attributes, given)
    return [drawn.astype(outputs[0].dtype.numpy)]
