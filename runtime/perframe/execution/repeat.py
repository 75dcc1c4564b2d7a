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
from perframe.plan.plan import Plan


class Repeat:
    """Binds inputs to the plan of the last run, and submits it, if a run decides nothing else."""

    def __init__(self, part: PlannedPart, plan: Plan, inputs: Inputs, outputs: Outputs) -> None:
        """The plan has just run, and all outputs are its own."""
        self._part, self._plan, self._inputs, self._outputs = part, plan, inputs, outputs
        self._made = outputs.last

    def run(self, given: tuple[Any, ...]) -> bool:
        """Begin a run if it is like the last one. Otherwise return False, and change nothing."""
        plan, outputs = self._plan, self._outputs
        values = self._inputs.again(given)
        if values is None or self._part.settled_plan is not plan or outputs.targets:
            return False
        try:
            plan.bind(values)
        except MemoryLimitError:
            return False
        for segment in plan.segments:
            segment.run_whole()
        outputs.keep_again(self._made)
        return True


def repeat_of(part: PlannedPart, inputs: Inputs, outputs: Outputs) -> Repeat | None:
    """Return what begins runs like the last one; None if each run decides more than where its inputs lie."""
    plan = part.settled_plan
    if plan is None or outputs.targets or any(plan.outputs.get(name) is not x for name, x in outputs.last.items()):
        return None
    return Repeat(part, plan, inputs, outputs)
