"""Layers with only constant inputs, and shape arithmetic with known results, become constants.

Weights that take fewer bits in the file stay as they are, so that the model stays small and a backend may multiply
integers directly. `fold_weights` folds those that it does not multiply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from perframe.ir import Array, Evaluate, Layer, Model
from perframe.ir.report import refuse
from perframe.ir.sizes.partial import PartialTensor
from perframe.passes.match import constant_of
from perframe.tensor import DataType

MAX_BYTES = 64 << 20  # that folding one layer may add to a model,
MAX_GROWTH = 4  # or this multiple of the bytes that it reads: large weights of bytes become float32
LEAST_WEIGHTS = 256  # elements; fewer are no weights


def _bytes(layer: Layer, given: Sequence[Array | None]) -> int:
    """Return the size of a layer's outputs in bytes."""
    specs: Sequence[PartialTensor] = [value.spec for value in layer.results]
    if not all([spec.is_static() for spec in specs]):
        specs = layer.infer([None if value is None else PartialTensor.of(value) for value in given])
    return sum((spec.shape.size or 0) * spec.dtype.numpy.itemsize for spec in specs if spec.shape is not None)


def run(model: Model, evaluate: Evaluate) -> int:
    """Fold, and return the number of layers that were removed."""
    return fold(model, evaluate, _expands)


def _expands(layer: Layer) -> bool:
    """Whether a layer makes floats of smaller ones: of integers, or of weights in float16."""
    if layer.op != "Cast":
        return layer.op == "DequantizeLinear"
    source = layer.x.constant
    if source is None or source.dtype != np.float16 or source.size < LEAST_WEIGHTS:
        return False
    return layer.to is DataType.FLOAT32


def fold(model: Model, evaluate: Evaluate, kept: Callable[[Layer], bool] = lambda _layer: False) -> int:
    """Fold all but the `kept` layers, and return the number of layers that were removed."""
    folded = 0
    for layer in model.walk():
        entry = layer.declaration
        if kept(layer) or not entry.pure or entry.on_host or any([value.is_output for value in layer.results]):
            continue
        arrays = _folded(layer, evaluate)
        if arrays is not None:
            for value, array in zip(layer.outputs, arrays, strict=False):
                if value is not None:
                    spec = value.spec
                    value.constant = np.ascontiguousarray(array).reshape(array.shape)
                    if spec.value is array:
                        value.spec = spec  # layers that read it need no new inference
            model.remove(layer)
            for value in layer.operands:
                if not value.is_live:  # the array goes at once: those of a long chain need not fit into memory together
                    value.constant = None
            folded += 1
    return folded


def _folded(layer: Layer, evaluate: Evaluate) -> Sequence[Array] | None:
    """Return the outputs of a layer if they are known and not too large, else None."""
    known = [array for value in layer.results if (array := value.spec.value) is not None]
    if len(known) == len(layer.outputs) and not layer.epilogue:
        return known
    if any([value.constant is None for value in layer.operands]):
        return None
    given = [constant_of(value) for value in layer.inputs]
    size = _bytes(layer, given)
    most = max(MAX_BYTES, MAX_GROWTH * sum(array.nbytes for array in given if array is not None))
    if size > most:
        refuse(layer, f"its result would have {size:,} bytes, and at most {most:,} are folded")
        return None
    return evaluate(layer, given)
