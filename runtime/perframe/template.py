"""Plans for new sizes without planning: what was computed for one set of input shapes serves all others that would be
planned alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from perframe.backends.base import Access, Backend, Following, Operand
from perframe.plan import Plan
from perframe.stretch import Stretch
from perframe.tensor import Storage, Tensor, TensorShape
from perframe.tracing import OpenDims, Shapes, Trace, plain

MAX_TEMPLATES = 8  # of one part
PATIENCE = 12  # after so many plans in a row that no template served, no more are made


class Template:
    """A plan whose numbers are formulas of the sizes with which its trace began."""

    def __init__(self, trace: Trace, plan: Plan, backend: Following) -> None:
        (stretch,) = plan.stretches
        assert isinstance(stretch, Stretch) and stretch.program is not None
        self._stretch, self._backend = stretch, stretch.backend
        self._results: list[int] = []
        self._inputs = [
            (name, self._note(value.shape), value.dtype, plan.bound.get(name)) for name, value in plan.inputs.items()
        ]
        self._outputs = [
            (name, self._note(tensor.shape), tensor.dtype, tensor.data_on_backend)
            for name, tensor in plan.outputs.items()
        ]
        lasting = [storage for *_, storage in (*self._inputs, *self._outputs)]
        plan.owned = [storage for storage in plan.owned if storage in lasting]  # the rest serves other plans too
        self._layers = [name for name, _ in plan.live()]
        self._program = backend.template(stretch.program, plan.workspaces[0], trace, self._results)

    def _note(self, numbers: Sequence[int]) -> slice:
        self._results += numbers
        return slice(len(self._results) - len(numbers), len(self._results))

    def plan(self, sizes: Sequence[int]) -> Plan | None:
        """The plan for these sizes; None where it would be another one."""
        sized = self._program.sized(sizes)
        if sized is None:
            return None
        backend, values, storages = self._backend, sized.results, dict[int, Storage]()
        inputs, outputs = {}, {}
        for name, where, dtype, planned in self._inputs:
            shape, storage = values[where], None
            if planned is not None:
                storage = storages[id(planned)] = backend.alloc(shape, dtype)
            inputs[name] = Operand(name, shape, dtype, None, partial(backend.alloc, shape, dtype), storage=storage)
        bound = list(storages.values())
        for name, where, dtype, planned in self._outputs:
            shape = values[where]
            storage = storages[id(planned)] = backend.alloc(shape, dtype)
            outputs[name] = Tensor.over(storage, shape, dtype, name)
        owned = list(storages.values())
        program, workspace = sized.program(storages)
        stretch = Stretch(
            backend, self._stretch.steps, self._stretch.layers, Access(bound, owned[len(bound) :]), program
        )

        def live() -> list[tuple[str, int]]:
            return list(zip(self._layers, sized.live(), strict=True))

        return Plan([stretch], inputs, dict.fromkeys(inputs, backend), outputs, owned, [workspace], live)


class Templates:
    """The templates of one part of a model."""

    def __init__(self, backend: Backend, dims: OpenDims) -> None:
        self._backend, self._dims, self._follows = backend, dims, isinstance(backend, Following)
        self._known: dict[tuple[int, ...], list[Template]] = {}  # by the inputs' ranks
        self._useless = self._missed = 0  # plans that no template served: in a row, and in all

    def plan(self, shapes: Shapes, make: Callable[[Shapes], Plan]) -> Plan:
        """The plan for these shapes: from a template, or made, which may leave a template behind."""
        sizes = self._dims.sizes(shapes) if self._follows else None
        if not sizes:
            return make(shapes)
        known = self._known.setdefault(tuple(map(len, shapes.values())), [])
        begun = bool(known)
        if not known:  # sizes of one and their like are planned as such: be ready for others
            other = self._follow([2 * size for size in sizes], shapes, make, known)
            if other is not None:
                other.release()
        for template in known:
            plan = template.plan(sizes)
            if plan is not None:
                self._useless = 0
                return plan
        self._useless += 1
        self._missed += begun
        # following costs some five plans: sizes like these must come again
        if self._useless > PATIENCE or (begun and self._missed % 2):
            return make(shapes)
        made = self._follow(sizes, shapes, make, known)
        if made is None:
            made = make(shapes)
            self._follows = False  # the shapes are right: a family cannot compute with followed sizes
        return made

    def _follow(
        self, sizes: Sequence[int], shapes: Shapes, make: Callable[[Shapes], Plan], known: list[Template]
    ) -> Plan | None:
        """A plan that leaves a template; None where following failed."""
        trace = Trace(sizes)
        try:
            plan = make(self._dims.followed(shapes, trace))
            template = self._template(trace, plan)
        except Exception:  # made again without a trace, it says what is wrong
            return None
        finally:
            trace.is_open = False
        if template is not None:
            known.insert(0, template)
            del known[MAX_TEMPLATES:]
        values: list[Operand | Tensor] = [*plan.inputs.values(), *plan.outputs.values()]
        for value in values:
            value.shape = TensorShape(map(plain, value.shape))
        return plan

    def _template(self, trace: Trace, plan: Plan) -> Template | None:
        """What makes the plan for other sizes, if it is one program."""
        stretch = plan.stretches[0] if len(plan.stretches) == 1 else None
        if not isinstance(stretch, Stretch) or not isinstance(self._backend, Following) or stretch.program is None:
            return None
        return Template(trace, plan, self._backend)
