"""A process that compiles kernels for another process. It reads requests as lines of JSON, and sends back object code.

Once it has greeted, it exits when its standard input ends, even in the middle of a kernel, and so ends with the process
that started it. If that process ends in good order, it says so before: then the remaining kernels are compiled for the
cache.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from perframe.backends import kernel_files
from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.compile.compilers import GREETING, LAST

ORPHANED = 60.0  # seconds without a request after which it exits: a forked process may hold its standard input open
GIVES_WAY = 5  # of 20: with it, a process gets a third of the time of another that wants the same core

_writing = threading.Lock()  # held while a file is written, so that an exit leaves no half-written file


def main() -> None:
    """Serve until the requests end."""
    if hasattr(os, "nice"):
        os.nice(GIVES_WAY)  # to frames, and to the layers that NumPy computes meanwhile
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is meant for the other process
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that the output of a compiler does not mix with replies
    requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    from perframe.backends.cpu.kernels import compiler  # noqa: F401, the import takes most of the start

    # a tenth of the time is else a search among Numba's objects, which stay
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    _write(replies, GREETING)
    # not before: on Windows, a library that looks at its streams while it is loaded would wait for this thread's read
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    pruned = False
    while True:
        try:
            request = requests.get(timeout=ORPHANED)
        except queue.Empty:
            return
        if request is None:
            return
        _reply(replies, **request)
        if not pruned:
            kernel_files.prune(Path(request["path"]).parent)
            pruned = True


def _read(lines: BinaryIO, requests: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    for line in lines:
        request = json.loads(line)
        requests.put(request)
        if request is None:  # the parent is exiting, and reads no more replies
            time.sleep(LAST)
            break
    with _writing:
        os._exit(0)


def _reply(replies: BinaryIO, name: str, text: str, path: str, folders: Sequence[str]) -> None:
    """Compile a kernel and write it to disk, if this process would compile the requested kernel. Always reply.

    `folders` are those in which the other process finds packages.
    """
    sys.path += [folder for folder in folders if folder not in sys.path]
    code, reply = b"", dict[str, Any](symbol="", error="")
    try:
        # if the files of kernels have changed since the other process read them, this would be another kernel
        if jit.object_path(name, text, Path(path).parent) == Path(path):
            code, reply["symbol"] = kernel_files.read(Path(path)) or jit.compile_here(name, text)
            with _writing:
                kernel_files.write(Path(path), code, reply["symbol"])
    except Exception as error:
        reply["error"] = f"{type(error).__name__}: {error}"
    _write(replies, json.dumps({**reply, "size": len(code)}).encode() + b"\n" + code)


def _write(replies: BinaryIO, reply: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # the other process has ended
        replies.write(reply)
        replies.flush()


if __name__ == "__main__":
    main()
