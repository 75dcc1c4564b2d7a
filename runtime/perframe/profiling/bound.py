"""Tells what the frames of a profile spend most of their time on, and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perframe.profiling.recording import WorkerRecord
from perframe.profiling.times import LayerTimes, ProfiledTimes, layers_of
from perframe.tensor import BackendType

CPU, GPU, TRANSFERS, WAITING = "cpu", "gpu", "transfers", "waiting"
_READING = {"MatMul", "Gemm"}  # operators that may take longer to read their weights than to multiply
_TITLES = {CPU: "the CPU", GPU: "the GPU", TRANSFERS: "transfers", WAITING: "waiting"}
_EMULATED = "OpenGL is emulated on the CPU here, so use backend 'cpu' or 'auto'"


@dataclass(frozen=True)
class Shares:
    """Seconds of a frame, on average: the layers on each device, the host's own time in `schedule`, and transfers
    between the backends of a model.
    """

    frame: float
    layers_on_cpu: float
    scheduling: float
    layers_on_gpu: float
    transfers: float

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each kind. Waiting is the rest: for results, for the screen, or in the caller's own code."""
        cpu = self.layers_on_cpu + self.scheduling
        rest = self.frame - cpu - self.layers_on_gpu - self.transfers
        return {CPU: cpu, GPU: self.layers_on_gpu, TRANSFERS: self.transfers, WAITING: max(0.0, rest)}


@dataclass(frozen=True)
class FrameBound:
    """What bounds the frames: "cpu", "gpu", "transfers" or "waiting", with the seconds of each in a frame of `frame`
    seconds, and what to try.
    """

    by: str
    frame: float
    seconds: dict[str, float]
    advice: str

    def __str__(self) -> str:
        taken = f"{self.seconds[self.by] * 1e3:.3f} of {self.frame * 1e3:.3f} ms"
        return f"bound by {_TITLES[self.by]}, which takes {taken} of an average frame: {self.advice}".replace(
            "transfers, which takes", "transfers, which take"
        )


def bound_of(profile: ProfiledTimes) -> FrameBound | None:
    """What bounds the frames of a profile; None if it saw no whole frame, or no run."""
    frames = profile.frames
    records = [record for record in profile.recorder.records.values() if record.schedules]
    if frames is None or not records:
        return None
    seconds = (profile.recorder.frames[-1] - profile.recorder.frames[0]) / 1e9 / frames.count  # the mean, as all shares
    shares = [_shares(record, seconds, frames.count) for record in records]
    whole = Shares(
        seconds,
        sum(share.layers_on_cpu for share in shares),
        sum(share.scheduling for share in shares),
        sum(share.layers_on_gpu for share in shares),
        sum(share.transfers for share in shares),
    )
    fallbacks = [fallback for worker in profile.workers for fallback in worker.fallbacks]
    emulated = any(segment.is_emulated for record in records for segment in record.segments.values())
    return judged(whole, profile.layers, [f"{one.operator} {one.layer}" for one in fallbacks], emulated)


def judged(
    shares: Shares, layers: Sequence[LayerTimes], fallbacks: Sequence[str] = (), emulated: bool = False
) -> FrameBound:
    """The largest share, and what to try against it. `fallbacks` are layers that run on the CPU beside a GPU, which may
    be `emulated`.
    """
    seconds = shares.seconds
    by = max(seconds, key=seconds.__getitem__)
    advice = _EMULATED if by == GPU and emulated else _advice(by, shares, layers, fallbacks)
    return FrameBound(by, shares.frame, seconds, advice)


def _advice(by: str, shares: Shares, layers: Sequence[LayerTimes], fallbacks: Sequence[str]) -> str:
    if by == WAITING:
        return "poll readbacks and use them in a later frame, or look at vsync and your own code"
    if by == TRANSFERS:
        listed = f"{len(fallbacks)} layers run on the CPU, {fallbacks[0]} first; " if fallbacks else ""
        return f"{listed}cut the model there (outputs=[...] of pf.load), or run all of it on backend 'cpu'"
    if by == CPU and shares.scheduling > shares.layers_on_cpu:
        if all(layer.backend is BackendType.CPU for layer in layers):
            return "the calls around the layers cost most: the network is small; give a run several inputs as a batch"
        return "schedule() itself costs most: pass tensors of the worker's backend, and warm up each input shape"
    slowest = max(
        (layer for layer in layers if layer.operator and (layer.backend is BackendType.CPU) == (by == CPU)),
        key=lambda layer: (layer.seconds or 0.0) * layer.runs,
        default=None,
    )
    first = "" if slowest is None else f"the slowest layer is {slowest.layer}; "
    if by == CPU:  # weights of 8 bits are read faster, and convolutions read few
        smaller = "pf.quantize(model, 'int8'), " if slowest is not None and slowest.operator in _READING else ""
        return f"{first}try {smaller}smaller inputs, or a real GPU (backend 'auto')"
    return f"{first}try `perframe tune`, activations='float16', smaller inputs, or budget_ms over several frames"


def _shares(record: WorkerRecord, frame: float, frames: int) -> Shares:
    """The shares of one worker."""
    cpu = gpu = gpu_in_calls = transfers = 0.0
    for segment in record.segments.values():
        for layer in layers_of(record, segment):
            seconds = (layer.seconds or 0.0) * layer.runs / frames
            if not layer.operator:
                transfers += seconds
            elif layer.backend is BackendType.CPU:
                cpu += seconds
            else:
                gpu += seconds
                gpu_in_calls += seconds if segment.is_emulated else 0.0
    host = sum(span.end - span.begin for span in record.schedules) / 1e9 / frames
    if record.worker.backend_type is BackendType.CPU:
        inside = cpu if host >= cpu else 0.0  # a short run is computed in the call, and a long one in a job
    else:
        inside = cpu + transfers + gpu_in_calls
        transfers = max(0.0, transfers - (gpu - gpu_in_calls))  # a download waits for the layers before it
    return Shares(frame, cpu, max(0.0, host - inside), gpu, transfers)
