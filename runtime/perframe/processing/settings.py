"""The settings of a run of `perframe process`. A file beside the result keeps them, so that a later run continues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from perframe.media.picture import PICTURES, VIDEOS
from perframe.tensor import BackendType


class Chunk(NamedTuple):
    """Consecutive pictures: those of index `first` to `stop` - 1."""

    first: int
    stop: int


@dataclass(frozen=True)
class Settings:
    """All that a process needs to run a chunk. Paths are absolute."""

    source: str
    out: str
    model: str | None = None
    script: str | None = None
    """The file of the script, and `file.py:NAME` where it has several."""
    dims: dict[str, int] = field(default_factory=dict)
    """Values for the model's named dims, such as the height and width that it takes."""
    carry: dict[str, str] = field(default_factory=dict)
    """Outputs of the model, and the inputs that take them over at the next picture of a chunk."""
    backend: BackendType = BackendType.CPU
    size: tuple[int, int] | None = None
    """Width and height of the script's surface; None for those of the first picture."""
    rate: float | None = None
    """Pictures a second of a folder or a scene."""
    keeps_times: bool = False
    """Whether the result's pictures have their own times, as in a film of a variable rate."""
    lead: int = 0
    """Pictures before each chunk that the script or the model sees too, but that are not written."""
    chunk: int = 240
    count: int | None = None
    """Maximum number of pictures."""
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    suffix: str = ""
    """Suffix of the files of a folder: .png, .jpg, .npz ...; empty for .png if the model's output is a picture, else
    .npz.
    """

    @property
    def work(self) -> Path:
        """The folder of finished chunks, beside the result."""
        out = Path(self.out)
        return out.with_name(f"{out.name}.work")

    @property
    def plan(self) -> Path:
        """The file in it with the settings."""
        return self.work / "plan.json"

    @property
    def is_video(self) -> bool:
        """Whether the result is a video."""
        return Path(self.out).suffix.lower() in VIDEOS

    @property
    def is_one_file(self) -> bool:
        """Whether the result is one picture, or one file of arrays."""
        out = Path(self.out)
        return out.suffix.lower() in (".npz", *PICTURES) and not out.is_dir()

    def chunk_file(self, chunk: Chunk) -> Path:
        """The file that is there when a chunk is done: its part of a video, or an empty one."""
        return self.work / f"chunk-{chunk.first:08d}{Path(self.out).suffix.lower() if self.is_video else '.done'}"

    def to_json(self) -> str:
        """As a text in one line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Settings:
        """The settings that `to_json` wrote."""
        values = json.loads(text)
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return Settings(**{**values, **lists, "backend": BackendType(values["backend"])})

    def identity(self) -> dict[str, Any]:
        """The settings, and the sizes and times of the files. A run continues only if they are unchanged."""
        files = {name: given for name in ("source", "model", "script") if (given := self._path(name)) is not None}
        return {**json.loads(self.to_json()), "files": {name: _stamp(path) for name, path in files.items()}}

    def _path(self, name: str) -> Path | None:
        given: str | None = getattr(self, name)
        if given is not None and name == "script":
            given = split_script(given)[0]
        return None if given is None or not Path(given).exists() else Path(given)


def split_script(text: str) -> tuple[str, str]:
    """The file and the name, or an empty name, of `file.py:NAME`."""
    file, colon, name = text.rpartition(":")
    return (file, name) if colon and file.endswith(".py") else (text, "")


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The names of what differs between two identities."""
    changed = [name for name in now if name != "files" and before.get(name) != now[name]]
    files = before.get("files", {})
    other = [f"{name} file" for name, stamp in now["files"].items() if files.get(name) != stamp]
    return ", ".join(changed + other)


def _stamp(path: Path) -> list[Any]:
    """A file's size and time; of a folder the names, sizes and times of its files."""
    if path.is_dir():
        return sorted([entry.name, *_stamp(entry)] for entry in path.iterdir() if entry.is_file())
    about = path.stat()
    return [about.st_size, about.st_mtime_ns]
