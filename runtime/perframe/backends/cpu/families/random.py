"""Random numbers on the CPU, from the generator that all backends share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.random import Drawing, Key

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key: Key, first: Any, second: Any) -> tuple[Any, Any]:
    """Return two words for each counter of two words. Arrays are uint32, and their sums wrap around."""
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    a, b = first + keys[0], second + keys[1]
    for block in range(5):
        for bits in _ROTATIONS[block % 2]:
            a = a + b
            b = (b << np.uint32(bits) | b >> np.uint32(32 - bits)) ^ a
        a, b = a + keys[(block + 1) % 3], b + (keys[(block + 2) % 3] + block + 1) % 2**32
    return a, b


def _units(key: Key, count: int, dtype: Any) -> tuple[Any, Any]:
    """Two numbers in 0..1 for each element, with as many bits as the dtype holds: 53 for float64, else 24."""
    elements = np.arange(count, dtype=np.uint32)
    words = threefry(key, elements, np.zeros_like(elements))
    if dtype != np.float64:
        first, second = ((word >> np.uint32(8)).astype(np.float32) * np.float32(2**-24) for word in words)
        return first, second
    return _wide(*words), _wide(*threefry(key, elements, np.ones_like(elements)))


def _wide(a: Any, b: Any) -> Any:
    return ((a.astype(np.uint64) << np.uint64(21)) | (b >> np.uint32(11)).astype(np.uint64)) * 2.0**-53


def _normal(form: Drawing, units: tuple[Any, Any], shape: Sequence[int], x: Any) -> Any:
    radius = np.sqrt(-2 * np.log1p(-units[0]))
    return form.first + form.second * radius * np.cos(2 * np.pi * units[1])


def _uniform(form: Drawing, units: tuple[Any, Any], shape: Sequence[int], x: Any) -> Any:
    return form.first + form.second * units[0]


def _events(form: Drawing, units: tuple[Any, Any], shape: Sequence[int], x: Any) -> Any:
    return units[0] < x.astype(units[0].dtype).reshape(-1)


def _classes(form: Drawing, units: tuple[Any, Any], shape: Sequence[int], x: Any) -> Any:
    """Draw the first class at which the running sum of chances exceeds a random part of their total."""
    wide = x.astype(units[0].dtype)
    sums = np.cumsum(np.exp(wide - wide.max(1, keepdims=True, initial=-np.inf)), axis=1)
    rows = zip(sums, units[0].reshape(shape), strict=True)
    return np.array([np.searchsorted(row, unit * row[-1:], "right") for row, unit in rows])


_DRAW: dict[str, Callable[[Drawing, tuple[Any, Any], Sequence[int], Any], Any]] = {
    "normal": _normal,
    "uniform": _uniform,
    "events": _events,
    "classes": _classes,
}


def compute(layer: LayerLike, form: Drawing, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Draw in float32. Draw in float64 if the result has that dtype or, for events and classes, the input."""
    y, x = outputs[0], inputs[0] if inputs else np.zeros(0)
    low, high = np.random.default_rng().integers(1 << 32, size=2, dtype=np.uint64)
    key = (int(low), int(high)) if form.key is None else form.key
    given = x.dtype if form.kind in ("events", "classes") else y.dtype.numpy
    drawn = _DRAW[form.kind](form, _units(key, y.shape.size, given), y.shape, x)
    return [np.asarray(drawn).astype(y.dtype.numpy).reshape(y.shape)]
