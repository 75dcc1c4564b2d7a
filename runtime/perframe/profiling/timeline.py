"""The timeline of a profile, for Perfetto and as one self-contained page of HTML with the profile's tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from perframe.files.html_page import filled, read
from perframe.files.writing import write
from perframe.profiling.recording import WorkerRecord
from perframe.profiling.table import Peaks, facts
from perframe.profiling.times import ProfiledTimes

_FOLDER = Path(__file__).parent / "page"
MOST_EVENTS = 200_000  # on the page, the last ones: a browser draws them without delay


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


def write_page(path: str | Path, profile: ProfiledTimes, peaks: Peaks | None = None, title: str = "") -> None:
    """Write the page. Raises ModelError if the file cannot be written; a file of that name is then unchanged."""
    write({Path(path): [page_text(profile, peaks, title).encode()]})


def page_text(profile: ProfiledTimes, peaks: Peaks | None = None, title: str = "") -> str:
    """The page as text."""
    tracks = tracks_of(profile)
    since = _begin_of_last(tracks)
    data = {"facts": facts(profile, peaks), "tracks": [_as_data(track, since) for track in tracks], "since": since}
    return filled(
        _FOLDER / "timeline.html",
        title or "a profile",
        data,
        STYLE=read(_FOLDER / "timeline.css"),
        SCRIPT=read(_FOLDER / "timeline.js"),
    )


def _begin_of_last(tracks: list[Track]) -> float:
    """The microsecond after which at most MOST_EVENTS events begin, or 0 if there are no more in all."""
    begins = sorted((event.begin for track in tracks for event in track.events), reverse=True)
    return begins[MOST_EVENTS] if len(begins) > MOST_EVENTS else 0.0


def _as_data(track: Track, since: float) -> dict[str, Any]:
    """A track with its names and kinds once each. An event is its begin, its length, and the numbers of both."""
    events = [event for event in track.events if event.begin >= since]
    labels = {label: number for number, label in enumerate(dict.fromkeys((e.name, e.kind) for e in events))}
    rows = [[round(e.begin, 2), round(e.length, 2), labels[e.name, e.kind]] for e in events]
    return {"name": track.name, "labels": list(labels), "events": rows}
