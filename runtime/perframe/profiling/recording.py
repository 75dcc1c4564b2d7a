"""Records runs while they happen: the host's time in each schedule, and the time of each step on its device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from threading import get_ident
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perframe.backends.protocol import KEPT, TimedRun
from perframe.errors import ClosedError
from perframe.execution.planned_part import PlannedPart
from perframe.execution.report import StepReport, reporter
from perframe.execution.worker import Worker
from perframe.ir import Subgraph
from perframe.plan.plan import Fallback, Plan
from perframe.plan.segments import Segment, Transfer
from perframe.tensor import BackendType, TensorShape

EVERY = KEPT // 4  # runs of a worker: a program keeps the times of more
MOST_RUNS = 20_000  # of one segment, and frames: later ones are counted in no figure, so that memory stays bounded


class Span(NamedTuple):
    """One activity of the host between two moments, in nanoseconds of `perf_counter_ns`."""

    begin: int
    end: int
    frame: int


@dataclass
class SegmentRuns:
    """The runs of consecutive steps on one backend, for one set of input shapes of a part of a model.

    `segment` lives on until the profile is gone, even if its plan is released, and `layers` are its steps' layers.
    """

    part: Subgraph
    input_shapes: Sequence[TensorShape]
    segment: Segment | Transfer
    layers: Sequence[str]
    fallbacks: Sequence[Fallback]
    runs: list[TimedRun] = field(default_factory=list)

    @property
    def backend(self) -> BackendType:
        """Where the steps run."""
        return self.segment.backend_type

    @property
    def is_emulated(self) -> bool:
        """Whether a GPU's steps are done on the CPU, within the calls that submit them."""
        return isinstance(self.segment, Segment) and self.segment.backend.is_emulated

    @cached_property
    def steps(self) -> list[StepReport]:
        """The facts of the steps."""
        report = reporter(self.part, self.input_shapes)
        return [report(layer, self.backend, None) for layer in self.layers]

    def step_times(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The number of times of each step and the median of its seconds, NaN without any. The time of a step that
        ran in several shares is the sum of them.
        """
        found = np.full((len(self.runs), len(self.layers)), np.nan)
        sums: dict[int, tuple[int, float]] = {}  # by step: the rows that have run, and what they took
        for row, (begin, stamps, rows) in enumerate(self.runs):
            if rows is None:
                found[row, begin : begin + len(stamps) - 1] = stamps[1:] - stamps[:-1]
                continue
            first, count, most = rows
            done, taken = sums.pop(begin, (0, 0.0)) if first else (0, 0.0)
            if done != first:  # an earlier share is not known
                continue
            done, taken = done + count, taken + float(stamps[1] - stamps[0])
            if done < most:
                sums[begin] = done, taken
            else:
                found[row, begin] = taken
        return _medians(found / 1e9)


def _medians(times: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The count and the median of the numbers in each column. np.nanmedian gives the same, fifty times slower."""
    counts = np.isfinite(times).sum(axis=0)
    if not len(times):
        return counts, np.full(len(counts), np.nan)
    ordered = np.sort(times, axis=0)  # NaN is last
    middle = np.maximum(np.stack([counts - 1, counts]) // 2, 0)
    return counts, np.take_along_axis(ordered, middle, axis=0).mean(axis=0)


@dataclass
class WorkerRecord:
    """The runs of one worker. `schedules` are the host's spans from the begin of a run to its submission."""

    worker: Worker
    timed_before: bool
    schedules: list[Span] = field(default_factory=list)
    segments: dict[int, SegmentRuns] = field(default_factory=dict)  # by the segment's id: the record keeps it alive
    plans: dict[PlannedPart, Plan] = field(default_factory=dict)  # that ran last, and whose segments are noted
    begun: int = 0
    thread: int = field(default_factory=get_ident)

    @property
    def is_here(self) -> bool:
        """Whether this thread may ask the worker for times: one on a GPU belongs to its own thread."""
        return self.worker.backend_type is BackendType.CPU or self.thread == get_ident()

    @property
    def name(self) -> str:
        """The model's name, or how the worker calls itself."""
        return self.worker.model.name or f"a model of {len(self.worker.model.layers)} layers"

    def note_segments(self) -> None:
        """Note the segments of the plans that ran last."""
        for part in self.worker.parts.planned_parts():
            plan = part.latest_plan
            if plan is None or plan is self.plans.get(part):
                continue
            self.plans[part] = plan
            for segment in plan.segments:
                if id(segment) not in self.segments:
                    runs = SegmentRuns(part.model, plan.input_shapes, segment, tuple(segment.layers), plan.fallbacks)
                    self.segments[id(segment)] = runs


class Recorder:
    """Watches the workers of the process. `frames` are the nanoseconds at which frames began, of the app that began one
    first: others may run in other threads.
    """

    def __init__(self) -> None:
        self.records: dict[int, WorkerRecord] = {}  # by the worker's id: the record keeps it alive
        self.frames: list[int] = []
        self.frame = 0
        self._thread_of_frames: int | None = None
        self.begun = perf_counter_ns()
        for record in [record for other in active for record in other.records.values()]:
            if record.is_here:
                _collect(record.worker)  # what ran before is not ours
        active.append(self)

    def frame_begins(self, index: int) -> None:
        """Note that a frame begins."""
        if self._thread_of_frames is None:
            self._thread_of_frames = get_ident()
        if self._thread_of_frames != get_ident():
            return
        self.frame = index
        if len(self.frames) < MOST_RUNS:
            self.frames.append(perf_counter_ns())

    def run_begins(self, worker: Worker) -> None:
        """Note that a run begins. The first of a worker lets its backend time the steps."""
        record = self.records.get(id(worker))
        if record is None:
            record = self.records[id(worker)] = WorkerRecord(worker, worker.time_steps())
        record.begun = perf_counter_ns()

    def run_submitted(self, worker: Worker) -> None:
        """Note that a run is submitted, and take the times that are there."""
        record = self.records.get(id(worker))
        if record is None or not record.begun:  # it began before the recording
            return
        if len(record.schedules) < MOST_RUNS:
            record.schedules.append(Span(record.begun, perf_counter_ns(), self.frame))
        record.begun = 0
        record.note_segments()
        count = len(record.schedules)
        is_power_of_two = count & (count - 1) == 0  # the first runs count soon: another thread may end the recording
        if count % EVERY == 0 or is_power_of_two:
            _collect(worker)

    def worker_ends(self, worker: Worker) -> None:
        """Take the last times of a worker that is being released."""
        if id(worker) in self.records:
            _collect(worker, wait=True)

    def keep_last(self, count: int) -> None:
        """Forget all but the last frames, and all but as many schedules and runs of each worker."""
        del self.frames[:-count]
        for record in self.records.values():
            if record.is_here:
                _collect(record.worker)
            del record.schedules[:-count]
            for runs in record.segments.values():
                del runs.runs[:-count]

    def finish(self) -> None:
        """Take the last times, waiting for them, and let the workers do as before."""
        for record in filter(lambda record: record.is_here, self.records.values()):
            with suppress(ClosedError):  # it was released in between
                record.worker.report()  # it waits for jobs
                _collect(record.worker, wait=True)
        active.remove(self)
        for key, record in self.records.items():
            others = [other.records[key] for other in active if key in other.records]
            for other in others:
                other.timed_before &= record.timed_before
            if not others:
                with suppress(ClosedError):
                    record.worker.time_steps(record.timed_before)


active: list[Recorder] = []  # several may record at once


def _collect(worker: Worker, wait: bool = False) -> None:
    """Give the times that have arrived to all that record. With `wait`, block for those of all runs."""
    records = [recorder.records[id(worker)] for recorder in active if id(worker) in recorder.records]
    for record in records:  # the recorder that asks may be the first to see a plan
        record.note_segments()
    segments = {key: runs.segment for record in records for key, runs in record.segments.items()}
    for key, segment in segments.items():
        taken = segment.take_runs(wait)
        for record in records:
            known = record.segments.get(key)
            if known is not None:
                known.runs += taken[: MOST_RUNS - len(known.runs)]
