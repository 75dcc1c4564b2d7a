"""A plan: a model made ready for one backend and one set of input shapes; a frame binds its inputs and runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import Backend, Workspace
from perframe.errors import InputError
from perframe.plan.carrying import Carried
from perframe.plan.input_ring import InputRing
from perframe.plan.segments import Segment, Transfer
from perframe.safety.records import dataclass
from perframe.tensor import Storage, Tensor, TensorShape
from perframe.tensor.guarded import guard
from perframe.tensor.memory import sum_unseen

LEAST_LENT = 128 << 10  # bytes: to copy a smaller array takes no longer than to bind it


class Target(Protocol):
    """Decides where the runs of any plan write an output."""

    source: str  # the input that later reads the values; empty if none does
    grows: bool  # whether the values may begin with those of `source`

    def storage(self, output: Tensor, planned: Storage, offered: Callable[[], Iterator[Storage]]) -> Storage:
        """Return storage for an output of the next run: `planned`, with which it was planned, or another. A target may
        keep those that the plan has `offered`. `output` has the output's shape.
        """

    def has_room(self, storage: Storage, rows: int) -> bool:
        """Whether the values of `source` lie at the beginning of a storage that has room for these rows."""
        return False

    def replaced(
        self,
        output: Tensor,
        planned: Storage,
        offered: Callable[[], Iterator[Storage]],
        rows: Tensor,
        planned_rows: Storage,
    ) -> tuple[Storage, Storage]:
        """Return storage that holds the values of `source`, apart from some rows, and storage that holds the numbers of
        these rows. The next run writes both.
        """
        raise AssertionError(f"no run replaces rows of {self.source}")

    def extended(self, output: Tensor, planned: Storage) -> Storage:
        """Return storage that begins with the values of `source`, and has room for an output of the next run."""
        raise AssertionError(f"{self.source} does not grow")


def carried_by(targets: Mapping[str, Target]) -> Carried:
    """Return the outputs that targets carry to the inputs of the next run."""
    pairs = [{n: t.source for n, t in targets.items() if t.source and t.grows is grows} for grows in (True, False)]
    return Carried(*pairs)


NO_TARGETS: Mapping[str, Target] = MappingProxyType({})


@dataclass(frozen=True)
class Fallback:
    """A layer that runs on the CPU because another backend cannot run it, the reason, and the elements that cross."""

    layer: str
    operator: str
    reason: str
    elements: int


class Plan:
    """A plan is made once for a set of input shapes and replayed every frame.

    `inputs` pairs each input with the backend that reads it. `live()` returns, for each layer that runs, the bytes of
    all values that are live during it. The plan frees `owned` and `workspaces` when it is released. `extended` names
    the outputs that begin where an input lies.
    """

    def __init__(
        self,
        segments: Sequence[Segment | Transfer],
        inputs: Sequence[tuple[Operand, Backend]],
        outputs: dict[str, Tensor],
        owned: list[Storage],
        workspaces: Sequence[Workspace],
        live: Callable[[], list[tuple[str, int]]],
    ) -> None:
        self.segments, self.outputs, self.live = segments, outputs, live
        self.inputs = [operand for operand, _ in inputs]
        self.extended = {operand.part.whole for operand in self.inputs if operand.part is not None}
        only = segments[0] if len(segments) == 1 else None
        self.program = only.program if isinstance(only, Segment) else None  # the program, if the plan has only one
        self._access = only.access if isinstance(only, Segment) else None
        self.workspaces, self._owned = workspaces, owned
        held = [(operand, reader) for operand, reader in inputs if operand.has_storage and operand.part is None]
        self._rings = [InputRing(operand, reader, owned) for operand, reader in held]
        self._planned = {name: tensor.data_on_backend for name, tensor in outputs.items()}
        self._written = dict(self._planned)  # the storages that steps write now
        self._earlier: list[Storage] = []  # those that earlier runs still write
        self.replaced: Mapping[str, str] = {}  # outputs of which runs replace rows, and those with the rows' numbers
        self.nanoseconds = 0  # the time that planning took
        self.constants: int | None = None  # the number of those that there were before it was made
        self.used = 0  # when it ran last, as a number of the ledger's `uses`, once another plan has run
        self.has_begun = False  # whether a run has begun
        self.fallbacks: Sequence[Fallback] = ()

    @property
    def owned(self) -> Sequence[Storage]:
        """The storages that it frees, beside its workspaces."""
        return self._owned

    @property
    def input_shapes(self) -> list[TensorShape]:
        """The input shapes of the plan, in the order of inputs."""
        return [operand.shape for operand in self.inputs]

    @property
    def is_busy(self) -> bool:
        """Whether a run of the plan is under way, or has its inputs already, or a job or readback still reads its
        outputs.
        """
        if any([ring.reserved for ring in self._rings]) or any([storage.busy for storage in self._earlier]):
            return True
        written = [segment.access.writes for segment in self.segments if isinstance(segment, Segment)]
        return any(storage.busy for storages in written for storage in storages)

    @property
    def is_costly(self) -> bool:
        """Whether planning took more than half of the time of one run. True where no run was measured."""
        run = None if self.program is None else self.program.nanoseconds
        return run is None or 2 * self.nanoseconds > run

    @property
    def is_provisional(self) -> bool:
        """Whether a program still waits for kernels, which NumPy replaces meanwhile."""
        return self.program is not None and self.program.is_provisional

    def held(self, seen: set[int]) -> int:
        """The bytes held for it, apart from the objects whose ids are in `seen`; adds its own ids."""
        found = [(id(storage), storage.held_bytes) for storage in self._owned]
        for workspace in self.workspaces:
            found += workspace.held()
        for segment in self.segments:
            if isinstance(segment, Segment) and segment.program is not None:
                found.append((id(segment.program), segment.program.held_bytes))
        return sum_unseen(found, seen)

    def free_spare(self) -> None:
        """Free the memory that is kept for readbacks."""
        for storage in self._owned:
            storage.free_spare()

    @property
    def workspace_bytes(self) -> int:
        """The bytes of all values within a run."""
        return sum(workspace.size for workspace in self.workspaces)

    def bind(
        self,
        values: Mapping[str, Any],
        held: list[Tensor] | None = None,
        targets: Mapping[str, Target] = NO_TARGETS,
    ) -> None:
        """Bind the inputs of the next run: tensors that steps can read where they are, and copies of other values.

        If the run is submitted as a whole, steps may read large arrays in place. Otherwise `held` receives tensors that
        reserve the copies' storage until the run ends. `targets` decide where outputs are written.
        """
        if not self.has_begun:
            for workspace in self.workspaces:
                workspace.begin()
            self.has_begun = True
        try:
            for name, target in targets.items():
                if name in self._planned:
                    self._write(name, target)
            for ring in self._rings:
                storage = self._storage_of(ring, values[ring.name], held)
                if storage is not ring.bound:
                    self._rebind(ring, storage)
        except BaseException:
            if self._access is not None:
                self._access.lent.clear()
            raise

    def wrote(self, values: Iterable[Any]) -> bool:
        """Whether a value is an output of its last run."""
        tensors = [value for value in values if type(value) is Tensor and value.is_pinned]
        return any([value.data_on_backend is one for value in tensors for one in self._written.values()])

    def advance(self) -> Iterator[str]:
        """Submit the steps of one layer at a time, and yield its name. The inputs are bound."""
        for segment in self.segments:
            begin = 0
            while begin < len(segment):
                end = begin + 1
                while end < len(segment) and segment.layers[end] == segment.layers[begin]:
                    end += 1
                segment.run(begin, end)
                yield segment.layers[begin]
                begin = end

    def touch(self) -> Iterator[None]:
        """Run a small part of each step, one at a time. The inputs are bound."""
        for segment in self.segments:
            for step in range(len(segment)):
                segment.touch(step)
                yield

    def hold(self, values: dict[str, Any]) -> None:
        """Replace arrays by tensors with copies of their values, for a run that begins later. Arrays remain if all
        storage is in use.
        """
        for ring in self._rings if self.has_begun else ():
            array = values[ring.name]
            storage = ring.free(array.shape) if isinstance(array, np.ndarray) else None
            if storage is not None:
                with suppress(InputError):  # the run's first step raises it
                    storage.upload(array)
                    values[ring.name] = ring.reserve(storage)

    def _write(self, name: str, target: Target) -> None:
        """Make the steps write an output where its target wants it."""
        output, planned, written = self.outputs[name], self._planned[name], self._written[name]
        if name in self.extended:
            if target.has_room(written, output.shape[0]):
                return  # a frame waits
            storage = target.extended(output, planned)
        elif name in self.replaced:
            other, offered = self.replaced[name], partial(self.offer, target.source, planned)
            storage, rows = target.replaced(output, planned, offered, self.outputs[other], self._planned[other])
            if rows is not self._written[other]:
                self._write_into(rows, other)
        else:
            storage = target.storage(output, planned, partial(self.offer, target.source, planned))
        self._write_into(storage, name)

    def _write_into(self, storage: Storage, name: str) -> None:
        """Make the steps write an output into `storage`."""
        output, planned, written = self.outputs[name], self._planned[name], self._written[name]
        if storage is not written:
            for segment in self.segments:
                if isinstance(segment, Transfer):
                    segment.replace(planned, storage)
                else:
                    segment.access.rebinds.append((planned, storage))
                    segment.access.writes = [storage if one is written else one for one in segment.access.writes]
                    segment.access.reads = [storage if one is written else one for one in segment.access.reads]
            self._earlier = [one for one in (*self._earlier, written) if one.busy]
            self._written[name] = storage
            self.outputs[name] = Tensor.over(storage, output.shape, output.dtype, name)

    def offer(self, source: str, planned: Storage) -> Iterator[Storage]:
        """Yield storages for a target to keep and to free: the planned one of an output, and that of an input, since
        the runs read others.
        """
        if planned in self._owned:
            self._owned.remove(planned)
            yield planned
        for ring in self._rings:
            if ring.name == source and ring.drop():
                if ring.planned in self._owned:
                    self._owned.remove(ring.planned)
                yield ring.planned

    def _storage_of(self, ring: InputRing, value: Any, held: list[Tensor] | None) -> Storage:
        """Return storage from which steps can read an input: the tensor's own if steps reach it, else a copy's."""
        if isinstance(value, Tensor):
            if not value.is_pinned or not ring.reader.owns(value.data_on_backend):
                return self._storage_of(ring, value.download_to_array(), held)
            source = value.data_on_backend
            if all(written is not source for written in self._written.values()):
                return source
            storage = ring.next(value.shape)
            ring.reader.copy(source, storage, value.shape, value.dtype)
        else:
            storage = ring.next(value.shape)
            if held is None and value.nbytes >= LEAST_LENT and self._can_lend(ring, value):
                assert self._access is not None
                self._access.lent.append((ring.planned, storage, value))
                return storage
            try:
                storage.upload(value)
            except InputError as error:
                raise InputError(f"input {ring.name!r}: {error}") from None
        if held is not None:
            held.append(ring.reserve(storage))
        return storage

    def _can_lend(self, ring: InputRing, array: Any) -> bool:
        """Whether steps may read an array in place, if they run within the next submission. Otherwise the submission
        uploads it.
        """
        if self.program is None or not self.program.is_brief or guard():
            return False
        flags, dtype = array.flags, ring.dtype.numpy
        return type(array) is np.ndarray and array.dtype == dtype and bool(flags.c_contiguous and flags.aligned)

    def _rebind(self, ring: InputRing, storage: Storage) -> None:
        """Make the steps read an input from `storage`."""
        ring.bound = storage
        for segment in self.segments:
            if isinstance(segment, Transfer):
                segment.replace(ring.planned, storage)
            else:
                segment.access.rebinds.append((ring.planned, storage))
                segment.access.reads = [one.bound for one in self._rings]
                segment.access.reads += [self._written[name] for name in self.extended]
                segment.access.others = [one.bound for one in self._rings if one.binds_foreign]

    def release(self) -> None:
        """Free all storage that the plan owns, and drop its programs, which hold constants."""
        for segment in self.segments:
            if isinstance(segment, Segment):
                segment.program, segment.steps = None, []
        self.program = None
        for workspace in self.workspaces:
            workspace.release()
        for storage in self._owned:
            storage.release()
        self._owned.clear()
