"""Processes that compile kernels, so that the user's process neither waits for each in turn nor imports Numba.

They start with the first kernel that is missing in the cache, and take requests one at a time. They end when they have
been idle for a while, or when this process ends. PERFRAME_COMPILERS caps their number. With 0, or where no process can
be started, this process compiles kernels when they are needed.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
from collections import deque
from functools import cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from perframe.backends.kernel_files import Entry
from perframe.errors import BackendError, InputError
from perframe.safety.wording import counted
from perframe.tensor.compilation import compiling
from perframe.tensor.locks import new_lock

if TYPE_CHECKING:
    import subprocess

log = logging.getLogger("perframe")

GREETING = b"perframe compiles\n"  # the first reply of a process, when it is ready
FINISH = b"null\n"  # instead of a request: this process ends, and the kernels are for the cache alone
PROCESSES = 4  # at most: few models need more kernels at a time
IDLE = 10.0  # seconds after which an idle process is ended
START = 60.0  # seconds that a process may take to become ready
REPLY = 60.0  # seconds for one kernel, some hundred times what it takes alone; then this process compiles the kernel
NEWS = 5.0  # seconds between two reports of progress in the log
STAY = 4.0  # seconds that a process waits at its end for its kernels: the next one would request them again
TELLING = 3  # kernels whose times tell how long the others will take
SILENCE = 1.0  # seconds that compilers may take, at the end or before it, without a report in the log
LAST = 60.0  # seconds that processes compile on for the cache after this process has ended


def process_count() -> int:
    """The number of processes that may compile: one for each core up to four, or PERFRAME_COMPILERS.

    Raises InputError where PERFRAME_COMPILERS is not a number.
    """
    given = os.environ.get("PERFRAME_COMPILERS", "")
    if given and not given.isdecimal():
        raise InputError(f"PERFRAME_COMPILERS is a number of processes, 0 or more, not {given!r}")
    if not _is_python():
        return 0
    return int(given) if given else min(PROCESSES, _cores())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_python() -> bool:
    """Whether `sys.executable` is a Python interpreter, rather than a frozen program or one that embeds Python."""
    return not getattr(sys, "frozen", False) and Path(sys.executable or "").name.lower().startswith("python")


class Compilation:
    """A kernel that another process compiles."""

    def __init__(self, name: str, text: str, path: Path) -> None:
        self.name, self.text, self.path = name, text, path
        self._process = os.getpid()
        self._done = threading.Event()
        self._entry: Entry | None = None
        self._error = ""

    @property
    def is_done(self) -> bool:
        """Whether it has ended, with object code or an error."""
        return self._done.is_set()

    def wait(self) -> Entry | None:
        """Wait, and return the object code, or None where no process could compile it.

        Raises BackendError where the compiler raised an error.
        """
        if self._process != os.getpid():  # forked since: no thread here will set the event
            return None
        self._done.wait()
        if self._error:
            raise compile_error(self.name, self._error)
        return self._entry

    def finish(self, entry: Entry | None, error: str = "") -> None:
        """Note the result, and wake all waiting threads."""
        self._entry, self._error = entry, error
        self._done.set()


def compile_error(name: str, error: object) -> BackendError:
    """Make the error for a kernel that the compiler refuses."""
    return BackendError(f"the kernel {name!r} could not be compiled: {error}")


class Compilers:
    """The compiling processes of this process. Each has a thread here that feeds it with compilations."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Compilation] = deque()
        self._open: dict[Path, Compilation] = {}  # compilations that wait or are under way
        self._feeders = 0
        self._resting = 0  # feeders that wait for a compilation
        self._usable = True
        self._processes: list[subprocess.Popen[bytes]] = []  # those that run
        self._left = False  # whether this process has ended
        self._asked = 0  # the number of kernels that this process has requested
        self._is_told, self._told_at = False, 0.0  # whether the log has reported the begin, and the last report's time
        self._seconds = 0.0  # that a kernel took at most

    def request(self, name: str, text: str, path: Path) -> Compilation | None:
        """Begin to compile a kernel, to be written to `path`. Return None where no process can be started."""
        most = process_count()
        with self._changed:
            if not self._usable or most == 0:
                return None
            compilation = self._open.get(path)
            if compilation is None:
                compilation = self._open[path] = Compilation(name, text, path)
                self._waiting.append(compilation)
                wants_feeder = len(self._waiting) > self._resting and self._feeders < most
                if wants_feeder and not self._start_feeder() and not self._feeders:
                    self._open.pop(path, None)
                    self._waiting.remove(compilation)
                    return None
                self._changed.notify()
                self._asked += 1
                compiling.begin()
        self._tell()
        return compilation

    def _start_feeder(self) -> bool:
        """Start a thread that feeds one more process. Return whether that succeeded."""
        try:
            threading.Thread(target=self._feed, name="perframe-compiler", daemon=True).start()
        except RuntimeError as error:  # the system allows no more threads
            log.info("no thread for one more process that compiles kernels: %s", error)
            return False
        self._feeders += 1
        return True

    def _tell(self) -> None:
        """Log that kernels are being compiled, and from time to time the progress."""
        now = monotonic()
        with self._changed:
            # the slowest of some kernels tells how long the others will take: the first one may be small
            few = not self._seconds or compiling.compiled < min(TELLING, compiling.requested - 1)
            left = max(1, round(len(self._open) * self._seconds / max(1, self._feeders)))
            estimate = "" if few or not self._open else f", about {left} s"
            if not self._is_told:
                if not self._open or compiling.seconds < SILENCE:
                    return
                self._is_told, self._told_at = True, now
                log.warning(
                    "compiling kernels (%d so far)%s, once on this machine: runs are slower until then; `perframe "
                    "warmup MODEL` compiles them beforehand, and worker.progress reports progress",
                    self._asked,
                    estimate,
                )
            elif now - self._told_at > NEWS:
                self._told_at = now
                done = self._asked - len(self._open)
                log.warning("%d of %d kernels are compiled%s", done, self._asked, estimate and f"{estimate} to go")

    def hurry(self, compilation: Compilation) -> None:
        """Let a compilation be the next one that begins."""
        with self._changed:
            if compilation in self._waiting:
                self._waiting.remove(compilation)
                self._waiting.appendleft(compilation)

    @property
    def progress(self) -> float:
        """The share of requested kernels that is compiled, from 0 to 1."""
        with self._changed:
            return 1.0 if not self._asked else 1 - len(self._open) / self._asked

    @property
    def busy(self) -> bool:
        """Whether any kernel waits or is being compiled."""
        return bool(self._open)

    def settle(self, seconds: float | None = None) -> None:
        """Wait until all requested kernels are compiled, for `seconds` at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open, seconds)

    def stay(self) -> None:
        """At exit, wait for the compilations under way, for `STAY` seconds at most. The log reports a long wait."""
        with self._changed:
            self._is_told, self._told_at = True, monotonic()  # no run is slower from here on
        self.settle(min(SILENCE, STAY))
        if self._open and STAY > SILENCE:
            log.warning(
                "waiting up to %d s for kernels that later runs need (%d left), once on this machine; `perframe warmup "
                "MODEL` compiles them beforehand; press Ctrl-C to end now",
                round(STAY - SILENCE),
                len(self._open),
            )
            self.settle(STAY - SILENCE)
            if self._open:
                where = "are compiled in the background" if self._processes else "wait for the next run"
                log.warning("%s that are left %s", counted(len(self._open), "kernel"), where)

    def _feed(self) -> None:
        """Start a process, and feed it with compilations until there are none for a while or the process fails."""
        process = None
        try:
            process = self._process()
            while (compilation := self._next()) is not None:
                reply, began = None, monotonic()
                try:
                    reply = _ask(process, compilation)
                    self._seconds = max(self._seconds, monotonic() - began)
                finally:
                    self._finish(compilation, *(reply or (None, "")))
                if reply is None and not self._left:
                    log.info("the process that compiled %r ended before that", compilation.name)
                    break
        except OSError as error:
            log.info("kernels are compiled in this process, since no other can be started: %s", error)
            self._usable = False
        finally:
            with self._changed:
                self._feeders -= 1
                left = [] if self._feeders else list(self._waiting)
            for compilation in left:  # no other thread will take them
                self._finish(compilation, None, "")
            if process is not None and not self._left:
                self._processes.remove(process)
                _end(process)

    def _process(self) -> subprocess.Popen[bytes]:
        """Start a process, and return it when it is ready. Raises OSError."""
        process = _start()
        self._processes.append(process)
        try:
            _greet(process)
        except OSError:
            self._processes.remove(process)
            raise
        return process

    def leave(self) -> None:
        """Let the processes compile what is left, so that later processes find it in the cache. Does not wait."""
        with self._changed:
            self._left, left = True, list(self._waiting)
            self._waiting.clear()
            processes = [process for process in self._processes if process.poll() is None]
        for index, process in enumerate(processes):
            assert process.stdin is not None
            with contextlib.suppress(OSError, ValueError):
                for compilation in left[index :: len(processes)]:
                    process.stdin.write(_request(compilation))
                process.stdin.write(FINISH)
                process.stdin.flush()

    def _next(self) -> Compilation | None:
        """Return the next compilation, or None if there was none for a while."""
        with self._changed:
            self._resting += 1
            found = self._changed.wait_for(lambda: self._waiting, IDLE) and not self._left
            self._resting -= 1
            return self._waiting.popleft() if found else None

    def _finish(self, compilation: Compilation, entry: Entry | None, error: str) -> None:
        with self._changed:
            if self._open.pop(compilation.path, None) is not None:
                compiling.end()
            if compilation in self._waiting:
                self._waiting.remove(compilation)
            self._changed.notify_all()
        compilation.finish(entry, error)
        self._tell()


def _start() -> subprocess.Popen[bytes]:
    """Start a process. Raises OSError."""
    import subprocess  # imported late, as json below: a process whose cache is warm needs neither

    paths = [path or os.getcwd() for path in sys.path]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "perframe.backends.cpu.compile.compile_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**_clean_environment(), "PYTHONPATH": os.pathsep.join(paths)},
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0)
        | getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0),  # elsewhere it gives way by itself
    )


def _greet(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process is ready. Raises OSError, and ends the process, if it does not become ready."""
    late = threading.Timer(START, process.kill)
    late.daemon = True
    late.start()
    assert process.stdout is not None
    try:
        if process.stdout.readline(len(GREETING)) == GREETING:
            return
    finally:
        late.cancel()
    process.kill()
    _end(process)
    raise OSError(f"{sys.executable} did not become ready")


