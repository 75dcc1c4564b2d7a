"""What a plan is made of: stretches of steps on one backend, transfers between them, and the constants they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from perframe.backends.base import Access, Backend, Make, Operand, Program, Step
from perframe.readback import FrameState
from perframe.shared_constants import SharedOperand, give_back, take
from perframe.spec import PartialTensor
from perframe.tensor import BackendType, DataType, Storage

Array = NDArray[Any]


@dataclass
class Stretch:
    """Consecutive steps on one backend, and what they read and write of lasting storage."""

    backend: Backend
    steps: list[Step] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    access: Access = field(default_factory=Access)
    program: Program | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def run_whole(self) -> None:
        """Submit all steps."""
        assert self.program is not None
        self.backend.submit(self.program, 0, len(self.steps), self.access)

    def run(self, begin: int, end: int) -> None:
        """Submit some of the steps."""
        assert self.program is not None
        self.backend.submit(self.program, begin, end, self.access)


class Transfer:
    """A value's way from one backend to another. It blocks when it comes from a GPU; the plan has reported that."""

    def __init__(self, name: str, source: Operand, target: Operand) -> None:
        self.layers = [f"transfer of {name}"]
        self._value = source
        self.source = self._planned = source.storage
        self._to = target.storage

    def __len__(self) -> int:
        return 1

    def run_whole(self) -> None:
        """Download here and upload there."""
        if self.source.backend_type != "cpu":
            FrameState.blocking(self.layers[0])
        self._to.upload(self.source.download(self._value.shape, self._value.dtype))

    def run(self, begin: int, end: int) -> None:
        """It is one step."""
        self.run_whole()

    def replace(self, planned: Storage, new: Storage) -> None:
        """Read `new` if the plan says `planned`."""
        if self._planned is planned:
            self.source = new


class ConstantPool:
    """A model's constants on the backends of one worker: uploaded when first used, shared by all its plans.

    What is made of them in host memory is shared with other workers too.
    """

    def __init__(self, constants: Mapping[str, Array]) -> None:
        self._constants = constants
        self.known = {name: PartialTensor.of(value) for name, value in constants.items()}
        self._storages: dict[tuple[str, str], Storage] = {}
        self._derived: dict[tuple[str, str, str], Operand] = {}
        self._taken: dict[tuple[str, str, str], SharedOperand] = {}  # those of the derived that others may have too

    def storage(self, backend: Backend, name: str, value: Array) -> Storage:
        """The constant's storage on a backend."""
        key = (backend.backend_type, name)
        if name in self._constants and key in self._storages:
            return self._storages[key]
        storage = backend.constant(value)
        if name in self._constants:
            self._storages[key] = storage
        return storage

    def derived(self, backend: Backend, name: str, value: Array, kind: str, make: Make) -> Operand:
        """What `make` makes of a constant, on a backend: one operand for all who ask for this kind."""

        def made() -> Operand:
            array = make(value)
            array.flags.writeable = False  # it is nobody else's, and need not be copied
            return Operand(name, array.shape, DataType.of(array.dtype), storage=backend.constant(array))

        if name not in self._constants:
            return made()
        key = (backend.backend_type, name, kind)
        if key not in self._derived:
            source = self._constants[name]
            if backend.backend_type == BackendType.CPU and not source.flags.writeable:
                self._taken[key] = take(source, kind)
                self._derived[key] = self._taken[key].operand(made)
            else:
                self._derived[key] = made()
        return self._derived[key]

    @property
    def bytes_used(self) -> tuple[int, int, int]:
        """(as the model has them, as they are, as kernels want them): the first two share memory where they can."""
        derived = sum(operand.shape.size * operand.dtype.numpy.itemsize for operand in self._derived.values())
        as_they_are = sum(self._constants[name].nbytes for _, name in self._storages)
        return sum(value.nbytes for value in self._constants.values()), as_they_are, derived

    def release(self) -> None:
        """Free them, but for what other workers have."""
        for shared in self._taken.values():
            give_back(shared)
        for key in self._derived.keys() - self._taken.keys():
            self._derived[key].storage.release()
        self._derived.clear()
        self._taken.clear()
        for storage in self._storages.values():
            storage.release()
        self._storages.clear()
