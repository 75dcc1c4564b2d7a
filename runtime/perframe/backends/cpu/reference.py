"""Layers on NumPy arrays: the definition that kernels are compared to. It runs the many layers without a kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu.families import family_of
from perframe.backends.cpu.lowering.rows import array_of
from perframe.backends.cpu.threads.blas import one_thread
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.errors import BackendError, InferenceError, ModelError
from perframe.ir.epilogue import apply
from perframe.ir.form import Bounded, check_bounds
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType, HostStorage, Storage

Array = NDArray[Any]

LONG = 20e9  # operations: a second of NumPy's products on one core


def computation(
    layer: LayerLike, form: Any, outputs: Sequence[Operand]
) -> Callable[[Sequence[Array | None]], list[Array]]:
    """Return a function from a layer's inputs to its outputs, in the dtypes that `outputs` declare. Work that does not
    depend on values is done only once, before the function returns.
    """
    family = family_of(layer)
    declared = [(known.dtype.numpy, tuple(known.shape)) for known in outputs]
    bounded, empty = isinstance(form, Bounded), not any(math.prod(shape) for _, shape in declared)
    channels_last, epilogue, declaration = layer.channels_last, layer.epilogue, layer.declaration

    def run(inputs: Sequence[Array | None]) -> list[Array]:
        inputs = declaration.complete(inputs)
        if bounded:
            check_bounds(form, inputs)
        if empty:
            return [np.empty(shape, dtype) for dtype, shape in declared]
        if channels_last:
            inputs = [
                np.moveaxis(value, -1, 1) if value is not None and declaration.is_spatial(index) else value
                for index, value in enumerate(inputs)
            ]
        with np.errstate(all="ignore"):
            values = [np.asarray(value) for value in family.compute(layer, form, inputs, outputs)]
            if channels_last:  # families may return flat values
                values = [
                    np.moveaxis(value.reshape(shape[0], shape[-1], *shape[1:-1]), 1, -1)
                    for value, (_, shape) in zip(values, declared, strict=False)
                ]
            if epilogue:
                values[0] = apply(epilogue, values[0])
            return [
                _shaped(np.asarray(value, dtype), shape)
                for value, (dtype, shape) in zip(values, declared, strict=False)
            ]

    return run


def _shaped(value: Array, shape: tuple[int, ...]) -> Array:
    """Return the value in this shape: families may return flat values."""
    if value.size != math.prod(shape):
        raise ModelError(f"the shape rule says {shape}, and the computed output is {value.shape}")
    return value.reshape(shape)


def compute(layer: LayerLike, form: Any, inputs: Sequence[Array | None], outputs: Sequence[Operand]) -> list[Array]:
    """Compute the outputs of a layer with a known form."""
    return computation(layer, form, outputs)(inputs)


def form_of(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> Any:
    """The layer's form; None if its family needs none."""
    return layer.form(inputs, outputs) if layer.declaration.form_of else None


def evaluate(layer: LayerLike, inputs: Sequence[Array | None]) -> list[Array]:
    """Compute the outputs of a layer from known inputs, for constant folding and for shape arithmetic in a plan."""
    return evaluation(layer, inputs)(inputs)


def evaluation(layer: LayerLike, inputs: Sequence[Array | None]) -> Callable[[Sequence[Array | None]], list[Array]]:
    """Return a function that computes the outputs of a layer from known inputs of these shapes. It serves other values
    too, unless the layer must know some of them to be planned.
    """
    specs = layer.infer([None if value is None else PartialTensor.of(value) for value in inputs])
    operands = [
        None  # a form may use what it knows, and other values must not be known to it
        if value is None
        else Operand.of(value)
        if layer.declaration.is_host(index)
        else Operand("", value.shape, DataType.of(value.dtype))
        for index, value in enumerate(inputs)
    ]
    outputs = [
        Operand("", spec.shape.to_shape(), spec.dtype)
        for spec in specs
        if spec.shape is not None and spec.shape.is_static
    ]
    if len(outputs) < len(specs):
        raise InferenceError(f"layer {layer.name!r} ({layer.op}): its output's shape depends on data")
    run = computation(layer, form_of(layer, operands, outputs), outputs)

    def named(given: Sequence[Array | None]) -> list[Array]:
        with _named(layer, given):
            return run(given)

    return named


@contextmanager
def _named(layer: LayerLike, inputs: Sequence[Any]) -> Iterator[None]:
    """Turn any exception inside into an InferenceError that names the layer and its inputs."""
    try:
        yield
    except Exception as error:
        listed = ", ".join(
            f"{value.dtype.name} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            for value in inputs
        )
        said = str(error) or type(error).__name__
        raise InferenceError(f"layer {layer.name!r} ({layer.op}) failed: {said} [inputs {listed}]") from error


def run_on_host(layer: LayerLike, inputs: Sequence[Any]) -> list[Any]:
    """Compute the outputs of a layer between plans. Their shapes depend on data; a value may be a list or None."""
    known = [PartialTensor.of(value) if isinstance(value, np.ndarray) else None for value in inputs]
    tensors = all(value is None or isinstance(value, np.ndarray) for value in inputs)
    specs = layer.infer(known) if tensors else None
    family = family_of(layer)
    with np.errstate(all="ignore"), _named(layer, inputs):
        made = family.compute(layer, None, layer.declaration.complete(inputs), specs)
    if specs is None or any(spec.kind != "tensor" for spec in specs):
        return list(made)
    return [np.asarray(value, spec.dtype.numpy) for value, spec in zip(made, specs, strict=False)]


class Definition:
    """Computes a layer with NumPy, on the storages of its native steps, while their kernels are compiling."""

    def __init__(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> None:
        self._layer, self._inputs, self._outputs = layer, inputs, outputs
        stored = [value for value in inputs if value is not None and not value.is_constant]
        self.storages: list[Storage] = [value.storage for value in (*stored, *outputs)]

    @property
    def is_long(self) -> bool:
        """Whether NumPy may take longer than a compiler takes for a kernel, or much memory."""
        return int(getattr(self._form, "operations", 0)) > LONG

    @functools.cached_property
    def _form(self) -> Any:
        return form_of(self._layer, self._inputs, self._outputs)

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
                values = compute(layer, self._form, given, outputs)
        except Exception as error:
            raise BackendError(f"layer {layer.name!r} ({layer.op}) failed: {error}") from error
        for output, storage, value in zip(outputs, bound, values, strict=True):
            np.copyto(_array(output, storage), value)


def _array(value: Operand, storage: HostStorage) -> Any:
    return array_of(storage, value.shape, value.dtype, value.pitch)
