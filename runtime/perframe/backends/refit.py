"""What a backend adds whose plans can be made over for other sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from perframe.backends.protocol import Backend, Program, Workspace
from perframe.sizes.open_dims import Positions, Shapes
from perframe.sizes.traced import Trace
from perframe.tensor import DataType, Storage


class SizedProgram(Protocol):
    """A program for one set of sizes, with what is its own: storages in place of those of the template with these ids,
    the numbers that the template was asked for, and where its values are.
    """

    @property
    def program(self) -> Program:
        """The program."""

    @property
    def workspace(self) -> Workspace:
        """Where its values are."""

    @property
    def storages(self) -> Mapping[int, Storage]:
        """By the ids of those whose place they take."""

    @property
    def numbers(self) -> Sequence[int]:
        """What the template was asked for."""

    def live(self) -> list[int]:
        """For each layer, the bytes of all values within a run while it does."""


class ProgramTemplate(Protocol):
    """A program for any sizes: see perframe/plan/refit.py."""

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether it is the program for these sizes; known before its kernels are there."""

    def fit(self, backend: Backend) -> SizedProgram | None:
        """The program for the sizes for which it was chosen last, to run on a backend of its kind; None while kernels
        are being compiled.
        """


class Chooser(Protocol):
    """Finds which of some templates serves sizes."""

    def choose(self, shapes: Shapes) -> int:
        """The first one that serves these shapes, for which its programs may be fitted then; -1 where none does, or
        finding out would have to be waited for. A frame waits for the answer.
        """


@runtime_checkable
class Following(Backend, Protocol):
    """A backend whose families compute with numbers that a trace follows."""

    def apart(self) -> Following:
        """Another one of its kind, for plans that are made in another thread and never run."""

    def template(
        self,
        program: Program,
        workspace: Workspace,
        trace: Trace,
        results: Sequence[int],
        storages: Mapping[int, tuple[slice, DataType]],
    ) -> ProgramTemplate:
        """What makes a program like this one for other sizes, and these results besides; ends the trace. `storages` are
        those that each program has for itself, by their ids: which results are their shapes, and their dtypes.
        """

    def chooser(self, templates: Sequence[ProgramTemplate], positions: Positions) -> Chooser:
        """Of templates whose sizes are at these positions of shapes."""
