"""What a backend is. None of its methods is named after an operator: families find their lowering by the stem of
their file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from perframe.backends.operand import Array, Operand, Scratch, StorageRange
from perframe.tensor import BackendType, DataType, Storage


class LayerLike(Protocol):
    """A layer, as far as backends know it."""

    @property
    def op(self) -> str:
        """The operator's name."""

    @property
    def name(self) -> str:
        """The layer's name, for reports."""

    @property
    def family(self) -> str:
        """The family whose file lowers it."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that the model gives."""

    @property
    def declaration(self) -> Any:
        """What is declared of its operator."""

    @property
    def epilogue(self) -> Any:
        """The stages to apply to each element of the first output."""

    @property
    def channels_last(self) -> bool:
        """Whether its data has the channels as the last dim, though its form has them as the second."""

    def form(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """The canonical form of its family."""


class Step(Protocol):
    """One bound piece of a plan: it knows its kernel, its operands and its numbers."""

    layer: str


class Program(Protocol):
    """Consecutive steps, ready to run."""

    @property
    def nanoseconds(self) -> int | None:
        """What its runs take, as the last ones did; None where nobody measured it."""

    def __len__(self) -> int:
        """How many steps."""

    def replace(self, planned: Storage, new: Storage) -> None:
        """Read `new` where the plan says `planned`, whatever was read there meanwhile: two inputs may be one tensor."""

    def run(self, begin: int, end: int) -> None:
        """Run some of them, in order; the caller sees to what they depend on."""


@dataclass
class Access:
    """What a program shares with others. `rebinds` (planned, new) are made before its next run, never during one."""

    reads: list[Storage] = field(default_factory=list)
    writes: list[Storage] = field(default_factory=list)
    rebinds: list[tuple[Storage, Storage]] = field(default_factory=list)
    others: list[Storage] = field(default_factory=list)  # those of `reads` that are not the plan's own

    def take_rebinds(self) -> list[tuple[Storage, Storage]]:
        """What is to be bound anew, once."""
        taken, self.rebinds = self.rebinds, []
        return taken


class Workspace(Protocol):
    """Storage for what lives within a plan's runs: values whose lifetimes do not meet share it.

    Plans take and give back in the order of their steps. Runs of a backend's plans follow each other, so that plans may
    share it too.
    """

    size: int  # bytes, at the most
    used: int  # bytes that are taken now

    def take(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Storage until it is given back."""

    def give_back(self, storage: Storage) -> None:
        """Nothing reads its values any more; what was not taken here is left alone."""

    def scratch(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Storage between the steps of one layer."""

    def end_layer(self) -> None:
        """The steps of a layer are all there."""

    def end_plan(self) -> None:
        """The steps of all layers are there, and no program yet: storage may still move."""

    def release(self) -> None:
        """Free what is the plan's own."""


class Backend(Protocol):
    """A place where layers run."""

    backend_type: BackendType

    def alloc(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """New storage of undefined values."""

    def owns(self, storage: Storage) -> bool:
        """Whether its steps can read this storage: it is of its kind, and of its GL context."""

    def copy(self, source: Storage, target: Storage, shape: Sequence[int], dtype: DataType) -> None:
        """Copy a value between two storages of its own, in the order of submission and without waiting."""

    def constant(self, value: Array) -> Storage:
        """Storage of values that never change."""

    def workspace(self) -> Workspace:
        """A new one, for a plan."""

    def supports(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str | None:
        """Why it cannot run this layer; None when it can."""

    def lower(
        self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
    ) -> list[Step]:
        """The steps that run a layer."""

    def program(self, steps: Sequence[Step]) -> Program:
        """Make steps ready to run."""

    def submit(self, program: Program, begin: int, end: int, access: Access) -> None:
        """Begin to run some steps and return; who reads `access.writes` afterwards waits for them."""

    def flush(self) -> None:
        """See to it that what was submitted makes progress without further calls."""

    def close(self) -> None:
        """Wait for what was submitted and free what the backend holds."""


@runtime_checkable
class Placing(Protocol):
    """A backend whose values may lie within others (see perframe/plan/sharing.py)."""

    def takes_gaps(
        self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]
    ) -> frozenset[str]:
        """The names of those operands whose rows may have gaps between them."""

    def overwrites(self, layer: LayerLike) -> int | None:
        """The input whose storage the first output may have, if that is as large: of it the layer reads no element
        after it has written there.
        """

    def part(self, storage: Storage, place: StorageRange, shape: Sequence[int], dtype: DataType) -> Storage:
        """A part of the storage of the value that it lies in."""
