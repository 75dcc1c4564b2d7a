"""Helpers of tests: skip without a requirement, trace a worker's plans, find its parts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

import perframe as pf
from perframe.backends.cpu.compile import jit
from perframe.execution.control_flow import ControlPart
from perframe.execution.parts import Parts, PlannedPart


def unavailable(reason: str) -> NoReturn:
    """Skips the test, with the reason; fails it in CI, where everything must run."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def planned_parts(worker: pf.Worker) -> list[PlannedPart]:
    """The parts of a worker that have plans, those in bodies and decided branches too."""
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


def trace(worker: pf.Worker) -> list[PlannedPart]:
    """Trace the plans of a worker now, and compile all kernels. Raises the error of a layer that cannot be followed."""
    parts = planned_parts(worker)
    for part in parts:
        if part._to_trace is not None:
            part.trace(part._to_trace)
            part._to_trace = None
    jit.settle()
    return parts


def latest_plan(part: PlannedPart) -> Any:
    """The plan that ran last."""
    return next(reversed(part._plans.values()))
