"""What a backend is. None of its methods is named after an operator: families find their lowering by the stem of
their file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from perframe.errors import BackendError
from perframe.open_dims import Places, Shapes
from perframe.tensor import BackendType, DataType, HostStorage, Storage, TensorShape
from perframe.tracing import Trace

Array = NDArray[Any]
Make = Callable[[Array], Array]


@dataclass(frozen=True)
class Place:
    """Where a value lies within another one's storage, in elements: from `first` on, its rows `pitch` apart."""

    whole: str  # a value's name, which has storage of its own
    first: int
    pitch: int


class Operand:
    """A value as a lowering sees it: shape, dtype, values where they are known, and storage, made when it is first
    asked for.
    """

    __slots__ = (
        *("_derive", "_make_storage", "_storage", "_value"),
        *("derivations", "dtype", "name", "part", "shape", "was_read"),
    )

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DataType,
        value: Array | Callable[[], Array | None] | None = None,
        make_storage: Callable[[], Storage] | None = None,
        derive: Callable[[str, Make], Operand] | None = None,
        storage: Storage | None = None,
        part: Place | None = None,
    ) -> None:
        self.part = part  # where it lies within another value
        self.name, self.shape, self.dtype, self._value = name, TensorShape(shape), dtype, value
        self._make_storage, self._derive, self._storage = make_storage, derive, storage
        self.derivations: dict[str, tuple[Make, Operand]] = {}  # what was asked of `derived`
        self.was_read = False  # whether anyone looked at the values themselves

    @property
    def pitch(self) -> int:
        """The elements from one row, which is the last dim, to the next."""
        return self.part.pitch if self.part is not None else self.shape[-1] if self.shape else 1

    @property
    def has_gaps(self) -> bool:
        """Whether other values' elements lie between its rows."""
        return self.part is not None and len(self.shape) > 0 and self.part.pitch != self.shape[-1]

    def lies_in(self, whole: Operand, first: int) -> bool:
        """Whether its data is that of `whole` from this element on, in the same rows."""
        if self.part is None:
            return False
        name, begin = (whole.name, 0) if whole.part is None else (whole.part.whole, whole.part.first)
        row = whole.shape[-1] if whole.shape else 1
        return self.part.whole == name and self.part.first == begin + first // row * whole.pitch + first % row

    @classmethod
    def of(cls, array: Array) -> Operand:
        """An operand of known values that has no storage."""
        return cls("", array.shape, DataType.of(array.dtype), array)

    @property
    def value(self) -> Array | None:
        """The values, if they are known. Who only asks whether they are uses `is_constant`."""
        self.was_read = True
        if callable(self._value):
            self._value = self._value()
        return self._value

    @property
    def is_constant(self) -> bool:
        """Whether the values are known."""
        return self._value is not None

    def derived(self, kind: str, make: Make) -> Operand:
        """What `make` makes of a constant's values, such as weights in a kernel's order: made once for all plans.

        `kind` names what is made, and everything besides the values that it depends on.
        """
        if self._derive is None:
            assert self.value is not None
            return Operand.stored(make(self.value))
        made = self._derive(kind, make)
        self.derivations[kind] = make, made
        return made

    @classmethod
    def stored(cls, array: Array) -> Operand:
        """An operand of known values in host memory of its own."""
        storage = HostStorage.over(array)
        return cls("", array.shape, storage.dtype, array, storage=storage)

    @property
    def has_storage(self) -> bool:
        """Whether anyone has asked for its storage."""
        return self._storage is not None

    @property
    def storage(self) -> Storage:
        """Where the data lies. A constant is uploaded the first time."""
        if self._storage is None:
            if self._make_storage is None:
                raise BackendError(f"value {self.name!r} has no storage")
            self._storage = self._make_storage()
        return self._storage


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
    """A program for any sizes: see perframe/template.py."""

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

    def supports(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
        """Why it cannot run this layer; "" when it can."""

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
    """A backend whose values may lie within others (see perframe/places.py)."""

    def takes_gaps(
        self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]
    ) -> frozenset[str]:
        """The names of those operands whose rows may have gaps between them."""

    def overwrites(self, layer: LayerLike) -> int | None:
        """The input whose storage the first output may have, if that is as large: of it the layer reads no element
        after it has written there.
        """

    def part(self, storage: Storage, place: Place, shape: Sequence[int], dtype: DataType) -> Storage:
        """A part of the storage of the value that it lies in."""


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

    def chooser(self, templates: Sequence[ProgramTemplate], places: Places) -> Chooser:
        """Of templates whose sizes are at these places of shapes."""


Scratch = Callable[[Sequence[int], DataType], Operand]
