"""Profiles: what workers did in some frames, and what it took."""

from __future__ import annotations

from pathlib import Path

from perframe.errors import InputError
from perframe.execution.worker import watchers
from perframe.profiling.bound import FrameBound, bound_of
from perframe.profiling.recording import Recorder
from perframe.profiling.table import as_text
from perframe.profiling.timeline import write_page, write_trace
from perframe.profiling.times import ProfiledTimes
from perframe.safety.notebooks import preformatted
from perframe.tensor.frames import frame_watchers


class Profile(ProfiledTimes):
    """Watches all workers and frames of the process in a `with` block. Afterwards it has their times.

    The App's frames are known; in your own loop, call `frame()` where a frame begins. Memory stays bounded: each list
    of times ends after 20,000 entries.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_open = False

    def __enter__(self) -> Profile:
        if self._recorder is not None:
            raise InputError("a profile watches one block: make another with pf.profile()")
        self._recorder, self._is_open = Recorder(), True
        watchers.append(self._recorder)
        frame_watchers.append(self._recorder.frame_begins)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_open:
            return
        recorder, self._is_open = self.recorder, False
        watchers.remove(recorder)
        frame_watchers.remove(recorder.frame_begins)
        recorder.finish()

    def frame(self) -> None:
        """Mark the beginning of a frame, in your own loop."""
        self.recorder.frame_begins(self.recorder.frame + 1)

    @property
    def bound(self) -> FrameBound | None:
        """What bounds the frames: the CPU, the GPU, transfers or waiting. None without a whole frame or a run."""
        return bound_of(self)

    def __str__(self) -> str:
        return "Profile(not begun)" if self._recorder is None else as_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return preformatted(str(self))

    def save(self, path: str | Path) -> None:
        """Write the timeline: a name that ends in .html gives a page for a browser, and .json a file for
        ui.perfetto.dev. Raises InputError for another name, and ModelError if the file cannot be written.
        """
        suffix = Path(path).suffix.lower()
        if suffix in (".html", ".htm"):
            write_page(path, self)
        elif suffix == ".json":
            write_trace(path, self)
        else:
            raise InputError(f"a profile is saved as a page or a trace: give {str(path)!r} the suffix .html or .json")


def profile() -> Profile:
    """Time what workers do: `with pf.profile() as p:` around any frames. See `Profile`."""
    return Profile()
