"""The protocol between plans and backends. No method is named after an operator: a family's lowering is the file of
the same name in the backend's `families` folder.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from perframe.backends.operand import Array, Operand, Scratch, StorageRange
from perframe.backends.precision import Precision
from perframe.safety.records import dataclass
from perframe.tensor import BackendType, DataType, Storage

if TYPE_CHECKING:
    from perframe.ir.declaration import Declaration, Known
    from perframe.ir.epilogue import Stage
    from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor


class ValueLike(Protocol):
    """The properties of a value that backends use."""

    @property
    def is_named_only(self) -> bool:
        """Whether no model knows more of it than its name."""

    @property
    def is_inferred(self) -> bool:
        """Whether its shape is known without inference."""

    @property
    def shape(self) -> DynamicTensorShape | None:
        """The shape in all runs; None if the rank is unknown."""


class LayerLike(Protocol):
    """The properties of a layer that backends use."""

    @property
    def inputs(self) -> Sequence[ValueLike | None]:
        """The values that it reads, None for each absent one."""

    @property
    def outputs(self) -> Sequence[ValueLike | None]:
        """The values that it makes, None for each one that it leaves out."""

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
    def declaration(self) -> Declaration:
        """The declaration of its operator."""

    @property
    def epilogue(self) -> Sequence[Stage]:
        """The stages to apply to each element of the first output."""

    @property
    def channels_last(self) -> bool:
        """Whether the channels are the last dim of its data, although they are the second dim of its form."""

    @property
    def is_wide(self) -> bool:
        """Whether its integers may need more than 32 bits."""

    def __getattr__(self, name: str) -> Any:
        """An attribute by the name in the declaration, or its default."""

    def form(self, inputs: Sequence[Known | None], outputs: Sequence[Known]) -> Any:
        """The canonical form of its family."""

    def infer(self, inputs: Sequence[PartialTensor | None]) -> Sequence[PartialTensor]:
        """The outputs for these inputs."""


class Step(Protocol):
    """One bound kernel of a plan, with its operands and its numbers."""

    layer: str


class Program(Protocol):
    """Consecutive steps, ready to run."""

    @property
    def nanoseconds(self) -> int | None:
        """The duration of a run, measured over the last runs; None if it is not measured."""

    @property
    def is_brief(self) -> bool:
        """Whether `submit` may run the steps before it returns."""

    @property
    def is_provisional(self) -> bool:
        """Whether its steps still run in another way than later, since kernels are compiling: the times are not those
        of later runs.
        """

    def __len__(self) -> int:
        """The number of steps."""

    @property
    def held_bytes(self) -> int:
        """The bytes of its numbers that count as held."""

    def replace(self, planned: Storage, new: Storage) -> None:
        """Use `new` instead of the plan's storage `planned`.

        `planned` is the storage that the plan was made with, not the one that an earlier call bound: two inputs may be
        one tensor.
        """

    def run(self, begin: int, end: int) -> None:
        """Run the steps from `begin` up to `end`, in order. The caller has waited for whatever they depend on."""

    def rows(self, index: int) -> int:
        """The number of parts in which a step may be submitted, one after the other; 1 if it cannot be divided."""


KEPT = 128  # timed runs that a program keeps until they are taken


class TimedRun(NamedTuple):
    """The times of consecutive steps in one run: the number of the first step, and the nanoseconds of `perf_counter_ns`
    before each step and after the last. A time that was not measured is NaN. With `rows` it is a share of one step: the
    first row, how many, and how many the step has.
    """

    begin: int
    stamps: NDArray[np.float64]
    rows: tuple[int, int, int] | None = None


class Measured(Protocol):
    """Work whose time is measured."""

    @property
    def seconds(self) -> float | None:
        """Seconds used, or None while it is under way. Never blocks."""


@dataclass(frozen=True)
class Done:
    """Measured work that has ended."""

    seconds: float


@runtime_checkable
class TimedProgram(Protocol):
    """A program whose steps are timed while they run, if the backend's `times_steps` says so."""

    def step_seconds(self, repeats: int) -> list[float] | None:
        """The shortest time of each step, in seconds: of `repeats` more runs or, without repeats, of the runs while the
        backend timed its steps. None if none was timed. Blocks if there are repeats.
        """

    def take_runs(self, wait: bool = False) -> list[TimedRun]:
        """Return the timed runs whose times have arrived since the last call, and forget them. A GPU's times come some
        runs later; `wait` blocks for them.
        """


Lent = tuple[Storage, Storage, Array]


@dataclass
class Access:
    """The storages that a program shares with others.

    `rebinds` are pairs (planned, new). The backend applies them before the next run, and never during one.

    `lent` has the planned storage, the storage bound to it, and an array of the caller. If the steps run within
    `submit`, they may read the array in place; otherwise `submit` uploads it to the bound storage.
    """

    reads: list[Storage] = field(default_factory=list)
    writes: list[Storage] = field(default_factory=list)
    rebinds: list[tuple[Storage, Storage]] = field(default_factory=list)
    others: list[Storage] = field(default_factory=list)  # the storages in `reads` that do not belong to the plan
    lent: list[Lent] = field(default_factory=list)

    def take_rebinds(self) -> list[tuple[Storage, Storage]]:
        """Return the pending rebinds, and clear them."""
        taken, self.rebinds = self.rebinds, []
        return taken

    def take_lent(self) -> list[Lent]:
        """Return the lent arrays, and forget them."""
        taken, self.lent = self.lent, []
        return taken


