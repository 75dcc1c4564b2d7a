"""A plan: a model made ready for one backend and one set of input shapes; a frame binds its inputs and runs it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from perframe.backends.operand import Array, Operand
from perframe.backends.protocol import Backend, Workspace
from perframe.plan.segments import Segment, Transfer
from perframe.tensor import HostStorage, Storage, Tensor, TensorShape
from perframe.tensor.guarded import guard

# the number of runs of one plan that may be under way before an upload waits: three, or more while inputs are small
MIN_IN_FLIGHT, MAX_IN_FLIGHT, SMALL_INPUTS = 3, 64, 64 << 20
LEAST_LENT = 128 << 10  # bytes: to copy a smaller array takes no longer than to bind it


@dataclass(frozen=True)
class Fallback:
    """A layer that runs on the CPU because another backend cannot run it, the reason, and the elements that cross."""

    layer: str
    operator: str
    reason: str
    elements: int


class Plan:
    """A plan is made once for a set of input shapes and replayed every frame.

    `homes` maps each input to the backend that reads it. `live()` returns, for each layer that runs, the bytes of all
    values that are live during it. The plan frees `owned` and `workspaces` when it is released.
    """

    def __init__(
        self,
        segments: Sequence[Segment | Transfer],
        inputs: dict[str, Operand],
        homes: dict[str, Backend],
        outputs: dict[str, Tensor],
        owned: list[Storage],
        workspaces: Sequence[Workspace],
        live: Callable[[], list[tuple[str, int]]],
    ) -> None:
        self.segments, self.inputs, self.outputs, self.live = segments, inputs, outputs, live
        only = segments[0] if len(segments) == 1 else None
        self.program = only.program if isinstance(only, Segment) else None  # the program, if the plan has only one
        self._access = only.access if isinstance(only, Segment) else None
        self.bound = {name: operand.storage for name, operand in inputs.items() if operand.has_storage}
        self.workspaces, self.owned, self._homes = workspaces, owned, homes
        self.nanoseconds = 0  # the time that planning took
        self.has_begun = False  # whether a run has begun
        self.fallbacks: Sequence[Fallback] = ()
        self._rings = {name: [_private(storage)] for name, storage in self.bound.items()}
        self._held: dict[int, weakref.ref[Tensor]] = {}  # by their storages' ids, which belong to rings

    @property
    def input_shapes(self) -> list[TensorShape]:
        """The input shapes of the plan, in the order of inputs."""
        return [operand.shape for operand in self.inputs.values()]

    @property
    def is_busy(self) -> bool:
        """Whether a run of the plan is under way, or has its inputs already, or a job or readback still reads its
        outputs.
        """
        if self._held:
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

    @property
    def workspace_bytes(self) -> int:
        """The bytes of all values within a run."""
        return sum(workspace.size for workspace in self.workspaces)

    def begin(self) -> None:
        """Prepare the storage of the first run."""
        self.has_begun = True
        for workspace in self.workspaces:
            workspace.begin()

    def set_input_storage(self, name: str, storage: Storage) -> None:
        """Make the steps read an input from `storage`."""
        if self.bound[name] is storage:
            return
        self.bound[name] = storage
        planned = self.inputs[name].storage
        for segment in self.segments:
            if isinstance(segment, Transfer):
                segment.replace(planned, storage)
            else:
                segment.access.rebinds.append((planned, storage))
                segment.access.reads = list(self.bound.values())
                segment.access.others = [bound for name, bound in self.bound.items() if bound not in self._rings[name]]

    def lend(self, name: str, storage: Storage, array: Array) -> bool:
        """Let steps read an array in place, if they run within the next submission. Return whether they may.

        Otherwise the submission uploads the array to `storage`, which is bound to the input. Arrays of fewer than
        LEAST_LENT bytes are not worth it.
        """
        program, access = self.program, self._access
        if program is None or access is None or not program.is_brief or guard():
            return False
        flags, dtype = array.flags, self.inputs[name].dtype.numpy
        if type(array) is not np.ndarray or array.dtype != dtype or not (flags.c_contiguous and flags.aligned):
            return False
        access.lent.append((self.inputs[name].storage, storage, array))
        return True

    def take_back(self) -> None:
        """Forget the arrays that were lent for a run that is not submitted, since another input was refused."""
        if self._access is not None:
            self._access.lent.clear()

    def takes(self, name: str, tensor: Tensor) -> bool:
        """Whether steps can read an input from the tensor's storage: it is on the right backend, and no output of this
        plan uses it.
        """
        if not tensor.is_pinned or not self._homes[name].owns(tensor.data_on_backend):
            return False
        return all(output.data_on_backend is not tensor.data_on_backend for output in self.outputs.values())

    def copy_input(self, name: str, tensor: Tensor) -> Storage | None:
        """Copy a tensor into the plan's storage for an input, and return the storage. Return None if the tensor lies on
        another backend.
        """
        home = self._homes[name]
        if not tensor.is_pinned or not home.owns(tensor.data_on_backend):
            return None
        storage = self.input_storage(name, tensor.shape)
        home.copy(tensor.data_on_backend, storage, tensor.shape, tensor.dtype)
        return storage

    def input_storage(self, name: str, shape: Sequence[int]) -> Storage:
        """Return storage into which an input of this shape can be uploaded: one that no run under way reads. If too
        many runs are under way, return the oldest storage; the upload waits for it.
        """
        found = self._free_storage(name, shape)
        if found is not None:
            return found
        ring = self._rings[name]
        for at, storage in enumerate(ring):
            if id(storage) not in self._held:
                ring.append(ring.pop(at))
                return storage
        return self._another_storage(name, shape)

    def hold(self, name: str, array: Array) -> Tensor | None:
        """Upload an array for a run that begins later, and return it as a tensor, which reserves its storage. Return
        None if all storage is in use.
        """
        storage = self._free_storage(name, array.shape)
        if storage is None:
            return None
        storage.upload(array)
        return self.reserve(name, storage)

    def reserve(self, name: str, storage: Storage) -> Tensor:
        """Return a tensor over an input's storage. No other run gets the storage while the tensor lives."""
        operand, key, held = self.inputs[name], id(storage), self._held
        tensor = Tensor.over(storage, operand.shape, operand.dtype, name)
        held[key] = weakref.ref(tensor, lambda _: held.pop(key, None))
        return tensor

    def _free_storage(self, name: str, shape: Sequence[int]) -> Storage | None:
        """Storage for an input that no run reads or will read; None if too many runs are under way."""
        ring, held = self._rings[name], self._held
        for storage in ring:
            if not storage.busy and not (held and id(storage) in held):
                return storage
        size = len(ring) * ring[0].max_capacity * self.inputs[name].dtype.numpy.itemsize
        if len(ring) < MIN_IN_FLIGHT or (len(ring) < MAX_IN_FLIGHT and size < SMALL_INPUTS):
            return self._another_storage(name, shape)
        return None

    def _another_storage(self, name: str, shape: Sequence[int]) -> Storage:
        ring = self._rings[name]
        ring.append(_private(ring[0].like(shape, self.inputs[name].dtype)))
        self.owned.append(ring[-1])
        return ring[-1]

    def release(self) -> None:
        """Free all storage that the plan owns, and drop its programs, which hold constants."""
        for segment in self.segments:
            if isinstance(segment, Segment):
                segment.program, segment.steps = None, []
        self.program = None
        for workspace in self.workspaces:
            workspace.release()
        for storage in self.owned:
            storage.release()
        self.owned.clear()


def _private(storage: Storage) -> Storage:
    """Mark storage as private: only runs of the plan use it, and the worker's lock guards these."""
    if isinstance(storage, HostStorage):
        storage.is_private = True
    return storage
