"""`pf.process`: every picture of a video or a folder, in order, through a model or a script."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from filelock import FileLock, Timeout

from perframe.backends import BackendName, backend_type
from perframe.errors import InputError
from perframe.importers.shipped import resolved
from perframe.media.feeds import Feed
from perframe.media.picture import PICTURES, expanded, remove_unfinished, write_whole
from perframe.media.source import open_feed
from perframe.media.videos import VideoFeed
from perframe.processing.joining import Soundtrack, join
from perframe.processing.processes import run_here, run_on_ray, run_processes
from perframe.processing.settings import Chunk, Settings, difference, split_script

log = logging.getLogger("perframe")

Progress = Callable[[str, float], object]
LOCK = "lock"


@dataclass(frozen=True)
class Processed:
    """The result of a run of `process`."""

    out: Path
    pictures: int
    """The pictures of the result."""
    resumed: int
    """Chunks done by an earlier run."""
    seconds: float


def process(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    model: str | os.PathLike[str] | None = None,
    *,
    script: str | os.PathLike[str] | None = None,
    dims: Mapping[str, int] | None = None,
    carry: Mapping[str, str] | None = None,
    backend: BackendName = "auto",
    jobs: int = 1,
    ray: str | None = None,
    size: tuple[int, int] | None = None,
    rate: float | None = None,
    count: int | None = None,
    chunk: int = 240,
    lead: int = 0,
    scale: float = 1.0,
    mean: Sequence[float] = (0.0,),
    std: Sequence[float] = (1.0,),
    suffix: str = "",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Processed:
    """Run a model, or a script of a frame loop, over every picture of a video, a folder or a picture, in order.

    `out` is a video by its suffix, a file (.png, .jpg, .npz ...) for the result of one picture, or else a folder with
    a file for each picture. Without a `script` the model's input is
    the picture, (value * `scale` - `mean`) / `std` of values from 0 to 1, and its output is a picture again; if it has
    another form, or with `suffix=".npz"`, its outputs are written as .npz files. `dims` are values for named dims.
    `carry` maps outputs to inputs: states that go from picture to picture (see Worker), and begin as zeros.
    `backend` is "auto" by default: a real GPU, or else the CPU.

    A `script` is a file, and `file.py:NAME` where it has several. Its class may have the parameters `model`, `source`
    and `backend`. It runs off screen, on a surface of `size` or of the first picture's, and its drawing is the result.
    Time is that of the pictures, and readbacks wait, so that a result is drawn over its own picture.

    Work is cut into chunks of `chunk` pictures. Each begins the script or the states again, `lead` pictures before.
    `jobs` processes share the chunks, or the Ray cluster at the address `ray`. Call it again with the same arguments to
    resume an interrupted run after its last complete chunk. `overwrite` begins from nothing.

    `rate` is the pictures a second of a folder, `count` limits the number of pictures, and `progress` is called with
    the current activity and the fraction done. Raises InputError; ModelError; MissingExtraError without PyAV or Ray.
    """
    began = time.perf_counter()
    tell: Progress = progress or (lambda _what, _done: None)
    settings = Settings(
        source=_absolute(source),
        out=str(expanded(out).absolute()),
        model=None if model is None else str(expanded(resolved(model)).absolute()),
        script=None if script is None else str(expanded(script).absolute()),
        dims=dict(dims or {}),
        carry=dict(carry or {}),
        backend=backend_type(backend),
        size=size,
        rate=rate,
        lead=lead,
        chunk=chunk,
        count=count,
        scale=scale,
        mean=tuple(mean),
        std=tuple(std),
        suffix=suffix,
    )
    _check(settings, jobs)
    tell("reading the source", 0.0)
    feed = open_feed(settings.source, rate=rate, one_size=True)
    total = _total(feed, settings)
    if settings.is_one_file:
        if total != 1:
            raise InputError(
                f"{settings.out!r} is one file, and {feed.name} has {total} pictures: name a folder or a video"
            )
        settings = replace(settings, suffix=Path(settings.out).suffix.lower())
    settings = replace(settings, keeps_times=settings.is_video and rate is None and not feed.is_steady)
    with _alone(settings):
        _begin(settings, overwrite)
        resumed = _make(settings, feed, total, jobs, ray, tell)
        settings.plan.unlink()
    return Processed(Path(settings.out), total, resumed, time.perf_counter() - began)


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Keep other processes from the result meanwhile. The system ends the lock of a process that dies. At the end the
    work folder goes, unless there is something to continue with.
    """
    lock = FileLock(settings.work / LOCK)
    try:
        settings.work.mkdir(exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(f"another run is making {settings.out!r} right now: wait for its end, or stop it") from None
    except OSError as error:
        raise InputError(f"the folder {str(settings.work)!r} cannot be written ({error}): choose another OUT") from None
    try:
        yield
    except KeyboardInterrupt:
        if _has_begun(settings):
            log.warning("%s is not complete: run the same command again to resume", settings.out)
        raise
    finally:
        lock.release()
        if not _has_begun(settings):
            settings.plan.unlink(missing_ok=True)
        if not settings.plan.exists():
            _clear(settings.work)
            with suppress(OSError):  # another run has begun, or the folder holds files of others
                (settings.work / LOCK).unlink(missing_ok=True)  # Windows keeps it while another run asks for the lock
                settings.work.rmdir()


def _make(settings: Settings, feed: Feed, total: int, jobs: int, ray: str | None, tell: Progress) -> int:
    """Make all chunks that are not there, and join them. Return the number of pictures that were there."""
    chunks = [Chunk(first, min(first + settings.chunk, total)) for first in range(0, total, settings.chunk)]
    left = [one for one in chunks if not settings.chunk_file(one).exists()]
    resumed = done = total - sum(one.stop - one.first for one in left)

    def advance(pictures: int) -> None:
        nonlocal done
        done += pictures
        tell(f"picture {done} of {total}", done / total)

    tell(f"picture {done} of {total}", done / total)
    if left:
        if ray is not None:
            run_on_ray(settings, left, ray, advance)
        elif min(jobs, len(left)) > 1:
            run_processes(settings, left, jobs, advance)
        else:
            run_here(settings, left, advance)
    if settings.is_video:
        tell("joining the parts", 1.0)
        rate = Fraction(settings.rate or feed.rate)
        times = [feed.time_of(one.first) if settings.keeps_times else one.first / rate for one in chunks]
        parts = [(begin, settings.chunk_file(one)) for begin, one in zip(times, chunks, strict=True)]
        join(parts, Path(settings.out), _sound_of(feed, settings, total))
    return resumed


def _absolute(source: str | os.PathLike[str]) -> str:
    """The source with an absolute path, if it is one."""
    path = expanded(source)
    return str(path.absolute()) if path.exists() else str(source)


def _check(settings: Settings, jobs: int) -> None:
    """Raise InputError for what cannot be, before anything is written."""
    out = Path(settings.out)
    for name, value, least in (("jobs", jobs, 1), ("chunk", settings.chunk, 1), ("lead", settings.lead, 0)):
        if not isinstance(value, int) or value < least:
            raise InputError(f"{name} is an integer of at least {least}, not {value!r}")
    if settings.count is not None and settings.count < 1:
        raise InputError(f"count is a number of pictures of at least 1, not {settings.count!r}")
    if settings.model is None and settings.script is None:
        raise InputError("process needs a model, a script, or both")
    if settings.script is not None and not Path(split_script(settings.script)[0]).is_file():
        raise InputError(f"there is no script {split_script(settings.script)[0]!r}")
    if settings.carry and settings.script is not None:
        raise InputError("carry is for a model without a script: let the script make a Worker with carry")
    if settings.suffix not in ("", ".npz", *PICTURES):
        raise InputError(f"suffix is .npz or one of {', '.join(PICTURES)}, not {settings.suffix!r}")
    is_file = settings.is_video or settings.is_one_file
    if is_file and settings.suffix:
        raise InputError(f"{out.name} is a file: `suffix` is for the files of a folder")
    if not is_file and out.suffix and not out.is_dir():
        raise InputError(f"{str(out)!r} is not a video (.mp4, .mkv ...), a picture (.png, .jpg ...), .npz or a folder")
    if not out.parent.is_dir():
        raise InputError(f"{str(out)!r} cannot be written: there is no folder {str(out.parent)!r}")
    _check_apart(Path(settings.source), out, settings.work)


def _check_apart(source: Path, out: Path, work: Path) -> None:
    """Raise InputError if the result would be written over the source, by whatever name, or into its folder.

    `samefile` knows links, `..` and names in other letters where the system knows only one such file.
    """
    if not source.exists():  # scene:640x360
        return
    for place in (out, work):
        real = place.resolve()
        if any(each.exists() and each.samefile(source) for each in (place, real, *real.parents)):
            raise InputError(f"{str(place)!r} is the source itself, or lies in it: write elsewhere")
    pictures = [source] if source.is_file() else list(source.iterdir())
    folders = {path.resolve().parent for path in pictures}
    for place in (out, work):
        if place.is_dir() and any(folder.samefile(place) for folder in folders if folder.exists()):
            raise InputError(f"the source lies in {str(place)!r}, where the result would be written: write elsewhere")


def _total(feed: Feed, settings: Settings) -> int:
    """The number of pictures. Raises InputError for a source without an end."""
    if feed.is_live:
        raise InputError(f"{feed.name} has no beginning and no end: process takes a video, a folder or a picture")
    counts = [count for count in (feed.count, settings.count) if count is not None]
    if not counts:
        raise InputError(f"{feed.name} has no end: say how many pictures with `count` (--count)")
    return min(counts)


def _begin(settings: Settings, overwrite: bool) -> None:
    """Write the plan into the work folder, or continue with the chunks of an earlier run.

    Raises InputError if the result is there, or if the work folder is that of other settings.
    """
    out, plan = Path(settings.out), settings.plan
    if overwrite:
        plan.unlink(missing_ok=True)
    elif plan.exists() and _has_begun(settings):
        changed = difference(json.loads(plan.read_text(encoding="utf-8")), settings.identity())
        if changed:
            raise InputError(
                f"{str(settings.work)!r} is of a run with another {changed}: end that run with its own arguments, or "
                "begin again with `overwrite` (--overwrite)"
            )
        for folder in (settings.work, out):
            remove_unfinished(folder)
        return
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{str(out)!r} already exists: choose another name, or pass overwrite=True (--overwrite)")
    _clear(settings.work)  # without a plan nothing was done
    if not (settings.is_video or settings.is_one_file):
        out.mkdir(exist_ok=True)
    text = json.dumps(settings.identity(), indent=2)
    write_whole(plan, lambda beside: beside.write_text(text, encoding="utf-8"))


def _has_begun(settings: Settings) -> bool:
    """Whether there is something to continue with: a complete chunk, or files in the folder of the result."""
    if settings.is_one_file:
        return False
    out = Path(settings.out)
    return any(settings.work.glob("chunk-*")) or (not settings.is_video and out.is_dir() and any(out.iterdir()))


def _clear(work: Path) -> None:
    remove_unfinished(work)
    for path in work.glob("chunk-*"):
        path.unlink()


def _sound_of(feed: Feed, settings: Settings, total: int) -> Soundtrack | None:
    """The sound that comes along: that of a film which keeps its times."""
    if not isinstance(feed, VideoFeed):
        return None
    if settings.rate is not None:
        log.warning(
            "the rate is changed to %g pictures a second: the sound of %s is left out", settings.rate, feed.name
        )
        return None
    end = None if total == feed.count else feed.begin + feed.time_of(total)
    return Soundtrack(feed.path, feed.begin, end)
