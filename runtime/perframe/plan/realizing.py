"""A plan that was made in another thread, without a context, becomes one that runs: it only needs storage."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from perframe.backends.operand import Operand
from perframe.backends.preloading import Preloading
from perframe.backends.protocol import Access
from perframe.plan.plan import Plan
from perframe.plan.segments import Segment
from perframe.tensor import Storage, Tensor


def realizable(plan: Plan, backend: Preloading) -> bool:
    """Whether all steps of a plan are those of one program, so that no value crosses to another backend."""
    only = plan.segments[0] if len(plan.segments) == 1 else None
    return isinstance(only, Segment) and only.backend is backend.apart()


def realized(plan: Plan, backend: Preloading, constants: Mapping[int, Storage]) -> Generator[None, None, Plan]:
    """Give a plan storage, a bit at each step, and return the plan that runs. `constants` holds storages by the ids of
    the arrays that lie there.
    """
    (segment,) = plan.segments
    assert isinstance(segment, Segment) and segment.program is not None
    *others, workspace = plan.workspaces
    for other in others:  # the host's, of which no step takes anything
        other.release()
    made = yield from backend.realize(segment.program, workspace, plan.owned, constants)
    inputs = []
    for given in plan.inputs:
        storage = made.place(given.storage) if given.has_storage else None
        inputs.append(Operand(given.name, given.shape, given.dtype, storage=storage, part=given.part))
    outputs = {
        name: Tensor.over(made.place(output.data_on_backend), output.shape, output.dtype, name)
        for name, output in plan.outputs.items()
    }
    bound = [operand.storage for operand in inputs if operand.has_storage]
    own = [operand.storage for operand in inputs if operand.has_storage and operand.part is None]
    written = [output.data_on_backend for output in outputs.values()]
    access = Access(bound, [storage for storage in written if storage not in own])
    real = Segment(backend, list(made.steps), segment.layers, access, made.program)
    live = list(zip([name for name, _ in plan.live()], made.live, strict=True))
    pairs = [(operand, backend) for operand in inputs]
    found = Plan([real], pairs, outputs, made.owned, [made.workspace], lambda: live)
    found.replaced = plan.replaced
    return found
