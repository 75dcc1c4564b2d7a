"""Chunks on several processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from perframe.errors import InputError, MissingExtraError
from perframe.processing.chunks import Runner, run_chunk
from perframe.processing.settings import Chunk, Settings

SECONDS_TO_REACH = 10  # a cluster
Tell = Callable[[int], object]
"""Called with the number of pictures that have been done since the last call."""


def run_here(settings: Settings, chunks: Sequence[Chunk], tell: Tell) -> None:
    """Run the chunks one after another, in this process."""
    runner = Runner(settings)
    try:
        for chunk in chunks:
            runner.run(chunk, lambda _index: tell(1))
    finally:
        runner.release()


def run_processes(settings: Settings, chunks: Sequence[Chunk], jobs: int, tell: Tell) -> None:
    """Run the chunks on `jobs` processes. Raises InputError with the first error; then all processes are ended."""
    waiting: Queue[Chunk] = Queue()
    for chunk in chunks:
        waiting.put(chunk)
    news: Queue[int | Exception | None] = Queue()
    count = min(jobs, len(chunks))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads, paths = str(max(1, cores // count)), os.pathsep.join(sys.path)
    environment = {"PERFRAME_THREADS": threads, **os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "perframe.processing.worker"]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=environment)
        for _ in range(count)
    ]
    try:
        for process in processes:
            Thread(target=_feed, args=(process, settings, waiting, news), daemon=True).start()
        running = count
        while running:
            new = news.get()
            if isinstance(new, Exception):
                raise new
            running -= new is None
            if new is not None:
                tell(new)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def _feed(process: Any, settings: Settings, waiting: Queue[Chunk], news: Queue[Any]) -> None:
    """Hand chunks to a process, in a thread, until there are no more. Sends its news."""
    try:
        _ask(process, settings.to_json())
        while True:
            chunk = waiting.get_nowait()
            _ask(process, json.dumps(chunk._asdict()))
            for line in process.stdout:
                answer = json.loads(line)
                if "error" in answer:
                    raise InputError(answer["error"])
                if "finished" in answer:
                    break
                news.put(1)
            else:
                raise BrokenPipeError
    except Empty:
        news.put(None)
    except (BrokenPipeError, ValueError, OSError) as error:
        if isinstance(error, InputError):
            news.put(error)
        else:
            status = process.wait()
            news.put(
                InputError(f"a process of perframe ended with status {status}; run the same command again to resume")
            )


def _ask(process: Any, line: str) -> None:
    process.stdin.write(line + "\n")
    process.stdin.flush()


def run_on_ray(settings: Settings, chunks: Sequence[Chunk], address: str, tell: Tell) -> None:
    """Run each chunk as a task of a Ray cluster, whose machines see all files under the same paths.

    Raises InputError with the first error of a task, and MissingExtraError without Ray.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("Ray", "ray", "--ray") from error
    try:
        _reach(address)
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"there is no Ray cluster at {address!r}: {error}") from error
    try:
        task: Any = ray.remote(max_retries=2)(_run_in_ray)
        text, paths = settings.to_json(), _paths()
        pending = [task.remote(paths, text, *chunk) for chunk in chunks]
        while pending:
            (done,), pending = ray.wait(pending, num_returns=1)
            try:
                tell(ray.get(done))
            except ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or error
                raise InputError(f"a task on Ray failed: {cause}") from error
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Raise OSError if nobody listens at `host:port`: Ray itself would try for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), SECONDS_TO_REACH).close()


def _paths() -> list[str]:
    """The folders from which this process imports, but for those of the interpreter itself."""
    return [path for path in sys.path if path and Path(path).is_dir() and not path.startswith(sys.base_prefix)]


def _run_in_ray(paths: list[str], settings: str, first: int, stop: int) -> int:
    """Run a chunk where Ray says: on a machine that has perframe, or sees the folders of this one."""
    sys.path += [path for path in paths if path not in sys.path]

    return run_chunk(settings, first, stop)
