"""The protocol of backends whose plans can be refitted to other sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol, runtime_checkable

from perframe.backends.protocol import Backend, Program, Workspace
from perframe.ir.sizes.arithmetic import SizeArithmetic
from perframe.ir.sizes.open_dims import Positions, Shapes
from perframe.ir.sizes.trace import Trace
from perframe.safety.records import dataclass
from perframe.tensor import DataType, Storage


class SizedProgram(Protocol):
    """A program for one set of sizes, with its own storages, numbers and workspace."""

    @property
    def program(self) -> Program:
        """The program."""

    @property
    def workspace(self) -> Workspace:
        """The workspace that holds its values."""

    @property
    def storages(self) -> Mapping[int, Storage]:
        """Its own storages, by the ids of the template's storages that they replace."""

    @property
    def numbers(self) -> Sequence[int]:
        """The results that the template computed for these sizes."""

    def live(self) -> list[int]:
        """For each layer, the bytes of all values that are alive while the layer runs."""

    @property
    def is_only(self) -> bool:
        """Whether `fit` returns this program for all sizes, with other numbers."""


class ProgramTemplate(Protocol):
    """A program for any sizes: see perframe/plan/refit.py."""

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether its program is right for these sizes. The answer does not wait for kernels."""

    @property
    def resizes(self) -> bool:
        """Whether `fit` gives the sizes to the program that it made before."""

    def fit(self, backend: Backend, spare: SizedProgram | None = None) -> SizedProgram | None:
        """Return the program for the sizes of the last choice, to run on a backend of its kind; None while its kernels
        are being compiled. `spare` is one of this template that no run uses: it may be returned for these sizes.
        """


class Chooser(Protocol):
    """Finds the template that serves given sizes."""

    def choose(self, shapes: Shapes) -> int:
        """Return the index of the first template that serves these shapes, ready to `fit` them. Return -1 if none does,
        or if the answer would have to be waited for: a frame waits for this call.
        """


class NativeSizes(Protocol):
    """Arithmetic of sizes in native code."""

    @property
    def ready(self) -> bool:
        """Whether the code is compiled."""

    def read(self, block: int) -> None:
        """Write the results for the last chosen sizes to the words at an address, which begin with a zero."""


@dataclass(frozen=True)
class SizeMath:
    """Makes native arithmetic of sizes, and choosers among it.

    `native` takes arithmetic, a pair (word, 0) for each result, and the number of results.
    """

    native: Callable[[SizeArithmetic, Sequence[tuple[int, int]], int], NativeSizes]
    chooser: Callable[[Sequence[Any], Positions], Chooser]


@runtime_checkable
class Following(Backend, Protocol):
    """A backend whose families compute with sizes that a trace can follow."""

    @property
    def follows(self) -> bool:
        """Whether it can do so now."""

    @property
    def templates(self) -> MutableMapping[Any, Any]:
        """The templates in its memory, by their parts. Backends whose plans could be exchanged share it."""

    def apart(self) -> Following:
        """Return another backend of this kind, for plans that are made in another thread and never run."""

    def template(
        self,
        program: Program,
        workspace: Workspace,
        trace: Trace,
        results: Sequence[int],
        storages: Mapping[int, tuple[slice, DataType]],
    ) -> ProgramTemplate:
        """End the trace, and return a template that makes this program and computes `results` for other sizes.

        `storages` lists the storages that each program needs for itself, by id: the slice of the results that is its
        shape, and its dtype.
        """

    def chooser(self, templates: Sequence[ProgramTemplate], positions: Positions) -> Chooser:
        """Return a chooser among templates whose sizes stand at these positions of the shapes."""