def _clean_environment() -> dict[str, str]:
    """Return the environment without Numba's variables: processes without them use the compiled kernels too."""
    return {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}


def _ask(process: subprocess.Popen[bytes], compilation: Compilation) -> tuple[Entry | None, str] | None:
    """Have a process compile a kernel. Return (entry or None, the compiler's error), or None if the process is gone."""
    import json

    assert process.stdin is not None and process.stdout is not None
    late = threading.Timer(REPLY, process.kill)
    late.daemon = True
    with contextlib.suppress(RuntimeError):  # without a thread there is no time limit
        late.start()
    try:
        process.stdin.write(_request(compilation))
        process.stdin.flush()
        reply = json.loads(process.stdout.readline())
        code = process.stdout.read(reply["size"])
    except (OSError, ValueError):
        return None
    finally:
        late.cancel()
    if len(code) != reply["size"]:
        return None
    return ((code, reply["symbol"]) if code else None), reply["error"]


def _request(compilation: Compilation) -> bytes:
    import json

    folders = sys.path if ":" in compilation.name else []  # where the kernel's package is found
    request = {
        "name": compilation.name,
        "text": compilation.text,
        "path": str(compilation.path),
        "folders": [folder or os.getcwd() for folder in folders],
    }
    return json.dumps(request).encode() + b"\n"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process by closing its standard input."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    process.wait()


_making = new_lock()


def compilers() -> Compilers:
    """Return the Compilers of this process. The first call makes them."""
    with _making:  # two threads would make two, and one would know nothing of the other's kernels
        return _compilers()


@cache
def _compilers() -> Compilers:
    made = Compilers()
    atexit.register(_leave, made, os.getpid())
    return made


def _leave(left: Compilers, process: int) -> None:
    """At exit, wait for the compilations under way, and then leave the rest to their processes, so that the next
    process finds the kernels on disk. An error or Ctrl-C ends the process at once.
    """
    if os.getpid() == process:
        with contextlib.suppress(KeyboardInterrupt):
            if not hasattr(sys, "last_type"):  # the error that ends it
                left.stay()
        left.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_compilers.cache_clear)
    os.register_at_fork(after_in_child=compiling.forget)
