"""A run like the one before: the same plan, for inputs of the same types, dtypes and shapes.

Between two frames other code fills the processor's caches, and then each function that a run calls takes several times
what it takes in a loop. So such a run skips what the run before it has decided.
"""

from __future__ import annotations

from typing import Any

from perframe.errors import MemoryLimitError
from perframe.execution.inputs import Inputs
from perframe.execution.outputs import Outputs
from perframe.execution.planned_part import PlannedPart
from perframe.execution.states import States
from perframe.plan.plan import Plan


class Repeat:
    """Binds inputs and states to the plan of the last run, and submits it, if a run decides nothing else."""

    def __init__(self, part: PlannedPart, plan: Plan, inputs: Inputs, states: States, outputs: Outputs) -> None:
        """The plan has just run with the latest inputs, and all outputs are its own."""
        self._part, self._plan, self._inputs, self._states, self._outputs = part, plan, inputs, states, outputs
        self._shapes, self._all_shapes = inputs.latest, plan.input_shapes

    def run(self, given: tuple[Any, ...]) -> bool:
        """Begin a run if it is like the last one. Otherwise return False, and change nothing."""
        plan, outputs = self._plan, self._outputs
        checked = self._inputs.again(given, self._shapes)
        if checked is None or self._part.settled_plan is not plan:
            return False
        values, targets = dict(checked), outputs.targets
        if targets:
            self._states.add(values)
            if [values[operand.name].shape for operand in plan.inputs] != self._all_shapes:
                return False  # a state has begun again in another shape
            outputs.check_inputs(values)
        try:
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


def repeat_of(part: PlannedPart, inputs: Inputs, states: States, outputs: Outputs) -> Repeat | None:
    """Return what begins runs like the last one; None if each run decides more than where its values lie."""
    plan = part.settled_plan
    if plan is None or not plan.outputs.keys() >= outputs.last.keys():
        return None
    return Repeat(part, plan, inputs, states, outputs)
