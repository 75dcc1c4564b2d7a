"""Plans for new sizes without planning: what was computed for one set of input shapes serves all others that would be
planned alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perframe.backends.base import Access, Backend, Chooser, Following, Operand, SizedProgram
from perframe.open_dims import OpenDims, Shapes
from perframe.plan import Plan
from perframe.stretch import Stretch
from perframe.tensor import Storage, Tensor, TensorShape
from perframe.tracing import LEAST, Trace, at_least, at_most, plain

MAX_TEMPLATES = 12  # of one part
MAX_IDLE = 8  # plans of one template that are kept for other sizes, when those for which they were are not used lately
CHANGES: tuple[Callable[[int], int], ...] = (  # of sizes, that are expected; what is one often stays so, a batch say
    lambda size: 2 * size,
    lambda size: at_least(size, LEAST),
    lambda size: size if size < LEAST else 2 * size,
    lambda size: size if size < LEAST else at_least(size // 2, LEAST),
    lambda size: size if size < LEAST else at_least(size // 4, LEAST),
    lambda size: at_most(size, LEAST),
)
_new = tuple.__new__  # makes a TensorShape of ints, in half of the time of its own way
PATIENCE = 12  # after so many plans in a row that no template served, no more are made


class Template:
    """A plan whose numbers are formulas of the sizes with which its trace began."""

    def __init__(self, trace: Trace, plan: Plan, backend: Following) -> None:
        (stretch,) = plan.stretches
        self.ranks = tuple(len(value.shape) for value in plan.inputs.values())
        self.used = 0  # the later, the more
        assert isinstance(stretch, Stretch) and plan.program is not None
        self.steps, self.layers_of_steps = stretch.steps, stretch.layers
        self.backend, self._results, shapes = stretch.backend, list[int](), dict[int, slice]()
        self.inputs = [
            (name, self._note(value.shape), value.dtype, plan.bound.get(name)) for name, value in plan.inputs.items()
        ]
        self.outputs = [
            (name, self._note(tensor.shape), tensor.dtype, tensor.data_on_backend)
            for name, tensor in plan.outputs.items()
        ]
        for _, where, _, storage in (*self.inputs, *self.outputs):
            if storage is not None:
                shapes[id(storage)] = where
        lasting = [storage for *_, storage in (*self.inputs, *self.outputs)]
        plan.owned = [storage for storage in plan.owned if storage in lasting]  # the rest serves other plans too
        self.layers = [name for name, _ in plan.live()]
        self.program = backend.template(plan.program, plan.workspaces[0], trace, self._results, shapes)
        self._idle: list[FittedPlan] = []
        self._most_idle = MAX_IDLE

    def _note(self, numbers: Sequence[int]) -> slice:
        self._results += numbers
        return slice(len(self._results) - len(numbers), len(self._results))

    def take_back(self, plan: FittedPlan) -> None:
        """Keep a plan that is not used now for other sizes."""
        if len(self._idle) < self._most_idle:
            self._idle.append(plan)

    def release(self) -> None:
        """Keep none any more."""
        self._idle.clear()
        self._most_idle = 0

    def _blank(self) -> FittedPlan | None:
        """A plan to be fitted to sizes; None where that would have to be waited for."""
        planned = [(storage, dtype) for *_, dtype, storage in (*self.inputs, *self.outputs) if storage is not None]
        storages = {id(storage): self.backend.alloc((0,), dtype) for storage, dtype in planned}
        sized = self.program.blank(storages)
        return None if sized is None else FittedPlan(self, sized, storages)

    def prepare(self) -> None:
        """Have plans ready: to fit one takes a fraction of the time to make it, and less when that was done before."""
        plans = [self.plan(None) for _ in range(self._most_idle)]
        for plan in plans:
            if plan is not None:
                plan.release()

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether the plan for these sizes would be a like one."""
        return self.program.serves(sizes)

    def plan(self, latest: Plan | None) -> FittedPlan | None:
        """The plan for the sizes for which the template was chosen last; None where that would have to be waited for.
        `latest` is the one that ran last.
        """
        plan = self._idle.pop() if self._idle else self._blank()
        if plan is not None:
            try:
                plan.fit(latest)
            except BaseException:  # no memory
                plan.release()
                raise
        return plan


class FittedPlan(Plan):
    """A plan that can be fitted to sizes, and goes back to its template when it is released.

    A frame waits for that, with nothing of it in the processor's caches: what is touched is what it costs.
    """

    def __init__(self, template: Template, sized: SizedProgram, storages: Mapping[int, Storage]) -> None:
        """`storages` are its own, by the ids of those whose place they take."""
        self._template, self._sized = template, sized
        inputs: dict[str, Operand] = {}
        for name, _, dtype, planned in template.inputs:
            storage = None if planned is None else storages[id(planned)]
            inputs[name] = Operand(name, (0,), dtype, storage=storage)  # nobody asks for its shape
        self._of_outputs = [
            (name, where, storages[id(planned)], dtype) for name, where, dtype, planned in template.outputs
        ]
        reads = [operand.storage for operand in inputs.values() if operand.has_storage]
        self._access = Access(reads, [storage for _, _, storage, _ in self._of_outputs])
        stretch = Stretch(template.backend, template.steps, template.layers_of_steps, self._access, sized.program)
        homes, workspaces = dict.fromkeys(inputs, template.backend), [sized.workspace]
        super().__init__([stretch], inputs, homes, {}, [], workspaces, self._live)
        self._make_outputs()
        self._bound_first = dict(self.bound)

    def fit(self, latest: Plan | None) -> None:
        """Be the plan for the sizes for which the template was chosen. It may take as long as the latest one."""
        like, size = (None, 0) if latest is None else (latest.program, latest.workspaces[0].size)
        values = self._sized.fit(like, size)
        for tensor, where in self._shaped:
            tensor.shape = _new(TensorShape, values[where])  # which are ints already

    def _make_outputs(self) -> None:
        """Tensors that nobody has seen, whose shapes follow from sizes."""
        self.outputs = {name: Tensor.over(storage, (0,), dtype, name) for name, _, storage, dtype in self._of_outputs}
        self._shaped = [(self.outputs[name], where) for name, where, _, _ in self._of_outputs]

    def release(self) -> None:
        """Give back what the runs used, and be ready for other sizes."""
        super().release()
        self._sized.release()
        for ring in self._rings.values():
            del ring[1:]
        self._make_outputs()  # the others may be someone's
        self.bound = dict(self._bound_first)
        self._access.reads, self._access.rebinds = list(self.bound.values()), []
        self._template.take_back(self)

    def _live(self) -> list[tuple[str, int]]:
        return list(zip(self._template.layers, self._sized.live(), strict=True))


