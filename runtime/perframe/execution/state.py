"""A state: an output of a run that the next run reads as an input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perframe.backends.protocol import Backend
from perframe.errors import InputError
from perframe.execution.outputs import copy_values
from perframe.ir import Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.passes.layout.lay_out_states import StateLayout
from perframe.plan.plan import Target
from perframe.tensor import Array, DataType, Fence, Storage, Tensor, TensorShape

# A storage that holds what another one holds, apart from rows whose numbers have this shape. It is so as long as no
# other hand changes one of the two: the changes of both.
_Behind = tuple[Storage, Storage, TensorShape, float]


class State(Target):
    """One output that the next run reads. Two storages take turns, so that nothing is copied. If runs replace rows of a
    state, the storage that a run writes lacks the rows that the last run replaced: runs write these and the new ones.
    `shape` is the declared shape in the order of its dims, which may not be that of the file.

    `values` are the last good value, and those of later runs that may yet fail: a tensor, an array, or None for zeros
    of a shape that is not known yet.
    """

    grows = False

    def __init__(
        self,
        output: str,
        given: Value,
        made: DynamicTensorShape | None,
        backend: Backend,
        layout: StateLayout | None = None,
    ) -> None:
        """`made` is the shape of the output: what it knows of an open dim of the input is known of the state. Without a
        `layout` dims are in the order of the file.
        """
        self.output, self.source, self.given = output, given.name, given
        self.shape, self._backend = _refined(given.shape, made), backend
        if layout is not None and self.shape is not None:
            self.shape = layout.laid_out(self.shape)
        self.layout = layout
        self._storages: list[Storage] = []
        self._noted: Storage | None = None  # the numbers of the rows that the last run replaced
        self._behind: _Behind | None = None  # the storage that lacks these rows
        # the storage that a run writes; the one that it reads, and its changes; the shape of its rows' numbers
        self._begun: tuple[Storage, Storage, float, TensorShape] | None = None
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
        return [*self._storages, *values, *([] if self._noted is None else [self._noted])]

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
        self._behind = self._begun = None
        size, read = output.shape.size, self._read
        found = self._free(planned, size)
        if found is None:
            kept = (one for one in offered() if one is not read and serves(one, planned, size))
            found = next(kept, None) or planned.like(output.shape, output.dtype)
        return self._keep(found)

    def replaced(
        self,
        output: Tensor,
        planned: Storage,
        offered: Callable[[], Iterator[Storage]],
        rows: Tensor,
        planned_rows: Storage,
    ) -> tuple[Storage, Storage]:
        """Return storage that lacks nothing but the last run's rows, and the numbers of these. Otherwise copy the state
        there first.
        """
        behind, noted = self._behind, self._noted
        target, read = self.storage(output, planned, offered), self._read
        if noted is None or read is None or behind is None or behind != _as_now(target, read, rows.shape):
            self._copy_to(target, output.shape)
            if noted is None or not serves(noted, planned_rows, rows.shape.size):
                self._noted = noted = planned_rows.like(rows.shape, rows.dtype)
        if read is not None:
            self._begun = target, read, read.changes, rows.shape
        return target, noted

    def _copy_to(self, target: Storage, shape: TensorShape) -> None:
        """Copy the state to `target`. A value that is not known yet is zeros of this shape."""
        value = self.value
        if value is None:
            target.upload(np.zeros(shape, self.given.dtype.numpy))
        elif not isinstance(value, Tensor):
            target.upload(value)
        elif self._backend.owns(value.data_on_backend) and self._backend.owns(target):
            self._backend.copy(value.data_on_backend, target, value.shape, value.dtype)
        else:
            target.upload(value.download_to_array())

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
            found = f"{value.dtype} {self.in_file(value.shape)}" if isinstance(value, Tensor) else "no tensor"
            raise InputError(
                f"the output {self.output!r} of this run is {found}, which its input {self.given} cannot take. The "
                "state is as it was before the run"
            )

    def end(self, value: Tensor, backend: Backend) -> Fence | None:
        """Make the output of a run the state. Return the job that writes it, if there is one."""
        storage = value.data_on_backend
        if storage not in self._storages:  # a layer on the host or in a loop made it
            value = self._copied(value, backend)
        if self._begun is not None:
            written, read, changes, rows = self._begun
            self._behind = _as_now(read, storage, rows) if written is storage and read.changes == changes else None
            self._begun = None
        self.values.append(value)
        return value.data_on_backend.write

    def in_file(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return a shape in the order of the file, for messages."""
        return tuple(shape) if self.layout is None else tuple(shape[axis] for axis in self.layout.inverse)

    def _accepts(self, shape: TensorShape) -> bool:
        if self.shape is not None and not self.shape.accepts(shape):
            return False
        self._accepted = shape
        return True

    def _copied(self, value: Tensor, backend: Backend) -> Tensor:
        storage = value.data_on_backend
        self._behind = self._begun = None
        target = self._keep(self._free(storage, value.shape.size) or storage.like(value.shape, value.dtype))
        copy_values(value, target, backend, f"the state {self.source!r}")
        return Tensor.over(target, value.shape, value.dtype, self.output)

    def go_back(self) -> None:
        """Return to the last good value. Runs that needed a later one wrote nothing."""
        good = self.values[0]
        self.values, self._behind = [good], None
        if isinstance(good, Tensor):
            good.data_on_backend.write = None

    def release(self) -> None:
        """Free the storage."""
        for storage in (*self._storages, *([] if self._noted is None else [self._noted])):
            storage.release()
        self._storages, self.values, self._noted, self._behind = [], [None], None, None


def _as_now(storage: Storage, other: Storage, rows: TensorShape) -> _Behind:
    return storage, other, rows, storage.changes + other.changes


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
