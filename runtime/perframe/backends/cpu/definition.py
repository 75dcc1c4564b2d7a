"""A layer in NumPy, on the storages that its kernels use. It serves runs while the kernels are compiling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu import reference
from perframe.backends.cpu.lowering.rows import array_of
from perframe.backends.cpu.threads.blas import one_thread
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.errors import BackendError
from perframe.tensor import HostStorage, Storage

LONG = 20e9  # operations: a second of NumPy's products on one core


class Definition:
    """Computes a layer with NumPy instead of its native steps."""

    def __init__(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> None:
        self._layer, self._inputs, self._outputs = layer, inputs, outputs
        stored = [value for value in inputs if value is not None and not value.is_constant]
        self.storages: list[Storage] = [value.storage for value in (*stored, *outputs)]

    @property
    def is_long(self) -> bool:
        """Whether NumPy may take longer than a compiler takes for a kernel, or much memory."""
        return int(getattr(self._form, "operations", 0)) > LONG

    @property
    def _form(self) -> Any:
        return reference.form_of(self._layer, self._inputs, self._outputs)

    def run(self, storages: Sequence[HostStorage]) -> None:
        """Compute the layer. `storages` are those of this run, in the order of `self.storages`; constants have none."""
        layer, inputs, outputs = self._layer, self._inputs, self._outputs
        bound = iter(storages)
        try:
            given = [
                None if value is None else value.value if value.is_constant else _array(value, next(bound))
                for value in inputs
            ]
            with one_thread():  # the compilers have the other cores
                values = reference.compute(layer, self._form, given, outputs)
        except Exception as error:
            raise BackendError(f"layer {layer.name!r} ({layer.op}) failed: {error}") from error
        for output, storage, value in zip(outputs, bound, values, strict=True):
            np.copyto(_array(output, storage), value)


def _array(value: Operand, storage: HostStorage) -> Any:
    return array_of(storage, value.shape, value.dtype, value.pitch)