@dataclass(frozen=True)
class _Family:
    """The templates for inputs of the same ranks, and what says which of them serves sizes."""

    templates: Sequence[Template]
    chooser: Chooser


class Templates:
    """The templates of one part of a model."""

    def __init__(self, backend: Backend, dims: OpenDims, make: Callable[[Shapes], Plan]) -> None:
        self._backend, self._dims, self._make, self._follows = backend, dims, make, isinstance(backend, Following)
        self._known: list[Template] = []
        self._families: dict[tuple[int, ...], _Family] = {}  # by ranks
        self._uses = 0
        self._useless = self._missed = 0  # plans that no template served: in a row, and in all

    def plan(self, shapes: Shapes, latest: Plan | None = None) -> Plan:
        """The plan for these shapes: from a template, or made, which may leave a template behind. `latest` is the one
        that ran last.
        """
        template = self._chosen(shapes)
        if template is None:
            return self._plan(shapes)
        self._useless = 0
        self._uses += 1
        template.used = self._uses
        return template.plan(latest) or self._make(shapes)

    def _chosen(self, shapes: Shapes) -> Template | None:
        """The template that is ready to be fitted to these shapes."""
        family = self._families.get(tuple([len(shape) for shape in shapes]))
        chosen = -1 if family is None else family.chooser.choose(shapes)
        return None if family is None or chosen < 0 else family.templates[chosen]

    def _plan(self, shapes: Shapes) -> Plan:
        """The same, where no template serves these shapes, as far as could be asked."""
        sizes = self._dims.sizes(shapes) if self._follows else None
        if not sizes:
            return self._make(shapes)
        known = tuple(map(len, shapes)) in self._families
        if not known:
            self._expect(sizes, shapes)
        if self._serving(sizes, shapes):  # which was not there, or could not be asked yet
            return self._make(shapes)
        self._useless += 1
        self._missed += known
        # following costs some five plans: sizes like these must come again
        if self._useless > PATIENCE or (known and self._missed % 2):
            return self._make(shapes)
        made = self._follow(sizes, shapes)
        if made is None:
            made = self._make(shapes)
            self._follows = False  # the shapes are right: a family cannot compute with followed sizes
        return made

    def _serving(self, sizes: Sequence[int], shapes: Shapes) -> bool:
        """Whether any template is for these sizes, wherever its kernels are."""
        family = self._families.get(tuple(map(len, shapes)))
        return family is not None and any(template.serves(sizes) for template in family.templates)

    def _expect(self, sizes: Sequence[int], shapes: Shapes) -> None:
        """Be ready for sizes that may come, as far as they are planned in different ways."""
        for change in CHANGES:
            others = [change(size) for size in sizes]
            if others == sizes:
                continue
            plan = None if self._serving(others, shapes) else self._follow(others, shapes)
            if plan is not None:
                plan.release()

    def _follow(self, sizes: Sequence[int], shapes: Shapes) -> Plan | None:
        """A plan that leaves a template; None where following failed."""
        trace, template = Trace(sizes), None
        try:
            plan = self._make(self._dims.put(trace.sizes, shapes))
            if plan.program is not None and isinstance(self._backend, Following):
                template = Template(trace, plan, self._backend)
        except Exception:  # made again without a trace, it says what is wrong
            return None
        finally:
            trace.is_open = False
        if template is not None:
            self._keep(template)
            if self._chosen(self._dims.put(sizes, shapes)) is template:
                template.prepare()
        values: list[Operand | Tensor] = [*plan.inputs.values(), *plan.outputs.values()]
        for value in values:
            value.shape = TensorShape(map(plain, value.shape))
        return plan

    def _keep(self, template: Template) -> None:
        """Know another template; the one that was not used for longest may go."""
        self._uses += 1
        template.used = self._uses
        self._known = sorted([template, *self._known], key=lambda known: -known.used)
        for old in self._known[MAX_TEMPLATES:]:
            old.release()
        del self._known[MAX_TEMPLATES:]
        families: dict[tuple[int, ...], list[Template]] = {}
        for known in self._known:
            families.setdefault(known.ranks, []).append(known)
        self._families = {ranks: self._family(ranks, templates) for ranks, templates in families.items()}

    def _family(self, ranks: Sequence[int], templates: Sequence[Template]) -> _Family:
        assert isinstance(self._backend, Following)
        chooser = self._backend.chooser([template.program for template in templates], self._dims.places(ranks))
        return _Family(templates, chooser)

    def release(self) -> None:
        """Forget all templates."""
        for template in self._known:
            template.release()
        self._known.clear()
        self._families.clear()
