"""Plans for new sizes without planning: what was computed for one set of input shapes serves all others that would be
planned alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from perframe.backends.base import Access, Backend, Following, Operand, ProgramTemplate
from perframe.plan import Plan
from perframe.stretch import Stretch
from perframe.tensor import DataType, Storage, Tensor, TensorShape
from perframe.tracing import OpenDims, Shapes, Trace, plain

MAX_TEMPLATES = 8  # of one part
PATIENCE = 12  # after so many plans in a row that no template served, no more are made


class Template:
    """A plan whose numbers are formulas of the sizes with which its trace began."""

    def __init__(self, trace: Trace, plan: Plan, program: ProgramTemplate, backend: Backend) -> None:
        (stretch,) = plan.stretches
        assert isinstance(stretch, Stretch) and stretch.program is not None
        self._stretch, self._backend = stretch, backend
        self._numbers: list[int] = []
        self._inputs = [
            (name, self._note(value.shape), value.dtype, plan.bound.get(name)) for name, value in plan.inputs.items()
        ]
        self._outputs = [
            (name, self._note(tensor.shape), tensor.dtype, tensor.data_on_backend)
            for name, tensor in plan.outputs.items()
        ]
        lasting = [storage for *_, storage in (*self._inputs, *self._outputs)]
        plan.owned = [storage for storage in plan.owned if storage in lasting]  # the rest serves other plans too
        self._program, self._layers = program, [name for name, _ in plan.live()]
        self._of_program = self._note(self._program.numbers)
        self._evaluate = trace.function(self._numbers)

    def _note(self, numbers: Sequence[int]) -> slice:
        self._numbers += numbers
        return slice(len(self._numbers) - len(numbers), len(self._numbers))

    def plan(self, sizes: Sequence[int]) -> Plan | None:
        """The plan for these sizes; None where it would be another one."""
        values = self._evaluate(*sizes) if self._program.ready else None
        if values is None:
            return None
        backend, storages = self._backend, dict[int, Storage]()

        def lasting(planned: Storage, shape: Sequence[int], dtype: DataType) -> Storage:
            made = storages[id(planned)] = backend.alloc(shape, dtype)
            return made

        inputs = {}
        for name, where, dtype, planned in self._inputs:
            shape = values[where]
            storage = None if planned is None else lasting(planned, shape, dtype)
            inputs[name] = Operand(name, shape, dtype, None, partial(backend.alloc, shape, dtype), storage=storage)
        bound = list(storages.values())
        outputs = {}
        for name, where, dtype, planned in self._outputs:
            outputs[name] = Tensor.over(lasting(planned, values[where], dtype), values[where], dtype, name)
        owned = list(storages.values())
        program, workspace = self._program.program(values[self._of_program], storages)
        access = Access(bound, owned[len(bound) :])
        stretch = Stretch(backend, self._stretch.steps, self._stretch.layers, access, program)

        def live() -> list[tuple[str, int]]:
            return list(zip(self._layers, self._program.live(values[self._of_program]), strict=True))

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
            program = self._program(plan)
            template = None if program is None else Template(trace, plan, program, self._backend)
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

    def _program(self, plan: Plan) -> ProgramTemplate | None:
        """What makes the plan's program for other sizes, if it is one program."""
        stretch = plan.stretches[0] if len(plan.stretches) == 1 else None
        if not isinstance(stretch, Stretch) or not isinstance(self._backend, Following) or stretch.program is None:
            return None
        return self._backend.template(stretch.program, plan.workspaces[0])
