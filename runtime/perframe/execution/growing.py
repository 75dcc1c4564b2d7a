"""States that grow: a run appends to the storage that holds the state, and copies nothing but what is new."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any

import numpy as np

from perframe.backends.protocol import Backend, Guarding
from perframe.errors import InputError
from perframe.execution.machine import Machine
from perframe.execution.parts import Parts
from perframe.execution.planned_part import PlannedPart
from perframe.execution.state import State, serves
from perframe.ir import Layer, Model, Value
from perframe.ir.geometry import Ints
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.passes.layout.lay_out_states import StateLayout
from perframe.tensor import Array, DataType, Storage, Tensor, TensorShape
from perframe.tensor.memory import with_room

Capacity = int | Mapping[str, int] | None


def capacities(model: str, sources: Sequence[str], given: Capacity) -> dict[str, int | None]:
    """Return the capacity of each input that is a state that grows. Raises InputError."""
    rows = given if isinstance(given, Mapping) else dict.fromkeys(sources, given)
    for name, most in rows.items():
        if name not in sources:
            listed = ", ".join(map(repr, sources)) or "none"
            raise InputError(
                f"{model}: carry_capacity names {name!r}, which is not a state that grows; those are {listed}"
            )
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise InputError(f"carry_capacity is a number of rows, at least 1, and got {most!r}")
    if given is not None and not sources:
        raise InputError(
            f"{model}: carry_capacity is for states that grow, and no carried output is its input with more appended"
        )
    return {name: rows.get(name) for name in sources}


class GrowingState(State):
    """A state whose storage has room for more. Runs leave earlier rows alone. One that fails or is dropped therefore
    changes nothing: the state keeps its length.
    """

    grows = True

    def __init__(
        self,
        layout: StateLayout,
        given: Value,
        made: DynamicTensorShape | None,
        backend: Backend,
        capacity: int | None,
    ) -> None:
        """`capacity` is the most rows that it may have; None lets the room double when it is full."""
        super().__init__(layout.output, given, made, backend, layout)
        self._capacity = capacity
        self._held: Storage | None = None  # the storage in which the state lies, if it has room for `_rows`
        self._rows = 0

    def zeros(self, dims: Mapping[str, int]) -> Array | None:
        """Return no rows; None if another dim is open and not in `dims`."""
        assert self.shape is not None
        rest = [dims.get(dim) if isinstance(dim, str) else dim for dim in self.shape[1:]]
        known = [size for size in rest if size is not None]
        return np.zeros((0, *known), self.given.dtype.numpy) if len(known) == len(rest) else None

    def check(self, value: Any) -> None:
        """Raise InputError if the input cannot take this output of a run."""
        last = self._accepted
        if last is None or not isinstance(value, Tensor) or value.shape[1:] != last[1:]:
            super().check(value)
        self._check_rows(value.shape[0])

    def has_room(self, storage: Storage, rows: int) -> bool:
        """Whether the state lies at the beginning of a storage that has room for these rows."""
        return storage is self._held and rows <= self._rows

    def reset(self, value: Any) -> None:
        """Begin again, with this value."""
        self._held = None
        super().reset(value)

    def go_back(self) -> None:
        """Return to the last good value, which may lie in an earlier storage."""
        self._held = None
        super().go_back()

    def storage(self, output: Tensor, planned: Storage, offered: Callable[[], Iterator[Storage]]) -> Storage:
        """Return storage in which the state does not lie, for a run that copies."""
        self._held = None
        return super().storage(output, planned, offered)

    def _copied(self, value: Tensor, backend: Backend) -> Tensor:
        self._held = None
        return super()._copied(value, backend)

    def extended(self, output: Tensor, planned: Storage) -> Storage:
        """Return the storage in which the state lies. If it is full, copy the state to a larger one."""
        held, rows = self._read, output.shape[0]
        self._check_rows(rows)
        if held is not None and held in self._storages and serves(held, planned, output.shape.size):
            return self._note(held, output.shape)
        target = next((one for one in self._unread() if serves(one, planned, output.shape.size)), None)
        if target is None:
            row = prod(output.shape[1:])
            room = with_room(planned, output.shape.size, row * (self._capacity or 2 * rows))
            shape = room // row if row else rows, *output.shape[1:]
            target = planned.like(shape, output.dtype)
        return self._note(self._moved(target), output.shape)

    def _check_rows(self, rows: int) -> None:
        if self._capacity is not None and rows > self._capacity:
            raise InputError(
                f"the state {self.source!r} would have {rows} rows, and carry_capacity allows {self._capacity}: call "
                "reset(), or allow more"
            )

    def _note(self, storage: Storage, shape: TensorShape) -> Storage:
        """Note the rows for which the storage has room."""
        size = prod(shape[1:])
        self._held, self._rows = storage, storage.max_capacity // size if size else shape[0]
        if self._capacity is not None:
            self._rows = min(self._rows, self._capacity)
        return storage

    def _unread(self) -> list[Storage]:
        """The storages in which no value lies that may become the state again."""
        read = [value.data_on_backend for value in self.values if isinstance(value, Tensor)]
        return [one for one in self._storages if all(one is not other for other in read)]

    def _moved(self, target: Storage) -> Storage:
        """Let the state lie in `target`."""
        value = self.value
        if value is not None:
            self._copy_to(target, value.shape)
            self.values[-1] = Tensor.over(target, value.shape, self.given.dtype, self.source)
        return self._keep(target)

    def _keep(self, storage: Storage) -> Storage:
        unread = self._unread()
        self._storages = [storage, *(one for one in self._storages if one is not storage and one not in unread)]
        return storage


class Turns:
    """Transposes tensors on the device: a state may be laid out in another order than that of its file."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._parts: dict[tuple[str, Ints], Parts] = {}

    def turned(self, value: Tensor | Array, perm: Ints, name: str) -> Tensor:
        """Return the values in the order of `perm`. Later ones of this name and order replace them. Never waits."""
        if perm == tuple(range(len(perm))) and isinstance(value, Tensor):
            return value
        parts = self._parts.get((name, perm))
        if parts is None:
            parts = self._parts[name, perm] = Parts(_transposing(DataType.of(value.dtype), perm), self._machine)
        backend = self._machine.backend
        with backend.guarded() if isinstance(backend, Guarding) else nullcontext():
            made: Tensor = parts.run({"x": value})[0]
        made.name = name
        return made

    def planned_parts(self) -> Iterator[PlannedPart]:
        """Yield the parts that transpose."""
        for parts in self._parts.values():
            yield from parts.planned_parts()

    def release(self) -> None:
        """Free the memory."""
        for parts in self._parts.values():
            parts.release()
        self._parts.clear()


def _transposing(dtype: DataType, perm: Ints) -> Model:
    x, y = Value("x", dtype, DynamicTensorShape([None] * len(perm))), Value("y")
    return Model([x], [y], [Layer("Transpose", "turn", [x], [y], {"perm": perm})])
