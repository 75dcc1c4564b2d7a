"""The protocol of backends that one thread uses, so that other threads prepare what is slow."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from perframe.backends.operand import Array
from perframe.backends.protocol import Backend, Program, Step, Workspace
from perframe.tensor import Storage


class Parcel(Protocol):
    """A constant in the form in which its storage keeps it."""

    def upload(self) -> Iterator[None]:
        """Make the storage, and write a piece of the constant at each step, in the thread of the context."""

    @property
    def storage(self) -> Storage:
        """The storage, after the last step."""


class Realized(Protocol):
    """The program of a plan that was made apart, with storage."""

    @property
    def program(self) -> Program:
        """The program, which runs."""

    @property
    def steps(self) -> Sequence[Step]:
        """Its steps."""

    @property
    def workspace(self) -> Workspace:
        """The storage of values within a run."""

    @property
    def owned(self) -> list[Storage]:
        """Its other storages: inputs, outputs, and constants of the plan alone."""

    @property
    def live(self) -> Sequence[int]:
        """The bytes of the values that are live, layer by layer."""

    def place(self, storage: Storage) -> Storage:
        """Return the storage for one of the plan apart."""


@runtime_checkable
class Preloading(Backend, Protocol):
    """A backend that one thread uses, so that others prepare what is slow."""

    @property
    def is_usable(self) -> bool:
        """Whether this thread may use the backend now."""

    def apart(self) -> Backend:
        """Return another backend of this kind, for plans that are made in another thread and never run. The first call
        is made in the thread of the context.
        """

    def parcel(self, value: Array, is_weight: bool = False, is_half: bool = False) -> Parcel:
        """Prepare what `constant` uploads, in any thread."""

    def link(self, program: Program) -> Generator[bool, None, bool]:
        """Link what a program of `apart` runs that is not linked yet, some of it at each step. Yields whether the
        driver does the rest by itself, and returns whether there was anything to link. Raises BackendError for a shader
        that the driver refuses.
        """

    def realize(
        self, program: Program, workspace: Workspace, owned: Sequence[Storage], constants: Mapping[int, Storage]
    ) -> Generator[None, None, Realized]:
        """Give storage to a program of `apart`, its workspace and the storages that its plan has `owned`, some at each
        step. `constants` holds storages by the ids of the arrays that lie there.
        """

    def record(self, program: Program) -> Iterator[None]:
        """Record the calls of a whole run of a program, some at each step."""
