"""Plans for new sizes without planning: what was computed for one set of input shapes serves all others that would be
planned alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from perframe.backends.base import Access, Backend, Following, Operand, SizedProgram
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
_BITS = int.bit_length
PATIENCE = 12  # after so many plans in a row that no template served, no more are made


class Template:
    """A plan whose numbers are formulas of the sizes with which its trace began."""

    def __init__(self, trace: Trace, plan: Plan, backend: Following, sizes: Sequence[int]) -> None:
        (stretch,) = plan.stretches
        self._sizes, self.ranks = sizes, tuple(len(value.shape) for value in plan.inputs.values())
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
        self._program = backend.template(plan.program, plan.workspaces[0], trace, self._results, shapes)
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
        sized = self._program.blank(storages)
        return None if sized is None else FittedPlan(self, sized, storages)

    def prepare(self, sizes: Sequence[int]) -> None:
        """Have plans ready: to fit one takes a fraction of the time to make it, and less when that was done before."""
        for _ in range(self._most_idle):
            plan = self._blank()
            if plan is None:
                return
            if plan.fit(sizes, None):
                plan.release()

    def distance(self, sizes: Sequence[int]) -> int:
        """How far sizes are from those for which it was made: by how many bits."""
        return sum(abs(a.bit_length() - b.bit_length()) for a, b in zip(sizes, self._sizes, strict=True))

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether the plan for these sizes would be a like one."""
        return self._program.serves(sizes)

    def plan(self, sizes: Sequence[int], latest: Plan | None) -> FittedPlan | None:
        """The plan for these sizes; None where it would be another one. `latest` is the one that ran last."""
        plan = self._idle.pop() if self._idle else self._blank()
        if plan is None:
            return None
        try:
            fits = plan.fit(sizes, latest)
        except BaseException:  # no memory
            plan.release()
            raise
        if fits:
            return plan
        self._idle.append(plan)
        return None


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
        self._bound_first = dict(self.bound)

    def fit(self, sizes: Sequence[int], latest: Plan | None) -> bool:
        """Be the plan for these sizes; False where it would be another one. It may take as long as the latest one."""
        like, size = (None, 0) if latest is None else (latest.program, latest.workspaces[0].size)
        values = self._sized.fit(sizes, like, size)
        if values is None:
            return False
        for name, where, storage, dtype in self._of_outputs:
            self.outputs[name] = Tensor.over(storage, TensorShape.of_ints(values[where]), dtype, name)
        return True

    def release(self) -> None:
        """Give back what the runs used, and be ready for other sizes."""
        super().release()
        self._sized.release()
        for ring in self._rings.values():
            del ring[1:]
        self.outputs.clear()
        self.bound = dict(self._bound_first)
        self._access.reads, self._access.rebinds = list(self.bound.values()), []
        self._template.take_back(self)

    def _live(self) -> list[tuple[str, int]]:
        return list(zip(self._template.layers, self._sized.live(), strict=True))


class Templates:
    """The templates of one part of a model."""

    def __init__(self, backend: Backend, dims: OpenDims, make: Callable[[Shapes], Plan]) -> None:
        self._backend, self._dims, self._make, self._follows = backend, dims, make, isinstance(backend, Following)
        self._known: list[Template] = []  # the one that was used last first
        self._near: dict[tuple[int, ...], Template] = {}  # by ranks and sizes in bits, who served such sizes
        self._useless = self._missed = 0  # plans that no template served: in a row, and in all

    def plan(self, shapes: Shapes, latest: Plan | None = None) -> Plan:
        """The plan for these shapes: from a template, or made, which may leave a template behind. `latest` is the one
        that ran last.
        """
        ranks = tuple(map(len, shapes))
        sizes = self._dims.sizes(shapes, ranks) if self._follows else None
        if not sizes:
            return self._make(shapes)
        near = self._near.get((*ranks, *map(_BITS, sizes)))
        fitted = None if near is None else near.plan(sizes, latest)
        return fitted or self._plan(shapes, sizes, latest)

    def _plan(self, shapes: Shapes, sizes: Sequence[int], latest: Plan | None) -> Plan:
        """The same, where it is not known which template serves sizes like these."""
        known = self._alike(shapes)
        if not known:
            self._expect(sizes, shapes)
        for template in sorted(self._alike(shapes), key=lambda template: template.distance(sizes)):
            fitted = template.plan(sizes, latest)
            if fitted is not None:
                self._useless = 0
                self._keep(template, shapes, sizes)
                return fitted
        self._useless += 1
        self._missed += bool(known)
        # following costs some five plans: sizes like these must come again
        if self._useless > PATIENCE or (known and self._missed % 2):
            return self._make(shapes)
        made = self._follow(sizes, shapes)
        if made is None:
            made = self._make(shapes)
            self._follows = False  # the shapes are right: a family cannot compute with followed sizes
        return made

    def _alike(self, shapes: Shapes) -> list[Template]:
        """Those for inputs of such ranks."""
        ranks = tuple(map(len, shapes))
        return [template for template in self._known if template.ranks == ranks]

    def _expect(self, sizes: Sequence[int], shapes: Shapes) -> None:
        """Be ready for sizes that may come, as far as they are planned in different ways."""
        for change in CHANGES:
            others = [change(size) for size in sizes]
            if others == sizes:
                continue
            serving = next((template for template in self._alike(shapes) if template.serves(others)), None)
            if serving is not None:
                self._keep(serving, shapes, others)
                continue
            plan = self._follow(others, shapes)
            if plan is not None:
                plan.release()

    def _follow(self, sizes: Sequence[int], shapes: Shapes) -> Plan | None:
        """A plan that leaves a template; None where following failed."""
        trace, template = Trace(sizes), None
        try:
            plan = self._make(self._dims.followed(shapes, trace))
            if plan.program is not None and isinstance(self._backend, Following):
                template = Template(trace, plan, self._backend, sizes)
        except Exception:  # made again without a trace, it says what is wrong
            return None
        finally:
            trace.is_open = False
        if template is not None:
            self._keep(template, shapes, sizes)
            template.prepare(sizes)
        values: list[Operand | Tensor] = [*plan.inputs.values(), *plan.outputs.values()]
        for value in values:
            value.shape = TensorShape(map(plain, value.shape))
        return plan

    def _keep(self, template: Template, shapes: Shapes, sizes: Sequence[int]) -> None:
        """Know a template, and ask it first for sizes like these; the one that was not used for longest may go."""
        if template in self._known:
            self._known.remove(template)
        self._known.insert(0, template)
        for old in self._known[MAX_TEMPLATES:]:
            old.release()
            self._near.clear()
        del self._known[MAX_TEMPLATES:]
        self._near[*map(len, shapes), *map(_BITS, sizes)] = template

    def release(self) -> None:
        """Forget all templates."""
        for template in self._known:
            template.release()
        self._known.clear()
        self._near.clear()
