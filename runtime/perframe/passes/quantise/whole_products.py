"""8-bit products become float32 products, which are exact: no sum exceeds 2^24.

A shader has no product of bytes, and one of int32 takes longer than one of float32. A product whose sums may be larger
is split along its depth; the parts are added as int32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.layers.blocks import BLOCK
from perframe.passes.match import constant_of
from perframe.passes.quantise.quantization import Numbers, whole_numbers
from perframe.tensor import DataType

MOST = 1 << 24  # up to here float32 holds all integers
_OPS = ("Conv", "MatMul")


def run(model: Model, evaluate: Evaluate) -> int:
    """Rewrite, and return the number of products that are of float32 now."""
    rewrite, changed = _ProductRewrite(model), 0
    for layer in model.walk():
        made = rewrite.product(layer) if layer.op in _OPS and not layer.epilogue and not layer.on_host else None
        if made is not None:
            model.replace(layer, *made)
            changed += 1
    return changed


def _by_depth(layer: Layer, weights: NDArray[Any]) -> NDArray[np.int64]:
    """The magnitudes of weights, as (depth, column)."""
    magnitudes: NDArray[np.int64] = np.abs(weights.astype(np.int64))
    if layer.op == "Conv":
        magnitudes = magnitudes.reshape(*weights.shape[:2], -1).sum(2).T
    return magnitudes


def _parts(magnitudes: NDArray[np.int64], most: int) -> Iterator[slice]:
    """Ranges of the depth, of whole blocks, whose sums are at most so large; none if there are no such ranges."""
    depth, parts, start = len(magnitudes), list[slice](), 0
    while start < depth:
        sums = magnitudes[start:].cumsum(0).max(1, initial=0)
        count = int(np.searchsorted(sums, most, "right"))
        if start + count < depth:
            count -= count % BLOCK
        if not count:
            return
        parts.append(slice(start, start + count))
        start += count
    yield from parts


class _ProductRewrite:
    """Rewrites the products of a model one by one."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._real: dict[tuple[Value, Value | None], Value] = {}  # the float32 numbers that were made of bytes

    def product(self, layer: Layer) -> list[Layer] | None:
        """Return the layers that replace an 8-bit product; None for any other layer."""
        if layer.output.spec.dtype is not DataType.INT32 or layer.inputs[3:]:
            return None
        x, w = (whole_numbers(self.model, value) for value in layer.operands[:2])
        weights = layer.input(1).constant
        if x is None or (weights is None and w is None):
            return None
        made: list[Layer] = []
        if weights is None:
            return self._of_two(layer, x, w, made) if w is not None else None
        added = layer.inputs[2] if layer.inputs[2:] else None
        bias = constant_of(added)
        if added is not None and bias is None:
            return None
        if layer.op == "MatMul" and weights.ndim != 2:
            return None
        magnitudes, largest = _by_depth(layer, weights), self._largest(x)
        parts = list(_parts(magnitudes, MOST // max(1, largest)))
        if not parts or (len(parts) > 1 and layer.op == "Conv" and layer.group > 1):
            return None
        data = self._as_real(x, layer, made)
        sums = [self._part(layer, data, weights, part, len(parts), made) for part in parts]
        if bias is not None:
            bias = bias.reshape(-1, *(1,) * (weights.ndim - 2))  # a bias of a convolution
        bound = largest * int(magnitudes.sum(0).max(initial=0))
        return self._finish(layer, sums, bias, made, bound)

    def _of_two(self, layer: Layer, x: Numbers, w: Numbers, made: list[Layer]) -> list[Layer] | None:
        """The product of two matrices that are not constant."""
        shape = layer.input(0).spec.shape
        depth = shape[-1] if shape else None
        if layer.op != "MatMul" or not isinstance(depth, int):
            return None
        bound = depth * self._largest(x) * self._largest(w)
        if bound > MOST:
            return None
        given = [self._as_real(numbers, layer, made) for numbers in (x, w)]
        total = self._then(made, "MatMul", layer, given)
        return self._finish(layer, [total], None, made, bound)

    # --- how large numbers are ---

    def _largest(self, numbers: Numbers) -> int:
        """The largest magnitude of bytes without their zero point."""
        info = np.iinfo(numbers.bytes.spec.dtype.numpy)
        zero = numbers.zero.constant if numbers.zero else np.zeros(1, np.int64)
        if zero is None:
            return int(info.max) - int(info.min)
        return max(int(info.max) - int(zero.min()), int(zero.max()) - int(info.min))

    # --- new layers ---

    def _then(self, made: list[Layer], op: str, layer: Layer, inputs: Sequence[Value], **attributes: Any) -> Value:
        made.append(Layer(op, f"{layer.name}/{op}", inputs, [f"{layer.output.name}:{op}"], attributes))
        return made[-1].output

    def _constant(self, layer: Layer, value: Any) -> Value:
        return self.model.add_constant(f"number of {layer.name}", np.asarray(value))

    def _as_real(self, numbers: Numbers, layer: Layer, made: list[Layer]) -> Value:
        """Bytes without their zero point, as float32."""
        key = (numbers.bytes, numbers.zero)
        if key not in self._real:
            given = [numbers.bytes, self._constant(layer, np.float32(1)), *([numbers.zero] if numbers.zero else [])]
            self._real[key] = self._then(made, "DequantizeLinear", layer, given)
        return self._real[key]

    def _part(
        self, layer: Layer, data: Value, weights: NDArray[Any], part: slice, count: int, made: list[Layer]
    ) -> Value:
        """The product over a range of the depth."""
        if count > 1:
            axis = 1 if layer.op == "Conv" else -1
            ends = [self._constant(layer, np.array([value], np.int64)) for value in (part.start, part.stop, axis)]
            data = self._then(made, "Slice", layer, [data, *ends])
            weights = weights[:, part] if layer.op == "Conv" else weights[part]
        given = [data, self._constant(layer, np.ascontiguousarray(weights, np.float32))]
        return self._then(made, layer.op, layer, given, **layer.attributes)

    def _finish(
        self, layer: Layer, sums: list[Value], bias: NDArray[Any] | None, made: list[Layer], bound: int
    ) -> list[Layer]:
        """Add the parts and the bias, so that the layer's output is int32 as before."""
        largest = 0 if bias is None else int(np.abs(bias.astype(np.int64)).max(initial=0))
        output, is_exact = layer.output, len(sums) == 1 and bound + largest <= MOST
        if bias is not None and is_exact:
            made[-1].set_input(2, self._constant(layer, bias.astype(np.float32).reshape(-1)))
        if is_exact:
            for user in list(output.users):
                if user.op == "Cast" and user.to is DataType.FLOAT32:
                    user.set_input(0, sums[0])
        whole = [self._then(made, "Cast", layer, [value], to=DataType.INT32) for value in sums]
        if bias is not None and not is_exact:
            whole.append(self._constant(layer, bias))
        while len(whole) > 1:
            whole[:2] = [self._then(made, "Add", layer, whole[:2])]
        made[-1].outputs = [output]
        return made
