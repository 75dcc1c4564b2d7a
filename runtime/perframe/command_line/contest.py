"""Contestants: a side and a model, measured in a process of its own with limits on time and memory.

The idle threads of some runtimes spin, which slows everything else in their process.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from threading import Timer
from typing import Any, Literal

import numpy as np

from perframe.conversion.processes import status_text
from perframe.errors import BackendError, PerframeError

Clock = Literal["wall", "cpu"]

SIDE = 224  # pixels of a picture whose size is open
WARM_UP_SECONDS = 0.5
BURST_SECONDS = 0.1
FRAMES = 20  # in a burst, if other work comes between runs
SERVER = (sys.executable, "-m", "perframe.command_line.bench_side")
PAUSE_SECONDS = 0.02  # lets the threads of the side before fall asleep


@dataclass(frozen=True)
class Timing:
    """The times of one side for one model, in seconds, and the peak memory of its process, in bytes.

    `load` includes the runtime's import. `first` is the first inference. `new_shape` is the first inference with other
    input shapes when everything else is warm; None if the model has no open dims. `steady` is the median of the rounds.
    `cpu` has the first, the new shape's and the steady time as all threads of the process spend it.
    `difference` is the largest deviation from the peer's outputs, relative to the largest of them. `ratio` is peer /
    ours, of times and of memory: above 1, perframe is better. `peer` is the fastest peer, to which the others are
    compared.
    """

    model: str
    side: str
    threads: int | None = None
    load: float | None = None
    first: float | None = None
    new_shape: float | None = None
    steady: float | None = None
    rounds: tuple[float, ...] = ()
    cpu: Mapping[str, float] = field(default_factory=dict)
    memory: int | None = None
    difference: float | None = None
    peer: str | None = None
    ratio: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class BenchTask:
    """A model to measure: files for both sides, inputs, and inputs of another shape if the model has open dims."""

    name: str
    ours: Path
    peers: Path
    feed: Path
    new_feed: Path | None


def make_task(name: str, folder: Path, dims: Mapping[str, int], seed: int) -> BenchTask:
    """Put the model and its inputs into `folder`. Raises ModelError."""
    import perframe as pf
    from perframe.command_line.options import given_key
    from perframe.command_line.sources import model_inputs, named_model
    from perframe.files.reading import is_own
    from perframe.importers.formats import HEAD, is_litert, is_sentis
    from perframe.importers.light import for_other_runtimes
    from perframe.inspection.chosen_sizes import fits
    from perframe.safety.archives import write_feed

    source = named_model(name, seed)
    if isinstance(source, Path):
        ours = source
    else:
        ours = folder / "model.onnx"
        ours.write_bytes(source)
    key = given_key()
    model = pf.load(ours, optimize=False, key=key)
    peers = folder / "peers.onnx"
    with ours.open("rb") as opened:
        head = opened.read(HEAD)
    if is_sentis(head) or (is_own(head) and key is None):
        pf.save(model, peers)
    elif not is_own(head) and not is_litert(head) and (changed := for_other_runtimes(ours)) is not None:
        peers.write_bytes(changed)
    else:  # an encrypted model stays encrypted, and the other runtimes say that they cannot read it
        peers = ours
    feed, chosen = model_inputs(model, (), dims, seed, likely=True, side=SIDE)
    write_feed(folder / "feed.npz", feed)
    sizes = {**dims, **chosen.sizes}
    doubled = {name: 2 * size for name, size in sizes.items()}
    has_other = bool(sizes) and fits(model, doubled)
    if has_other:
        write_feed(folder / "new_feed.npz", model_inputs(model, (), doubled, seed, likely=True, side=SIDE)[0])
    return BenchTask(name, ours, peers, folder / "feed.npz", folder / "new_feed.npz" if has_other else None)


@dataclass(frozen=True)
class Limits:
    """Limits of a side's process; None for no limit."""

    seconds: float | None = None  # for an answer
    memory: int | None = None  # bytes


