"""Plans for new sizes without planning: a template, made from the plan for one set of input shapes, serves all shapes
that would be planned in the same way.

Tracing makes templates, in a job beside the frames. All workers that run the same model share them.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

from perframe.backends.operand import Operand
from perframe.backends.protocol import Access, Backend
from perframe.backends.refit import Chooser, Following, SizedProgram
from perframe.errors import HeldMemory, InferenceError, InputError, MemoryLimitError
from perframe.ir import Subgraph
from perframe.ir.sizes.open_dims import OpenDims, Shapes
from perframe.ir.sizes.size import at_least, at_most, is_symbolic
from perframe.ir.sizes.trace import LEAST, Trace
from perframe.plan.carrying import Carried
from perframe.plan.constants import ConstantPool, MissingConstant
from perframe.plan.plan import Plan
from perframe.plan.segments import Segment
from perframe.plan.tracing import Tracing, TracingEndedError
from perframe.safety.records import dataclass
from perframe.tensor import Storage, Tensor, TensorShape
from perframe.tensor.locks import new_lock
from perframe.tensor.memory import Holder, ledger

log = logging.getLogger("perframe")
MAX_TEMPLATES = 32  # of one part: kernels share the work otherwise in each range of sizes
PATIENCE = 4  # jobs in a row without a use of any template, after which a part is traced no more until one is used
MORE_PATIENCE = 16  # such jobs where a state grows, since each run is planned without templates
CHANGES: tuple[Callable[[int], int], ...] = (  # expected changes of sizes; a batch of one often stays one
    lambda size: size,
    lambda size: 2 * size,
    lambda size: at_least(size, LEAST),
    lambda size: size if size < LEAST else 2 * size,
    lambda size: size if size < LEAST else at_least(size // 2, LEAST),
    lambda size: size if size < LEAST else at_least(size // 4, LEAST),
    lambda size: at_most(size, LEAST),
)
_carrying: weakref.WeakKeyDictionary[Subgraph, dict[Any, Subgraph]] = weakref.WeakKeyDictionary()  # copies of parts
_new = tuple.__new__  # makes a TensorShape of ints in half of the time of its constructor

MakePlan = Callable[[Shapes, Backend, ConstantPool, Callable[[str], None]], Plan]


def follows_sizes() -> bool:
    """Whether plans for new sizes may come from templates: PERFRAME_FOLLOW=0 says no. Raises InputError."""
    given = os.environ.get("PERFRAME_FOLLOW", "1")
    if given not in ("0", "1"):
        raise InputError(f"PERFRAME_FOLLOW is 0 or 1, not {given!r}")
    return given == "1"


class Template:
    """A plan for any sizes: its numbers are arithmetic of the sizes with which its trace began."""

    def __init__(self, trace: Trace, plan: Plan, backend: Following, ranks: Sequence[int]) -> None:
        """`ranks` are those of the shapes that it was traced for."""
        (segment,) = plan.segments
        assert isinstance(segment, Segment) and plan.program is not None
        self.ranks = tuple(ranks)
        self.used = 0  # the count of uses of all templates at the last use of this one
        self.steps, self.layers_of_steps = segment.steps, segment.layers
        self._results = list[int]()
        self.inputs = [
            (value.name, self._note(value.shape), value.dtype, value.part, value.storage if value.has_storage else None)
            for value in plan.inputs
        ]
        self.outputs = [
            (name, self._note(tensor.shape), tensor.dtype, tensor.data_on_backend)
            for name, tensor in plan.outputs.items()
        ]
        opened = self._open([where for _, where, *_ in self.inputs])
        self.read_inputs = [index for index in opened if self.inputs[index][4] is not None]  # through rings of storages
        self.open_outputs = self._open([where for _, where, *_ in self.outputs])
        planned = {id(storage): (where, dtype) for _, where, dtype, _, storage in self.inputs if storage is not None}
        one = self._note((1,))  # another storage stands for an output that is extended
        for name, where, dtype, storage in self.outputs:
            planned[id(storage)] = one if name in plan.extended else where, dtype
        self.replaced = plan.replaced
        self.layers = [name for name, _ in plan.live()]
        self.program = backend.template(plan.program, plan.workspaces[0], trace, self._results, planned)
        self.losses = trace.losses
        # plans refer to their programs: only a weak reference to the plan lets both go
        self._only: weakref.WeakKeyDictionary[SizedProgram, weakref.ref[FittedPlan]] = weakref.WeakKeyDictionary()
        every: list[Storage | None] = [one for *_, one in self.inputs]
        for own in (*every, *(one for *_, one in self.outputs)):
            if own is not None:  # each fitted plan has its own storage instead
                own.release()

    def _note(self, numbers: Sequence[int]) -> slice:
        self._results += numbers
        return slice(len(self._results) - len(numbers), len(self._results))

    def _open(self, shapes: Sequence[slice]) -> list[int]:
        """The indices of shapes that depend on sizes."""
        return [index for index, where in enumerate(shapes) if any(map(is_symbolic, self._results[where]))]

    def plan(self, backend: Backend, spare: Sequence[Plan]) -> FittedPlan | None:
        """Return the plan for the sizes for which the template was last chosen, or None while kernels are compiling. It
        may be one of the `spare` plans, with other shapes.
        """
        own = [plan for plan in spare if isinstance(plan, FittedPlan) and plan.template is self]
        old = next((plan for plan in own if not plan.is_busy), None)
        sized = self.program.fit(backend, None if old is None else old.sized)
        if sized is None:
            return None
        made = self._only.get(sized)
        plan = old if old is not None and old.sized is sized else None if made is None else made()
        if plan is None:
            plan = FittedPlan(self, sized, backend)
            if sized.is_only:
                self._only[sized] = weakref.ref(plan)
        else:
            if plan is old:
                plan.close_outputs()
            plan.resize()
        return plan

    def refit(self, plan: FittedPlan, backend: Backend) -> bool:
        """Give a plan of this template the sizes for which the template was last chosen. Return False if its program
        cannot get them.
        """
        if not self.program.resizes or self.program.fit(backend, plan.sized) is not plan.sized:
            return False
        if not plan.sized.is_only:
            plan.close_outputs()
        plan.resize()
        return True


class FittedPlan(Plan):
    """A plan made by a template, from the arithmetic of sizes."""

    def __init__(self, template: Template, sized: SizedProgram, backend: Backend) -> None:
        """`sized` holds the program, the storages and the numbers of this plan."""
        numbers, storages = sized.numbers, sized.storages
        inputs = list[Operand]()
        for name, where, dtype, part, planned in template.inputs:
            storage = None if planned is None else storages[id(planned)]
            inputs.append(Operand(name, _new(TensorShape, numbers[where]), dtype, storage=storage, part=part))
        outputs = {
            name: Tensor.over(storages[id(planned)], _new(TensorShape, numbers[where]), dtype, name)
            for name, where, dtype, planned in template.outputs
        }
        reads = [operand.storage for operand in inputs if operand.has_storage]
        access = Access(reads, [tensor.data_on_backend for tensor in outputs.values()])
        segment = Segment(backend, template.steps, template.layers_of_steps, access, sized.program)

        def live() -> list[tuple[str, int]]:
            return list(zip(template.layers, sized.live(), strict=True))

        read = [(operand, backend) for operand in inputs]
        super().__init__([segment], read, outputs, list(storages.values()), [sized.workspace], live)
        self.template, self.sized, self.replaced = template, sized, template.replaced

    @property
    def input_shapes(self) -> list[TensorShape]:
        """The input shapes of the sizes for which the program has its numbers now."""
        return [_new(TensorShape, self.sized.numbers[where]) for _, where, *_ in self.template.inputs]

    def resize(self) -> None:
        """Take the shapes of the sizes for which the program has its numbers now."""
        numbers, template = self.sized.numbers, self.template
        for index in template.read_inputs:
            self.inputs[index].shape = _new(TensorShape, numbers[template.inputs[index][1]])
        for index in template.open_outputs:
            name, where, dtype, _ = template.outputs[index]
            shape = _new(TensorShape, numbers[where])
            self.outputs[name] = Tensor.over(self._written[name], shape, dtype, name)

    def offer(self, source: str, planned: Storage) -> Iterator[Storage]:
        """Yield nothing: the storages of a program that is resized lose their values."""
        yield from ()

    def close_outputs(self) -> None:
        """Let go of the outputs, but for states: as if the plan were another one."""
        for name, output in self.outputs.items():
            if self._written[name] is self._planned[name]:
                output.let_go()
                self.outputs[name] = Tensor.over(self._written[name], output.shape, output.dtype, name)


@dataclass(frozen=True)
class _Family:
    """The templates for inputs of the same ranks, and the chooser that finds the template for given shapes."""

    templates: Sequence[Template]
    chooser: Chooser


class Templates(Holder):
    """The templates of one part of a model. Workers ask them for plans, and start tracing in jobs."""

    def __init__(self, model: Subgraph, backend: Following, decisive: int) -> None:
        """Sizes are the open dims of all inputs, and the numbers in the `decisive` inputs whose values decide shapes:
        each of these counts as another shape behind those of all inputs.
        """
        self._backend = backend.apart()
        self._dims = OpenDims([*[value.spec.shape for value in model.inputs], *(None,) * decisive])
        self._changes = CHANGES[:1] if decisive else CHANGES  # numbers of data do not change as sizes do
        self._given, self._constants = model.constants, ConstantPool(model.constants)
        self._lock = new_lock()  # held while a plan is chosen and fitted, and while templates change
        self._busy = threading.Lock()  # held while a job traces the part
        self._known: list[Template] = []
        self._families: dict[tuple[int, ...], _Family] = {}  # by ranks
        self._missing: list[MissingConstant] = []
        self._uses = self._unused = 0  # uses of templates, and traced shapes since the last use
        self._model_name = model.name
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()  # the parts of workers that use them
        ledger.holders.add(self)
        self.keeps_trying = False  # whether a state of a user grows
        self.can_follow = True  # false when a layer cannot be followed to other sizes

    def plan(self, shapes: Shapes, backend: Backend, spare: Sequence[Plan] = ()) -> Plan | None:
        """Return the plan for these shapes, or None if no template serves them yet. It may be one of the `spare` plans,
        with other shapes.
        """
        family = self._families.get(tuple([len(shape) for shape in shapes]))
        if family is None:
            return None
        with self._lock:
            chosen = family.chooser.choose(shapes)
            if chosen < 0:
                return None
            template = family.templates[chosen]
            self._uses += 1
            self._unused = 0
            template.used = self._uses
            return template.plan(backend, spare)

    def refit(self, plan: Plan, shapes: Shapes, backend: Backend) -> bool:
        """Give a plan other shapes. Return False, and change nothing, if another template serves them, or while the
        plan's numbers are in use.
        """
        if not isinstance(plan, FittedPlan) or (plan.is_busy and not plan.sized.is_only):
            return False
        template = plan.template
        family = self._families.get(template.ranks)
        if family is None:
            return False
        with self._lock:
            chosen = family.chooser.choose(shapes)
            if chosen < 0 or family.templates[chosen] is not template:
                return False
            self._uses += 1
            self._unused = 0
            template.used = self._uses
            return template.refit(plan, backend)

    def held_bytes(self, seen: set[int]) -> int:
        """The bytes of their constants, apart from the objects whose ids are in `seen`; adds its own ids."""
        return self._constants.held(seen)

    def held(self, seen: set[int]) -> HeldMemory:
        """The bytes that no worker uses; workers count theirs."""
        name = f"templates of {self._model_name} without a worker"
        return HeldMemory(name, caches=0 if self.users else self.held_bytes(seen))

    def free_spare(self) -> None:
        """Do nothing."""

    @property
    def oldest(self) -> int | None:
        """Zero if no worker uses the templates, which may then go."""
        return None if self.users or self.is_tracing or not self._constants.known else 0

    def drop_oldest(self) -> bool:
        """Drop all templates. Return whether they might go."""
        with self._lock:
            if self.oldest is None:
                return False
            self._known, self._families, self._missing = [], {}, []
            self._constants.release()
            self._constants = ConstantPool({})
        return True

    @property
    def losses(self) -> list[str]:
        """The lines of code that tied a template to one size, without saying so: see ir/sizes/trace.py."""
        return [line for template in self._known for line in template.losses]

    @property
    def is_tracing(self) -> bool:
        """Whether a job traces the part now."""
        return self._busy.locked()

    @property
    def is_open(self) -> bool:
        """Whether to trace more shapes: not after jobs that brought no use, until a template is used again."""
        return self.can_follow and self._unused < (MORE_PATIENCE if self.keeps_trying else PATIENCE)

    def has_sizes(self, shapes: Shapes) -> bool:
        """Whether the model leaves any dim of these shapes open."""
        return bool(self._dims.sizes(shapes))

    def put_missing(self, constants: ConstantPool, backend: Backend) -> None:
        """Put the constants on a backend that traces did not find there. The backend's context is current."""
        while self._missing:
            constants.put(backend, self._missing.pop())

    def trace(self, shapes: Shapes, make: MakePlan, tracing: Tracing, hurries: Callable[[], bool]) -> bool:
        """Make templates for these sizes, and for other likely sizes unless it `hurries`. Return False where that must
        be done again, after `put_missing`.

        Raises the error of a layer that cannot be followed. The part then plans each new shape without templates.
        """
        sizes = self._dims.sizes(shapes)
        if not sizes or not self._busy.acquire(blocking=False):
            return True
        try:
            if not self._constants.known:  # they were dropped
                self._constants = ConstantPool(self._given)
            self._unused += 1
            for others in self._expected(sizes):
                if others != sizes and hurries():
                    break
                if not self._missing and not self._serves(others, shapes):
                    self._follow(others, shapes, make, tracing)
        except TracingEndedError:
            pass
        except Exception:
            self.can_follow = False
            raise
        finally:
            self._busy.release()
        return not self._missing

    def _expected(self, sizes: Sequence[int]) -> list[list[int]]:
        found: list[list[int]] = []
        for change in self._changes:
            others = [change(size) for size in sizes]
            if others not in found:
                found.append(others)
        return found

    def _serves(self, sizes: Sequence[int], shapes: Shapes) -> bool:
        """Whether a template serves these sizes, even if its kernels are not compiled yet."""
        family = self._families.get(tuple(map(len, shapes)))
        return family is not None and any(template.program.serves(sizes) for template in family.templates)

    def _follow(self, sizes: Sequence[int], shapes: Shapes, make: MakePlan, tracing: Tracing) -> None:
        trace = Trace(sizes)
        try:
            plan = make(self._dims.put(trace.sizes, shapes), self._backend, self._constants, tracing.at)
            missing = self._constants.take_missing()
            self._missing += missing
            if plan.program is not None and not missing:
                self._keep(Template(trace, plan, self._backend, [*map(len, shapes)]))
        except MemoryLimitError as error:  # a template is not worth an error: these sizes are planned
            log.info("no template for the sizes %s: %s", sizes, error)
        except (InferenceError, InputError):
            if list(sizes) == self._dims.sizes(shapes):  # those that were only expected may not fit the model or memory
                raise
        finally:
            trace.is_open = False

    def _keep(self, template: Template) -> None:
        """Add a template. If there are too many, drop the template that was unused for longest."""
        with self._lock:
            self._uses += 1
            template.used = self._uses
            self._known = sorted([template, *self._known], key=lambda known: -known.used)[:MAX_TEMPLATES]
            families: dict[tuple[int, ...], list[Template]] = {}
            for known in self._known:
                families.setdefault(known.ranks, []).append(known)
            self._families = {ranks: self._family(ranks, templates) for ranks, templates in families.items()}

    def _family(self, ranks: Sequence[int], templates: Sequence[Template]) -> _Family:
        chooser = self._backend.chooser([template.program for template in templates], self._dims.positions(ranks))
        return _Family(templates, chooser)


def templates_of(part: Subgraph, backend: Backend, carried: Carried) -> Templates | None:
    """Return the templates that all workers of this model object in one memory share, if they carry the same states;
    None where plans do not follow sizes.
    """
    if not isinstance(backend, Following) or not backend.follows or not follows_sizes():
        return None
    if carried.fixed:
        known = _carrying.setdefault(part, {})
        part = known.setdefault(frozenset(carried.fixed.items()), copy(part))
    found: Templates | None = backend.templates.get(part)
    if found is None:
        found = backend.templates.setdefault(part, Templates(part, backend, len(part.decisive_inputs)))
    return found