class Workspace(Protocol):
    """Storage for the values that live within one run of a plan. Values whose lifetimes do not meet share it.

    A plan takes storage and gives it back in the order of its steps. A backend runs its plans one after the other, so
    plans may share storage too.
    """

    used: int  # bytes that are taken now

    @property
    def size(self) -> int:
        """Bytes at the peak."""

    def take(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> Storage:
        """Take storage for a value, until it is given back. A GPU may store float32 as halves if the file does."""

    def give_back(self, storage: Storage) -> None:
        """Take storage back: nothing reads its values any more. Does nothing for storage that was not taken here."""

    def scratch(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Return storage for values that one layer passes between its steps."""

    def end_layer(self) -> None:
        """Called when all steps of a layer are made."""

    def end_plan(self) -> None:
        """Called when the steps of all layers are made and no program is: storage may still move."""

    def begin(self) -> None:
        """Called when the plan's first run begins, and no run of another plan is under way. Raises MemoryLimitError if
        there is no room, and changes nothing.
        """

    def held(self) -> list[tuple[int, int]]:
        """The bytes held for the plan's values, by the ids of what holds them: plans share it."""

    def release(self) -> None:
        """Free the storage that belongs to the plan alone."""


class Backend(Protocol):
    """The processor and the memory with which layers run."""

    backend_type: BackendType
    precision: Precision  # of the numbers that it keeps
    times_steps: bool  # whether each step of each run is timed (see TimedProgram)
    is_emulated: bool  # whether the GPU's work is done on the CPU, within the calls that submit it
    traces_early: bool  # whether traces begin before a second input shape comes
    makes_constants: bool  # False in a trace beside the thread of a context: only constants that are there serve

    @property
    def memory(self) -> Hashable:
        """Backends with equal ones share storage: those of workers in one context, or on the CPU."""

    def alloc(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Allocate storage; its values are undefined."""

    def owns(self, storage: Storage) -> bool:
        """Whether steps of this backend can read the storage: its kind and its GL context are this backend's."""

    def copy(self, source: Storage, target: Storage, shape: Sequence[int], dtype: DataType) -> None:
        """Copy a value between two storages of this backend, in the order of submission and without waiting."""

    def constant(self, value: Array, is_weight: bool = False, is_half: bool = False) -> Storage:
        """Return storage with values that never change. Those of a weight may be rounded as `precision` says, or to
        halves if the file holds them so.
        """

    def workspace(self) -> Workspace:
        """Return a new workspace for a plan."""

    def supports(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str | None:
        """Return None if this backend can run the layer, and otherwise the reason why it cannot."""

    def extends(self, runs: Sequence[int]) -> bool:
        """Whether a join of inputs with these numbers of elements may write all but the first one, which lies at the
        begin of the output already.
        """

    def replaces(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> bool:
        """Whether a layer whose form is `Replacing` may write nothing but the rows that differ: see `lower`."""

    def lower(
        self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
    ) -> list[Step]:
        """Return the steps that run a layer.

        A layer whose form is `Replacing` may get one output more: numbers of rows. Before a run the first output holds
        the first input, apart from these rows. After it, they are the rows that the run replaced.
        """

    def program(self, steps: Sequence[Step]) -> Program:
        """Make steps ready to run."""

    def submit(self, program: Program, begin: int, end: int, access: Access) -> None:
        """Begin to run the steps from `begin` up to `end`, and return. Readers of `access.writes` wait for them."""

    def measure(
        self,
        program: Program,
        begin: int,
        end: int,
        access: Access,
        rows: tuple[int, int] | None = None,
        wait: bool = True,
    ) -> Measured:
        """Submit steps as `submit` does, and measure what they take. With `rows`, only some rows of one step are
        submitted: the first, and how many. With `wait` they are done when the call returns; without, a backend with its
        own clock does not wait.
        """

    def flush(self) -> None:
        """Ensure that submitted work makes progress without further calls."""

    def wait_for_jobs(self) -> None:
        """Wait for submitted jobs, whose errors their readbacks raise. GL has none: it returns at once."""

    def free_dropped(self) -> None:
        """Free dropped objects without waiting: GL keeps an object until the GPU has finished with it."""

    def free_spare(self) -> None:
        """Free dropped objects, and buffers that are kept only to be used again. Does nothing in another thread than
        the context's.
        """

    @property
    def is_here(self) -> bool:
        """Whether this thread may free the backend's memory: a GL context belongs to one thread."""


@runtime_checkable
class Guarding(Protocol):
    """A backend that leaves its caller's state as it found it, at a price."""

    def guarded(self) -> AbstractContextManager[Any]:
        """Save the state at the begin of a block, and restore it at the end: once for everything in between."""


@runtime_checkable
class Placing(Protocol):
    """A backend whose values may lie within other values' storage (see perframe/plan/sharing.py)."""

    def takes_gaps(
        self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]
    ) -> frozenset[str]:
        """The names of the operands whose rows may have gaps between them."""

    def overwrites(self, layer: LayerLike) -> int | None:
        """Return the index of the input whose storage the first output may take over, or None.

        Both must be equally large. The layer must read each element of that input before it overwrites the element.
        """

    def part(self, storage: Storage, within: StorageRange, shape: Sequence[int], dtype: DataType) -> Storage:
        """Return the range `within` of another value's `storage`, as separate storage."""
