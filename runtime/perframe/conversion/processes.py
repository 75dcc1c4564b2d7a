"""Child processes whose output is kept, and which end with a time limit or with the program that waits for them."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

LAST_LINES = 20  # of a child's output, in an error
LONGEST_LINE = 2000  # characters that are kept of a line
_EXCEPTION = 0x80000000  # and above: exit statuses of processes that Windows ended
GRACE = 5.0  # seconds between the request to end and the end


class ChildError(Exception):
    """A child process failed, or took too long. `lines` are the last lines that it wrote."""

    def __init__(self, problem: str, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join([problem, *(f"  | {line}" for line in lines)]))


def run_child(
    command: Sequence[str | Path],
    seconds: float,
    environment: Mapping[str, str],
    folder: str | Path | None = None,
    on_line: Callable[[str], bool] | None = None,
) -> list[str]:
    """Run a command to its end, and return the last lines that it wrote. Blocks for `seconds` at most.

    `on_line` is called with each line, in this thread; a line for which it returns True is not kept. If an exception
    ends the wait, such as KeyboardInterrupt, the child and its children end first. Raises ChildError.
    """
    kept: deque[str] = deque(maxlen=LAST_LINES)
    ending = time.monotonic() + seconds
    try:
        child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=os.name == "posix",  # so that its children can be ended with it
        )
    except OSError as error:
        raise ChildError(f"{command[0]} cannot be run: {error}", ()) from error
    assert child.stdout is not None
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(child.stdout, lines), daemon=True).start()
    try:
        while True:
            left = ending - time.monotonic()
            try:
                line = lines.get(timeout=max(0.0, min(left, 1.0)))
            except queue.Empty:
                if left <= 0:
                    raise ChildError(f"it took longer than {seconds:g} s and was ended", kept) from None
                if child.poll() is None:
                    continue
                line = None  # it ended, and a child of its own holds the pipe
            if line is None:
                break
            if not (on_line and on_line(line)) and line.strip():
                kept.append(line)
        try:
            status = child.wait(timeout=max(0.0, ending - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise ChildError(f"it took longer than {seconds:g} s and was ended", kept) from None
    finally:
        _end(child)
    if status:
        raise ChildError(f"it ended with {status_text(status)}", kept)
    return [*kept]


def _read(pipe: IO[bytes], lines: queue.SimpleQueue[str | None]) -> None:
    with pipe:
        while part := pipe.readline(LONGEST_LINE):
            lines.put(part.decode("utf-8", "replace").rstrip())
    lines.put(None)


def is_crash(status: int) -> bool:
    """Whether a signal ended a process, or one of Windows' exceptions."""
    return status < 0 or status >= _EXCEPTION


def status_text(status: int) -> str:
    """The end of a process as text: its exit status, or the signal. Exceptions of Windows are hexadecimal."""
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(-status).name}"
    return f"exit status {f'0x{status:X}' if is_crash(status) else status}"


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child that still runs, and all that it started."""
    if child.poll() is not None:
        return
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
    else:  # terminate() would spare those that the child has started
        with contextlib.suppress(OSError):  # a Windows without this program; the child is killed below
            subprocess.run(("taskkill", "/pid", str(child.pid), "/t", "/f"), capture_output=True)
    try:
        child.wait(timeout=GRACE)
    except subprocess.TimeoutExpired:
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        child.wait()
