"""The plans inside a worker, for tests that ask how its layers are planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perframe.backends import settle_kernels
from perframe.execution.control_flow import ControlPart
from perframe.execution.parts import Parts, PlannedPart
from perframe.execution.worker import Worker


def planned_parts(worker: Worker) -> list[PlannedPart]:
    """Return the parts of a worker that have plans, those in bodies and decided branches too."""
    return list(_planned(worker._parts))


def _planned(parts: Parts) -> Iterator[PlannedPart]:
    for part in parts._parts:
        if isinstance(part, PlannedPart):
            yield part
        elif isinstance(part, ControlPart):
            for body in part._bodies.values():
                yield from _planned(body)
    for decided in parts._decided.values():
        yield from _planned(decided)


def trace(worker: Worker) -> list[PlannedPart]:
    """Make templates of what the worker planned, and all kernels, now. Raises if a layer cannot be followed."""
    parts = planned_parts(worker)
    for part in parts:
        if part._to_trace is not None:
            part.trace(part._to_trace)
            part._to_trace = None
    settle_kernels()
    return parts


def latest_plan(part: PlannedPart) -> Any:
    """Return the plan that ran last."""
    return next(reversed(part._plans.values()))
