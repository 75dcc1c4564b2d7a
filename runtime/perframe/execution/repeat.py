"""A run like the one before: the same part, for inputs of the same types and dtypes. For the same shapes its plan is
the same, too. A state that grows changes shapes, and the plan takes them; other new shapes get a template's plan.

Between two frames other code fills the processor's caches, and then each function that a run calls takes several times
what it takes in a loop. So such a run skips what the run before it has decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.errors import MemoryLimitError
from perframe.execution.inputs import Inputs
from perframe.execution.machine import Values
from perframe.execution.outputs import Outputs
from perframe.execution.parts import Parts
from perframe.execution.planned_part import PlannedPart
from perframe.execution.states import States
from perframe.execution.static_branches import Numbers
from perframe.plan.plan import Plan
from perframe.tensor import TensorShape


class Repeats:
    """Binds inputs and states to the plan of the last run, and submits it, if a run decides nothing else."""

    def __init__(self, parts: Parts, inputs: Inputs, states: States, outputs: Outputs) -> None:
        self._parts, self._inputs, self._states, self._outputs = parts, inputs, states, outputs
        self._plan: Plan | None = None  # of the last run
        self._part: PlannedPart | None = None  # which has the plan; None if the next run decides all again
        self._shapes: Sequence[Any] = ()  # of the last run's inputs
        self._all_shapes: Sequence[TensorShape] = ()  # those of states among them
        self._numbers: Numbers = ()  # by which branches were decided

    @property
    def may_run(self) -> bool:
        """Whether the next run may be like the last one."""
        return self._part is not None

    def run(self, given: tuple[Any, ...]) -> bool:
        """Begin a run if it is like the last one. Otherwise return False, and change nothing."""
        part, plan, outputs = self._part, self._plan, self._outputs
        if part is None or plan is None:
            return False
        checked = self._inputs.again(given, self._shapes)
        if checked is None or part.settled_plan is not plan:
            return False
        values, targets, latest = dict(checked), outputs.targets, self._inputs.latest
        if self._numbers and self._parts.numbers(values) != self._numbers:
            return False
        if targets:
            self._states.add(values)
            outputs.check_inputs(values)
        try:
            if part.grows:
                if plan.wrote(checked.values()) or not part.refit(plan, values):
                    return False
            elif latest is not self._shapes:
                if not self._parts.still_chooses(part, values) or (plan := part.ready_plan(values)) is None:
                    return False
                self._plan, self._all_shapes = plan, plan.input_shapes if targets else ()
            elif targets and [values[operand.name].shape for operand in plan.inputs] != self._all_shapes:
                return False  # a state has begun again in another shape
            self._shapes = latest
            plan.bind(values, None, targets)
        except MemoryLimitError:
            return False
        for segment in plan.segments:
            segment.run_whole()
        values.update(plan.outputs)
        if targets:
            self._states.end(values)
        outputs.keep(values)
        return True

    def note(self, values: Values) -> None:
        """Note a run that has ended, with its inputs and outputs. The next one may repeat it if the one before had the
        same plan, which decides all of it, or if its plan takes the sizes of states that grow.
        """
        part = self._parts.ran
        plan = None if part is None else part.settled_plan
        grows = part is not None and part.grows and part is self._parts.only_part
        same = plan is not None and (plan is self._plan or grows) and plan.outputs.keys() >= self._outputs.last.keys()
        self._plan, self._part = plan, part if same else None
        if same and plan is not None:
            self._shapes, self._all_shapes = self._inputs.latest, plan.input_shapes
            self._numbers = self._parts.numbers(values)

    def forget(self) -> None:
        """Let the next run decide all again."""
        self._plan = self._part = None
