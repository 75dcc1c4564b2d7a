"""Reports changed files. Needs watchfiles (the extra `reload`)."""

from __future__ import annotations

import threading
from pathlib import Path

from perframe.errors import MissingExtraError

_MILLISECONDS_BETWEEN_LOOKS = 1000  # where the system reports no changes, as on some network drives


class FileWatcher:
    """Watches single files, from a thread. Raises MissingExtraError without watchfiles."""

    def __init__(self) -> None:
        try:
            import watchfiles
        except ImportError:
            raise MissingExtraError("watchfiles", "reload", "App(reload=True)") from None
        self._changes = watchfiles.watch
        self._signatures: dict[Path, tuple[int, ...] | None] = {}
        self._touched = threading.Event()
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, path: Path) -> None:
        """Watch one more file. It need not exist yet."""
        folders = {known.parent for known in self._signatures}
        self._signatures.setdefault(path, _signature(path))
        if path.parent not in folders:
            self.release()
            self._ends = threading.Event()
            watched = sorted(folders | {path.parent})  # editors replace files, so folders are watched
            self._thread = threading.Thread(
                target=self._watch, args=(watched, self._ends), name="perframe reload", daemon=True
            )
            self._thread.start()

    def take(self) -> list[Path]:
        """The files that have changed since the last call. Never blocks."""
        if not self._touched.is_set():
            return []
        self._touched.clear()
        now = {path: _signature(path) for path in self._signatures}
        changed = [path for path, seen in self._signatures.items() if now[path] not in (seen, None)]
        self._signatures.update({path: now[path] for path in changed})
        return changed

    def release(self) -> None:
        """End the thread."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, folders: list[Path], ends: threading.Event) -> None:
        for _ in self._changes(
            *folders,
            watch_filter=None,
            debounce=100,
            stop_event=ends,
            rust_timeout=_MILLISECONDS_BETWEEN_LOOKS,
            yield_on_timeout=True,
            recursive=False,
            raise_interrupt=False,
        ):
            self._touched.set()


def _signature(path: Path) -> tuple[int, ...] | None:
    """Facts that differ between two versions of a file; None while there is none."""
    try:
        facts = path.stat()
    except OSError:  # an editor may be replacing it
        return None
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino  # tools may set the first one back
