"""Models that were loaded before, kept in the cache folder as the passes left them.

Importing and optimizing a file takes most of a start. A kept model holds its graph, and the constants that passes made:
weights that are unchanged are read from the model's own files, as at the first load. It serves as long as these files,
the options of `load` and this perframe are the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import IO

import numpy as np

import perframe
from perframe.backends.kernel_files import prune
from perframe.errors import ModelError
from perframe.files import model_file
from perframe.files.container import ALIGNMENT
from perframe.files.reading import copied
from perframe.importers.filling import fill, filling, settle
from perframe.importers.reads import Array, Reads, stamp_of
from perframe.ir import Model
from perframe.ir.declaration import REGISTRY
from perframe.ir.report import OptimizationReport
from perframe.resources import cache_folder, digest_of
from perframe.safety.private_files import make_private, problem_of
from perframe.safety.records import dataclass
from perframe.tensor import DataType
from perframe.tensor.background import is_beside_frames

MOST_BYTES = 128 << 20  # of one kept model
ALL_BYTES = 512 << 20  # of all of them
NOT_LOADING = (  # packages of perframe that have no part in a loaded model
    *("command_line", "conversion", "demos", "execution", "exporters", "functional", "graphics", "host", "inspection"),
    *("media", "plan", "processing", "profiling", "quantization", "testing", "text", "textures", "vision"),
)
SETTLED = 2.0  # seconds since the last change of a file: a younger one may change again within the clock's step
_HEAD = 8  # bytes of the length of the head


@dataclass(frozen=True)
class Kept:
    """The place of a kept model: of a file, and of the options with which it is loaded."""

    path: Path

    def read(self, name: str) -> Model | None:
        """Return the model, under the file's name; None if there is none, or if it does not serve any more."""
        try:
            with open(self.path, "rb") as file:
                data = copied(file, os.fstat(file.fileno()).st_size)
            length = int.from_bytes(data[:_HEAD], "little")
            head = json.loads(bytes(data[_HEAD:length]))
            paths, stamps = zip(*head["files"], strict=True)
            if [[*stamp_of(path)] for path in paths] != [*stamps]:  # before a pipe is opened, which would wait
                return None
            with ExitStack() as opened:
                files = [opened.enter_context(open(path, "rb")) for path in paths]
                if [[*stamp_of(file.fileno())] for file in files] != [*stamps]:
                    return None
                with filling(name):
                    model = model_file.read(data[length:], name, lambda *asked: _read(files, *asked), settle)
            model.fixed_inputs = frozenset(head["fixed_inputs"])
            model.report = OptimizationReport.of(head["report"])
        except (OSError, ValueError, LookupError, TypeError, ModelError):
            return None  # what is wrong is made again
        with contextlib.suppress(OSError):
            os.utime(self.path)  # prune deletes what was unused for longest
        return model

    def write(self, model: Model, reads: Reads) -> None:
        """Keep a model, unless it is large, or one of its files has changed just now. Frames go first: beside them
        nothing is kept, since JSON of a large graph is written without a pause.
        """
        now = time.time()
        if model.report is None or not reads.is_whole or not reads.files or _has_foreign_layers() or is_beside_frames():
            return
        if any(now - max(stamp[3:]) / 1e9 < SETTLED for stamp in reads.files.values()):
            return
        head = json.dumps(
            {
                "files": list(reads.files.items()),
                "fixed_inputs": sorted(model.fixed_inputs),
                "report": model.report.as_json(),
            }
        ).encode()
        length = -(-(_HEAD + len(head)) // ALIGNMENT) * ALIGNMENT
        try:
            buffers = [*model_file.buffers(model, reads.places().of)]
        except ModelError:  # a layer holds what no file can
            return
        if sum(map(len, buffers)) > MOST_BYTES:
            return
        with contextlib.suppress(OSError):  # kernels are not kept either then, and that is said
            make_private(self.path.parent)
            beside = self.path.with_name(f".{self.path.name}.{os.urandom(4).hex()}")
            try:
                with open(beside, "xb") as file:
                    file.write(length.to_bytes(_HEAD, "little") + head.ljust(length - _HEAD))
                    file.writelines(buffers)
                os.replace(beside, self.path)
            finally:
                beside.unlink(missing_ok=True)
            prune(self.path.parent, ALL_BYTES)


def kept(
    source: str | Path, dims: Mapping[str, int] | None, outputs: Sequence[str] | None, narrow_doubles: bool
) -> Kept | None:
    """Return where the model of a file is kept; None where none is."""
    from perframe.passes import has_added

    if os.environ.get("PERFRAME_KEEP_MODELS") == "0" or _has_foreign_layers() or has_added():
        return None
    if not isinstance(dims, dict | None) or not isinstance(outputs, list | tuple | None):
        return None  # loading says what is wrong with it, if anything
    folder, installation = cache_folder() / "models", _installation()
    if problem_of(folder) or not installation:
        return None
    options = [os.path.abspath(source), dims, outputs and [*outputs], narrow_doubles, installation]
    key = digest_of(repr(options))
    return Kept(folder / f"{key[:40]}.kept")


def _has_foreign_layers() -> bool:
    """Whether layers are declared that are not perframe's: their code may change, and constants with it."""
    return not all(found.origin.startswith("perframe.") for found in list(REGISTRY.values()))


@cache
def _installation() -> str:
    """A digest of what changes with this perframe: the times and sizes of the files with which it loads models.

    Empty where there are no files, as in an archive or a frozen program.
    """
    try:
        found = _sources(Path(perframe.__file__).parent, NOT_LOADING)
    except OSError:
        return ""
    return digest_of(repr([np.__version__, found])) if found else ""


def _sources(folder: str | Path, without: Container[str] = ()) -> list[tuple[str, int, int]]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                facts = entry.stat()
                found.append((entry.path, facts.st_mtime_ns, facts.st_size))
            elif entry.name != "__pycache__" and entry.name not in without and entry.is_dir():
                found += _sources(entry.path)
    return sorted(found)


def _read(files: Sequence[IO[bytes]], place: tuple[int, int], dtype: DataType, shape: tuple[int, ...]) -> Array:
    """Read a constant of the model's own files. Raises ModelError."""
    array = np.empty(shape, dtype.numpy)
    if not fill(files[place[0]], place[1], array.reshape(-1).view(np.uint8).data):
        raise ModelError("a file has changed while it was read")
    array.flags.writeable = False
    return array
