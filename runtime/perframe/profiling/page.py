"""One self-contained page of HTML with the timeline of a profile and its tables. It loads nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perframe.files.html_page import filled, read
from perframe.files.writing import write
from perframe.profiling.table import Peaks, facts
from perframe.profiling.timeline import Track, tracks_of
from perframe.profiling.times import ProfiledTimes

_FOLDER = Path(__file__).parent / "page"
MOST_EVENTS = 200_000  # on the page, the last ones: a browser draws them without delay


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
