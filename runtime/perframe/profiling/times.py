"""The times of a profile: of frames, of workers, and of each layer with its bytes and operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InputError
from perframe.execution.report import StepReport
from perframe.plan.plan import Fallback
from perframe.profiling.recording import Recorder, SegmentRuns, WorkerRecord
from perframe.tensor import BackendType

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Quantiles:
    """The median, the 95th and the 99th percentile of some times, in seconds, and their number."""

    count: int
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Quantiles | None:
        """The quantiles of some times, or None without any."""
        if not len(seconds):
            return None
        return cls(len(seconds), *map(float, np.percentile(seconds, PERCENTILES)))


@dataclass(frozen=True)
class LayerTimes:
    """One layer of one worker for one set of input shapes.

    `operator` is "" for a transfer between backends. `runs` is how often it was timed, and `seconds` the median time of
    its steps together, or None if none was timed. `bytes` are those of its inputs and outputs; `operations` the
    multiplications and additions of a product or a convolution, else None.
    """

    model: str
    layer: str
    operator: str
    backend: BackendType
    runs: int
    seconds: float | None
    bytes: int
    operations: int | None

    @property
    def operations_a_second(self) -> float | None:
        """Operations a second."""
        return self.operations / self.seconds if self.operations and self.seconds else None

    @property
    def bytes_a_second(self) -> float | None:
        """Bytes of inputs and outputs moved a second."""
        return self.bytes / self.seconds if self.bytes and self.seconds else None


@dataclass(frozen=True)
class WorkerTimes:
    """One worker: what its schedules took in the caller's thread, and the sum of its layers' times on their devices."""

    model: str
    backend: BackendType
    schedules: Quantiles | None
    seconds: float
    fallbacks: Sequence[Fallback]


class ProfiledTimes:
    """The times that a profile has recorded."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None

    @property
    def recorder(self) -> Recorder:
        """The times as they were recorded. Raises InputError before the block."""
        if self._recorder is None:
            raise InputError("the profile has watched nothing: use it in a `with` block")
        return self._recorder

    @property
    def frames(self) -> Quantiles | None:
        """The times from each frame's begin to that of the next."""
        return Quantiles.of([(end - begin) / 1e9 for begin, end in pairwise(self.recorder.frames)])

    @property
    def layers(self) -> list[LayerTimes]:
        """The layers of all workers in the order in which they run."""
        return list(chain.from_iterable(map(_all_layers, self.recorder.records.values())))

    @property
    def workers(self) -> list[WorkerTimes]:
        """The workers in the order of their first runs."""
        return [_times_of(record) for record in self.recorder.records.values()]


def _all_layers(record: WorkerRecord) -> Iterator[LayerTimes]:
    for runs in record.segments.values():
        yield from layers_of(record, runs)


def layers_of(record: WorkerRecord, runs: SegmentRuns) -> Iterator[LayerTimes]:
    """The layers of one segment of a worker."""
    steps, (counts, seconds) = runs.steps, runs.step_times()
    begin = 0
    for end in range(1, len(steps) + 1):
        if end < len(steps) and steps[end].layer == steps[begin].layer:
            continue
        yield _layer(record.name, steps[begin], counts[begin:end], seconds[begin:end])
        begin = end


def _layer(model: str, step: StepReport, counts: NDArray[np.int64], times: NDArray[np.float64]) -> LayerTimes:
    """One layer, from how often each of its steps was timed, and their seconds."""
    runs = int(counts.min())
    seconds = float(times.sum()) if runs else None
    return LayerTimes(model, step.layer, step.operator, step.backend, runs, seconds, step.bytes, step.operations)


def _times_of(record: WorkerRecord) -> WorkerTimes:
    schedules = Quantiles.of([(span.end - span.begin) / 1e9 for span in record.schedules])
    seconds = sum(layer.seconds or 0 for layer in _all_layers(record))
    fallbacks = list(dict.fromkeys(chain.from_iterable(runs.fallbacks for runs in record.segments.values())))
    return WorkerTimes(record.name, record.worker.backend_type, schedules, seconds, fallbacks)
