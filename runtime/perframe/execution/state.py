"""A state: an output of a run that the next run reads as an input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from perframe.backends.protocol import Backend
from perframe.errors import InputError
from perframe.execution.outputs import copy_values
from perframe.ir import Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.plan.plan import Target
from perframe.tensor import Array, DataType, Fence, Storage, Tensor, TensorShape


class State(Target):
    """One output that the next run reads. Two storages take turns, so that nothing is copied. `shape` is the declared
    shape in the order of its dims, which for a state that grows is not that of the file.

    `values` are the last good value, and those of later runs that may yet fail: a tensor, an array, or None for zeros
    of a shape that is not known yet.
    """

    grows = False

    def __init__(self, output: str, given: Value, made: DynamicTensorShape | None) -> None:
        """`made` is the shape of the output: what it knows of an open dim of the input is known of the state."""
        self.output, self.source, self.given = output, given.name, given
        self.shape = _refined(given.shape, made)
        self._storages: list[Storage] = []
        self._accepted: TensorShape | None = None  # the last shape
        self.values: list[Any] = [None]

    @property
    def named(self) -> list[tuple[int, str]]:
        """The open dims of its shape: axis and name."""
        return [(axis, dim) for axis, dim in enumerate(self.shape or ()) if isinstance(dim, str)]

    @property
    def storages(self) -> list[Storage]:
        """The storages that hold its values."""
        values = [value.data_on_backend for value in self.values if isinstance(value, Tensor)]
        return [*self._storages, *values]

    @property
    def value(self) -> Any:
        """The value that the next run reads."""
        return self.values[-1]

    def reset(self, value: Any) -> None:
        """Begin again, with this value."""
        self.values = [value]

    def zeros(self, dims: Mapping[str, int]) -> Array | None:
        """Return the value to begin with; None if a dim is open and not in `dims`."""
        shape = None if self.shape is None else self.shape.with_dims(dims)
        if shape is None or not shape.is_static:
            return None
        dtype = self.given.dtype
        return np.full(shape.to_shape(), "" if dtype is DataType.STRING else 0, dtype.numpy)

    def storage(self, output: Tensor, planned: Storage, offered: Callable[[], Iterator[Storage]]) -> Storage:
        """Return storage in which the state does not lie."""
        size, read = output.shape.size, self._read
        found = self._free(planned, size)
        if found is None:
            kept = (one for one in offered() if one is not read and serves(one, planned, size))
            found = next(kept, None) or planned.like(output.shape, output.dtype)
        return self._keep(found)

    @property
    def _read(self) -> Storage | None:
        """The storage in which the state lies."""
        return self.value.data_on_backend if isinstance(self.value, Tensor) else None

    def _free(self, planned: Storage, size: int) -> Storage | None:
        """The storage in which the state does not lie, if it can stand for `planned` and hold `size` elements."""
        read = self._read
        return next((one for one in self._storages if one is not read and serves(one, planned, size)), None)

    def _keep(self, storage: Storage) -> Storage:
        read = self._read
        self._storages = [storage, *(one for one in self._storages if one is read)]
        return storage

    def check(self, value: Any) -> None:
        """Raise InputError if the input cannot take this output of a run."""
        if not isinstance(value, Tensor) or (value.shape != self._accepted and not self._accepts(value.shape)):
            found = f"{value.dtype} {value.shape}" if isinstance(value, Tensor) else "no tensor"
            raise InputError(
                f"the output {self.output!r} of this run is {found}, which its input {self.given} cannot take. The "
                "state is as it was before the run"
            )

    def end(self, value: Tensor, backend: Backend) -> Fence | None:
        """Make the output of a run the state. Return the job that writes it, if there is one."""
        if value.data_on_backend not in self._storages:  # a layer on the host or in a loop made it
            value = self._copied(value, backend)
        self.values.append(value)
        return value.data_on_backend.write

    def _accepts(self, shape: TensorShape) -> bool:
        if self.shape is not None and not self.shape.accepts(shape):
            return False
        self._accepted = shape
        return True

    def _copied(self, value: Tensor, backend: Backend) -> Tensor:
        storage = value.data_on_backend
        target = self._keep(self._free(storage, value.shape.size) or storage.like(value.shape, value.dtype))
        copy_values(value, target, backend, f"the state {self.source!r}")
        return Tensor.over(target, value.shape, value.dtype, self.output)

    def go_back(self) -> None:
        """Return to the last good value. Runs that needed a later one wrote nothing."""
        good = self.values[0]
        self.values = [good]
        if isinstance(good, Tensor):
            good.data_on_backend.write = None

    def release(self) -> None:
        """Free the storage."""
        for storage in self._storages:
            storage.release()
        self._storages, self.values = [], [None]


def _refined(given: DynamicTensorShape | None, made: DynamicTensorShape | None) -> DynamicTensorShape | None:
    if given is None or made is None:
        return given
    return DynamicTensorShape(new if isinstance(new, int) else old for old, new in zip(given, made, strict=True))


def serves(storage: Storage, planned: Storage, size: int) -> bool:
    """Whether a storage can stand for a planned one and hold `size` elements."""
    return (
        storage.is_open
        and storage.backend_type is planned.backend_type
        and storage.element_bytes == planned.element_bytes
        and storage.max_capacity >= size
    )
