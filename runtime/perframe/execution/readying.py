"""Another model made ready for a worker: what is slow happens in a thread, and the rest in slices between frames."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from perframe.backends import kernel_progress, settle_kernels
from perframe.backends.preloading import Parcel, Preloading
from perframe.backends.protocol import Program
from perframe.errors import InputError
from perframe.execution.instance import Instance
from perframe.execution.machine import Machine, Values
from perframe.execution.planned_part import PlannedPart
from perframe.ir import Model, Value
from perframe.plan.budget import Budget
from perframe.plan.constants import ConstantPool, MissingConstant
from perframe.plan.plan import Plan
from perframe.plan.planner import Planner
from perframe.plan.realizing import realizable, realized
from perframe.plan.segments import Segment
from perframe.safety.collection import uncollected
from perframe.safety.records import dataclass
from perframe.tensor import DataType, Storage
from perframe.tensor.background import TURN, Work, take_turns

log = logging.getLogger("perframe")
T = TypeVar("T")
Waiting = Generator[bool, None, T]  # yields True where nothing can be done before the next slice
Beside = Callable[[str, Callable[[Work], T]], Waiting[T]]  # runs a function in a thread

_POLL_SECONDS = 0.01
END = object()


def frozen(model: Model) -> Model:
    """Return a model with read-only constants: the model itself, or a copy."""
    if not any(array.flags.writeable for array in model.constants.values()):
        return model
    made = model.copy(with_bodies=True)
    for value in made.constant_values:
        if value.constant is not None and value.constant.flags.writeable:
            take_turns()
            value.constant = value.constant.copy()
            value.constant.flags.writeable = False
    return made


def check_inputs(old: Instance, new: Model) -> None:
    """Raise InputError unless the inputs that the callers of a worker give fit another model too."""
    states = old.settings.carry.values()
    before, after = old.inputs.declared, [value for value in new.inputs if value.name not in states]
    fits = [value.name for value in before] == [value.name for value in after]
    if not fits or not all(map(_may_take, before, after)):
        raise InputError(
            f"worker.swap: {new.name} has the inputs {_listed(after)}, and {old.model.name}, whose place it takes, has "
            f"{_listed(before)}: names, order, dtypes and known dims must be equal; make another Worker instead"
        )


def _may_take(old: Value, new: Value) -> bool:
    if (old.dtype, old.kind, old.element_kind) != (new.dtype, new.kind, new.element_kind):
        return False
    if old.shape is None or new.shape is None:
        return True
    pairs = zip(old.shape, new.shape, strict=False)
    same = all(one == other or not isinstance(one, int) or not isinstance(other, int) for one, other in pairs)
    return same and len(old.shape) == len(new.shape)


def _listed(values: list[Value]) -> str:
    return ", ".join(map(str, values)) or "none"


def trial_values(old: Instance, new: Instance, given: Mapping[str, Any] | None) -> Values | None:
    """Return inputs for a first run, whose values do not matter: `given` ones, or zeros in the shapes of the last run
    of the old model. None if these are not known. Raises InputError for given inputs that do not fit.
    """
    if given is not None:
        values = new.inputs.gather((given,), {})
    else:
        shapes = old.inputs.latest or [value.shape for value in new.inputs.declared]
        values = {}
        for value, shape in zip(new.inputs.declared, shapes, strict=True):
            if value.kind != "tensor" or shape is None or not all(isinstance(dim, int) for dim in shape):
                return None
            filling = "" if value.dtype is DataType.STRING else 0
            values[value.name] = np.full(tuple(shape), filling, value.dtype.numpy)
        known = {name: array for part in old.parts.planned_parts() for name, array in part.decisive.items()}
        first = next(new.parts.planned_parts(), None)
        for name in first.decisive if first is not None else ():
            if name in values and known.get(name) is None:
                return None
            values[name] = known[name]
    try:
        new.states.add(values)
    except InputError:  # a state has dims that no input gives
        return None
    return values


@dataclass
class _Ahead:
    """What a thread has prepared for the plan of the first part."""

    part: PlannedPart
    values: Values
    planner: Planner | None  # makes the plan, if `plan` is not one that only needs storage
    plan: Plan | None
    parcels: list[tuple[MissingConstant, Parcel]]
    programs: list[Program]

    def free(self, work: Work) -> None:
        """Free the arrays one by one: a frame would wait for all at once."""
        arrays: list[Any] = [missing.array for missing, _ in self.parcels]
        arrays += [parcel for _, parcel in self.parcels]
        self.planner = self.plan = None
        self.programs.clear()
        self.parcels.clear()
        while arrays:
            arrays.pop()
            work.give_way()


@uncollected()
def _ahead(new: Instance, values: Values) -> _Ahead | None:
    """Infer shapes, derive constants and name the programs of the first part; in a thread."""
    part, given = new.parts.first(values)
    if part is None:
        return None
    made = _Ahead(part, given, None, None, [], [])
    if isinstance(new.backend, Preloading):
        pool = ConstantPool(part.model.constants, small=0)
        try:
            plan = part.planner(given, new.backend.apart(), pool).plan()
            made.parcels = pool.parcels(new.backend)
            part.constants.share(pool)
        except Exception as error:  # such as a layer from outside that needs the context: the real plan says more
            log.info("%s: the frames derive its constants: %s: %s", new.model.name, type(error).__name__, error)
        else:
            found = [one for one in plan.segments if isinstance(one, Segment) and one.backend is not new.host]
            made.programs = [one.program for one in found if one.program is not None]
            if realizable(plan, new.backend):
                made.plan = plan
        finally:
            pool.release()
    if made.plan is None:
        made.planner = part.planner(given)
    return made


def ready(new: Instance, values: Values, beside: Beside[Any], note: Callable[[str, float], None]) -> Waiting[None]:
    """Make the first run with inputs of these shapes as fast as later ones."""
    if not isinstance(new.backend, Preloading):
        yield from beside("plans and runs it once", lambda work: _run_beside(new, values, work))
        return
    backend = new.backend
    ahead = yield from beside("derives constants", lambda work: _ahead(new, values))
    is_new = True
    if ahead is not None:
        is_new = yield from _made(ahead, backend, note)
        yield from beside("frees copies", ahead.free)
    if is_new or ahead is None or new.parts.only_part is None:
        note("runs it once", 0)
        for _ in _trial(new, values):
            yield False
    note("records the run", 0)
    for plan in new.plans():
        for segment in plan.segments:
            if isinstance(segment, Segment) and segment.backend is backend and segment.program is not None:
                for _ in backend.record(segment.program):
                    yield False


def _made(ahead: _Ahead, backend: Preloading, note: Callable[[str, float], None]) -> Waiting[bool]:
    """Upload constants, link programs, and make the plan. Returns whether a program is new."""
    constants = dict[int, Storage]()
    for at, (missing, parcel) in enumerate(ahead.parcels):
        note("uploads constants", at / len(ahead.parcels))
        if not hasattr(parcel, "storage"):  # constants of one kind share a parcel
            for _ in parcel.upload():
                yield False
        constants[id(missing.array)] = ahead.part.adopt(missing, parcel.storage)
    linked = list[bool]()
    for program in ahead.programs:
        note("links programs", 0)
        linked.append((yield from backend.link(program)))
    for at, _ in enumerate(_planned(ahead, backend, constants)):
        note("plans", min(1, at / max(1, 2 * len(ahead.part.model.layers))))
        yield False
    return any(linked) or not linked


def _planned(ahead: _Ahead, backend: Preloading, constants: Mapping[int, Storage]) -> Iterator[None]:
    """Make the plan of the first part, a bit at each step."""
    if ahead.plan is not None:
        plan = yield from realized(ahead.plan, backend, constants)
        ahead.part.keep(plan, ahead.values)
    elif ahead.planner is not None:
        for _ in ahead.part.make(ahead.planner, ahead.values):
            yield


def _trial(new: Instance, values: Values) -> Iterator[None]:
    """Run once, layer by layer, or a small part of each step where the model is one part."""
    first, given = new.parts.first(values)
    steps: Iterator[Any] = first.touch(given) if first and new.parts.only_part else new.parts.advance(dict(values))
    step: Any = None
    while step is not END:
        with new.entered():
            step = next(steps, END)
        new.backend.flush()
        yield


def _run_beside(new: Instance, values: Values, work: Work) -> None:
    """Plan, wait for kernels, and run once, in a thread that takes turns with the frames."""
    part, given = new.parts.first(values)
    if part is not None:
        began = time.thread_time_ns()
        planner = part.planner(given)
        for at, _ in enumerate(part.make(planner, given)):
            work.report("plans", min(1, at / max(1, 2 * len(part.model.layers))))
        planner.made.nanoseconds = time.thread_time_ns() - began
    for _ in range(2):
        while kernel_progress() < 1:
            work.report("compiles kernels", kernel_progress())
            time.sleep(_POLL_SECONDS)
        settle_kernels()
        work.report("runs it once", 0)
        budget = Budget(TURN)
        for _ in new.parts.spend(dict(values), budget):
            budget.refill()
            take_turns()
        if kernel_progress() == 1:
            break


def machine_for(old: Instance) -> Machine:
    """Open a machine like that of an instance, in the thread of its context."""
    made = old.settings.machine()
    if isinstance(made.backend, Preloading):
        made.backend.apart()
    return made
