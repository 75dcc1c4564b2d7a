"""The timeline of a profile: what the host and each device did when; and Perfetto's format for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from perframe.files.writing import write
from perframe.profiling.recording import WorkerRecord
from perframe.profiling.times import ProfiledTimes


@dataclass(frozen=True)
class Event:
    """Something that began `begin` microseconds after the profile and took `length` microseconds. `kind` is a layer's
    operator, "frame", "schedule", or "transfer".
    """

    name: str
    kind: str
    begin: float
    length: float


@dataclass(frozen=True)
class Track:
    """The events of the host, or of one worker on one device, in the order of their begins."""

    name: str
    events: list[Event]


def tracks_of(profile: ProfiledTimes) -> list[Track]:
    """The frames, what the host did for each worker, and what each worker did on each device."""
    recorder = profile.recorder
    since = recorder.begun
    frames = [
        Event(f"frame {index}", "frame", (begin - since) / 1e3, (end - begin) / 1e3)
        for index, (begin, end) in enumerate(pairwise(recorder.frames))
    ]
    tracks = [Track("frames", frames)] if frames else []
    for record in recorder.records.values():
        spans = [
            Event("schedule", "schedule", (s.begin - since) / 1e3, (s.end - s.begin) / 1e3) for s in record.schedules
        ]
        tracks.append(Track(f"{record.name}: schedule", spans))
        for backend in dict.fromkeys(runs.backend for runs in record.segments.values()):
            events = sorted(_steps(record, backend, since), key=lambda event: event.begin)
            tracks.append(Track(f"{record.name}: {backend}", events))
    return tracks


def _steps(record: WorkerRecord, backend: str, since: int) -> Iterator[Event]:
    for runs in record.segments.values():
        if runs.backend != backend:
            continue
        steps = runs.steps
        for run in runs.runs:
            for index, (begin, end) in enumerate(pairwise(((run.stamps - since) / 1e3).tolist()), run.begin):
                if np.isfinite(end - begin):
                    yield Event(steps[index].layer, steps[index].operator or "transfer", begin, max(0.0, end - begin))


def perfetto(profile: ProfiledTimes) -> dict[str, Any]:
    """The timeline as Perfetto and Chrome read it (the Trace Event Format). Times are in microseconds."""
    events: list[dict[str, Any]] = []
    for number, track in enumerate(tracks_of(profile)):
        events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": number, "args": {"name": track.name}})
        events.append({"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": number, "args": {"sort_index": number}})
        for event in track.events:
            place = {"pid": 1, "tid": number, "ts": round(event.begin, 3), "dur": round(event.length, 3)}
            events.append({"ph": "X", "name": event.name, "cat": event.kind, **place})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def write_trace(path: str | Path, profile: ProfiledTimes) -> None:
    """Write the timeline for ui.perfetto.dev. Raises ModelError if the file cannot be written."""
    write({Path(path): [json.dumps(perfetto(profile), separators=(",", ":")).encode()]})
