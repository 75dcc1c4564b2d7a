"""A Fourier transform of a known length becomes a product with its matrix, which shaders compute ten times faster.

A transform along the last dim of a signal is a matrix product. One of frames, which may overlap, is a convolution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.declaration import normalize_axis
from perframe.ir.sizes.partial import DynamicTensorShape, derived
from perframe.ir.sizes.size import at_least
from perframe.passes.lower.substitute import Substitute
from perframe.passes.match import constant_of
from perframe.tensor import DataType

Array = NDArray[Any]

MOST_WEIGHTS = 1 << 22  # elements of a matrix


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace the transforms, and return their number."""
    changes = 0
    for layer in model.walk():
        if layer.op in ("DFT", "STFT") and layer.is_linked and not layer.epilogue:
            made = _SpectralProduct(model, layer, evaluate).layers()
            if made:
                model.replace(layer, *made)
                changes += 1
    return changes


class _SpectralProduct(Substitute):
    """The layers that replace one transform."""

    def __init__(self, model: Model, layer: Layer, evaluate: Evaluate) -> None:
        super().__init__(model, layer)
        self._evaluate, self._inputs = evaluate, layer.declaration.complete(layer.inputs)

    def layers(self) -> list[Layer]:
        """The layers; none if the matrix is not known, or is too large."""
        x = self._layer.input(0)
        known = [value.constant is not None for value in self._layer.operands[1:]]
        if x.spec.shape is None or x.spec.dtype is not DataType.FLOAT32 or not all(known):
            return []
        made = self._of_a_line(x, x.spec.shape) if self._layer.op == "DFT" else self._of_frames(x, x.spec.shape)
        if made:
            self._made[-1].outputs = self._layer.outputs
        return self._made

    def _of_a_line(self, x: Value, shape: DynamicTensorShape) -> bool:
        axis, rank, (size, parts) = constant_of(self._inputs[2]), len(shape), shape[-2:]
        at = rank - 2 if axis is None else normalize_axis(int(axis.item()), rank)
        if rank < 3 or at != rank - 2 or not isinstance(size, int) or not isinstance(parts, int) or not size:
            return False
        if (2 * size) ** 2 > MOST_WEIGHTS:
            return False
        signals = np.eye(size * parts, dtype=np.float32).reshape(*(1,) * (rank - 3), -1, size, parts)
        matrix = self._transformed(signals)
        outer = [0] * (rank - 2)  # dims that stay
        rows = self._then("Reshape", x, self._ints("rows", [*outer, size * parts]))
        made = self._then("MatMul", rows, self._weights(matrix.reshape(size * parts, -1)))
        self._then("Reshape", made, self._ints("parts", [*outer, *matrix.shape[-2:]]))
        return True

    def _of_frames(self, x: Value, shape: DynamicTensorShape) -> bool:
        step, window, given = (constant_of(value) for value in self._inputs[1:])
        length = shape[1] if window is None else window.size
        length = length if given is None else int(given.item())
        if not isinstance(length, int) or not 0 < length**2 <= MOST_WEIGHTS or shape[2:] not in ((), (1,)):
            return False
        if step is None or shape[1] is None or derived(lambda size: at_least(size, length), shape[1]) != shape[1]:
            return False  # a signal that is too short has no frames, and a convolution refuses it
        bins = self._transformed(np.eye(length, dtype=np.float32)).reshape(length, -1)
        if shape[2:]:
            line = self._then("Transpose", x, perm=(0, 2, 1))
        else:
            line = self._then("Unsqueeze", x, self._ints("axis", [1]))
        weights = self._weights(bins.T[:, None])
        made = self._then("Conv", line, weights, kernel_shape=(length,), strides=(int(step.item()),))
        made = self._then("Transpose", made, perm=(0, 2, 1))
        self._then("Reshape", made, self._ints("parts", [0, 0, bins.shape[1] // 2, 2]))
        return True

    def _transformed(self, signals: Array) -> Array:
        """Return what the layer makes of signals. It is linear: signals of a single 1 give its matrix."""
        return self._evaluate(self._layer, [signals, *map(constant_of, self._inputs[1:])])[0]

    def _weights(self, matrix: Array) -> Value:
        return self._model.add_constant(f"matrix of {self._layer.name}", np.ascontiguousarray(matrix))