class Process:
    """A side in its own process. See bench_side.py for its requests and answers."""

    def __init__(
        self,
        side: str,
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = SERVER,
    ) -> None:
        self.side, self._limits = side, limits or Limits()
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (close() closes it)
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            env={**os.environ, "PYTHONIOENCODING": "utf-8", **(environment or {})},
        )
        if self._limits.memory:
            self.ask("limit", memory=self._limits.memory)

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Send a request, and block until the answer comes. Raises BackendError. A process that takes too long ends."""
        assert self._child.stdin and self._child.stdout
        start, seconds = time.monotonic(), self._limits.seconds
        killer = Timer(seconds, self._child.kill) if seconds else None
        if killer:
            killer.start()
        try:
            print(json.dumps({"do": do, **request}), file=self._child.stdin, flush=True)
            line = self._child.stdout.readline()
        except OSError:  # a broken pipe, which Windows calls an invalid argument
            line = ""
        finally:
            if killer:
                killer.cancel()
        if not line:
            if seconds and time.monotonic() - start >= seconds:
                raise BackendError(f"{self.side} took more than {seconds:g} s when asked to {do}")
            status = self._child.wait()
            self._errors.seek(0)
            last = (self._errors.read().strip().splitlines() or ["nothing was printed"])[-1]
            raise BackendError(f"{self.side} ended with {status_text(status)} when asked to {do}: {last}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BackendError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process. May be called twice."""
        self._child.kill()
        with contextlib.suppress(BrokenPipeError), self._child:
            pass
        self._errors.close()


class Contestant:
    """A side, and its measurements so far. `options` are arguments of its worker, or of a peer's class. Each run but
    the first comes after `work` seconds of other work.
    """

    def __init__(
        self,
        task: BenchTask,
        side: str,
        threads: int | None = None,
        options: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Clock = "wall",
        command: Sequence[str] = SERVER,
        work: float = 0.0,
    ) -> None:
        self.timing, self._work = Timing(task.name, side, threads), work
        self._task, self._process, self._clock = task, Process(side, limits, environment, command), clock
        self._options: Mapping[str, Any] = {**(options or {}), **({} if threads is None else {"threads": threads})}
        self._burst = 1
        self._rounds: list[dict[Clock, float]] = []

    def prepare(self) -> None:
        """Open the model, measure the load, the first inference and the first with a new shape, and warm up."""
        task, ask = self._task, self._process.ask
        path = task.ours if self.timing.threads is None else task.peers
        load = ask("open", side=self.timing.side, model=str(path), **self._options)["seconds"]
        first = self._run(task.feed, 1)
        steady, begin = self._run(task.feed, 2, self._work), time.perf_counter()
        while time.perf_counter() - begin < WARM_UP_SECONDS:
            steady = self._run(task.feed, 3, self._work)
        new_shape = self._run(task.new_feed, 1) if task.new_feed else None
        self._burst = max(1, min(200, round(BURST_SECONDS / steady[self._clock]))) if not self._work else FRAMES
        cpu = {"first": first["cpu"], "steady": steady["cpu"], **({"new_shape": new_shape["cpu"]} if new_shape else {})}
        self.timing = replace(
            self.timing,
            load=load,
            first=first[self._clock],
            new_shape=new_shape[self._clock] if new_shape else None,
            steady=steady[self._clock],
            cpu=cpu,
        )

    def round(self) -> None:
        """Run one burst of inferences."""
        time.sleep(PAUSE_SECONDS)
        self._rounds.append(self._run(self._task.feed, self._burst, self._work))
        rounds = tuple(found[self._clock] for found in self._rounds)
        cpu = {**self.timing.cpu, "steady": median(found["cpu"] for found in self._rounds)}
        self.timing = replace(self.timing, rounds=rounds, steady=median(rounds), cpu=cpu)

    def finish(self) -> None:
        """Measure the peak memory."""
        self.timing = replace(self.timing, memory=self._process.ask("memory")["peak"])

    def outputs(self, folder: Path) -> list[Any]:
        """Return the outputs for the task's inputs."""
        path = folder / f"{self.timing.side}.npz"
        self._process.ask("save", feed=str(self._task.feed), path=str(path))
        with np.load(path) as arrays:
            return list(arrays.values())

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Ask the process for more. Raises BackendError."""
        return self._process.ask(do, **request)

    def attempt(self, step: Callable[[], None]) -> bool:
        """Run a step, and return whether the side is still without error. A failed step ends the process, and its error
        becomes the result.
        """
        if self.timing.error is None:
            try:
                step()
            except PerframeError as error:
                self.timing = Timing(self.timing.model, self.timing.side, self.timing.threads, error=str(error))
                self.close()
        return self.timing.error is None

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _run(self, feed: Path, times: int, work: float = 0.0) -> dict[Clock, float]:
        """Run some inferences, each after `work` seconds of other work; the median of their times by each clock."""
        answer = self._process.ask("run", feed=str(feed), times=times, work=work)
        return {"wall": median(answer["wall"]), "cpu": median(answer["cpu"])}
