"""Runs many cases in processes that may die, and collects their outcomes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz import cases, seeds
from fuzz.outcome import FAILURES, OUTCOMES, Outcome
from fuzz.own_files import FORMATS, case_of

TESTS = Path(__file__).resolve().parents[1]
ADDRESSES = 8 << 30  # bytes that a child may map
RESIDENT = 2 << 30  # bytes that it may use
START = 120.0  # seconds within which a child is ready
PATIENCE = 5.0  # seconds for onnxruntime, after perframe has run a case
SHRINKING = 120.0  # seconds to make a random graph smaller


@dataclass
class Settings:
    """A campaign's number, backend and format of files, and when a case has taken too long."""

    campaign: int = 0
    backend: str = "cpu"
    seconds: float = 60.0
    environment: dict[str, str] = field(default_factory=dict)
    format: str = "onnx"  # or litert or sentis, or one of `own_files.FORMATS`
    halves: bool = False  # whether a GPU keeps weights, and values between layers, in float16
    graphs: bool = False  # whether the cases are random valid graphs
    save: Path | None = None  # for graphs: a folder for those that fail


class Child:
    """One process that runs one case after the other."""

    def __init__(self, stored: Path, settings: Settings) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as the child
        environment = {"PERFRAME_MAX_TENSOR_BYTES": str(64 << 20), **os.environ, **settings.environment}
        paths = [str(TESTS), str(TESTS.parent / "runtime"), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        precision = "float16" if settings.halves else "float32"
        arguments = [str(stored), str(settings.campaign), settings.backend, str(ADDRESSES), precision]
        module = "fuzz.child"
        if settings.graphs:
            module = "fuzz.random_graphs.child"
            arguments = [str(settings.campaign), settings.backend, str(ADDRESSES), str(settings.save or "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            bufsize=0,
        )
        self.case: int | str | None = None
        self._since, self._known, self._ready = time.monotonic(), Outcome("ran"), False
        self._seconds, self._rest = settings.seconds, b""
        self._patience = SHRINKING if settings.graphs else PATIENCE

    @property
    def pipe(self) -> Any:
        """The pipe through which it answers."""
        return self._process.stdout

    def begin(self, case: int | str) -> None:
        """Let it run a case."""
        self.case, self._since, self._known = case, time.monotonic(), Outcome("")
        self._log.seek(0)
        self._log.truncate()
        with contextlib.suppress(BrokenPipeError):  # it died between two cases, which `answer` sees
            self._process.stdin.write(f"{case}\n".encode())  # type: ignore[union-attr]

    def answer(self) -> Outcome | None:
        """After its pipe has something: the case's outcome, or None where that is not yet known."""
        data = os.read(self.pipe.fileno(), 1 << 16)  # not through a file that would keep a second line to itself
        if not data:
            return self._died()
        *lines, self._rest = (self._rest + data).split(b"\n")
        final = None
        for line in lines:
            kind, *rest = json.loads(line)
            if kind == "ready":
                self._ready = True
                continue
            self._known, self._since = Outcome(kind, rest[0]), time.monotonic()
            final = self._known if rest[1] else None
        return final

    def _died(self) -> Outcome:
        code = self._process.wait()
        if self._known.kind:  # onnxruntime did
            return self._known
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return Outcome("signal", f"{name} {self._tail()}")

    def _tail(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-1500:]

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def overdue(self) -> Outcome | None:
        """End the process if it is too slow or too large, and return the outcome; else None."""
        taken = time.monotonic() - self._since
        limit = self._patience if self._known.kind else self._seconds if self._ready else START
        found = None
        if taken > limit:
            found = self._known if self._known.kind else Outcome("hang", f"{taken:.0f} s {self._place()}")
        elif self._resident() > RESIDENT:
            found = Outcome("memory", f"{self._resident() >> 20} MiB")
        if found is not None:
            self.end()
        return found

    def _place(self) -> str:
        """Where it hangs."""
        self._process.send_signal(signal.SIGUSR1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        return self._tail()

    def _resident(self) -> int:
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1])
        except (OSError, IndexError, ValueError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(OSError):
                file.close()  # type: ignore[union-attr]


def results(
    numbers: Iterable[int | str], settings: Settings, stored: Path, jobs: int = 1
) -> Iterator[tuple[Any, Outcome]]:
    """Every case with its outcome, in the order in which they end."""
    waiting = iter(numbers)
    children: list[Child] = []
    try:
        while True:
            for child in [c for c in children if c.case is None]:
                case = next(waiting, None)
                if case is None:
                    children.remove(child)
                    child.end()
                else:
                    child.begin(case)
            while len(children) < jobs and (case := next(waiting, None)) is not None:
                children.append(Child(stored, settings))
                children[-1].begin(case)
            if not children:
                return
            ready, _, _ = select.select([child.pipe for child in children], [], [], 0.5)
            for child in list(children):
                outcome = child.answer() if child.pipe in ready else child.overdue()
                if outcome is not None:
                    yield child.case, outcome
                    child.case = None
                    if not child.alive or outcome.kind in ("signal", "hang"):
                        children.remove(child)
                        child.end()
    finally:
        for child in children:
            child.end()


@dataclass
class Report:
    """How many cases ended how, and those that failed."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[cases.Case, Outcome]] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)

    def table(self) -> str:
        """One line an outcome."""
        lines = [f"{self.counts[kind]:8}  {kind}" for kind in OUTCOMES]
        return "\n".join([*lines, f"{self.counts.total():8}  cases"])


def campaign(
    count: int,
    settings: Settings,
    jobs: int = 1,
    first: int = 0,
    save: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """Run `count` cases. Save and report those that fail."""
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        stored = Path(folder) / "seeds"
        own = settings.format in FORMATS  # made of ONNX models
        seeds.write(stored, "onnx" if own else settings.format)
        known = seeds.read(stored)
        words = (f"{settings.format}:{n}" if own else str(n) for n in range(first, first + count))
        for word, outcome in results(words, settings, stored, jobs):
            report.counts[outcome.kind] += 1
            if outcome.kind == "explained":
                report.explained[outcome.detail.partition(" | ")[0]] += 1
            if outcome.kind in FAILURES:
                case = case_of(known, settings.campaign, word)
                report.failures.append((case, outcome))
                if save is not None:
                    path = case.save(save)
                    text = "\n".join((outcome.kind, *case.done, "", outcome.detail))
                    path.with_suffix(".txt").write_text(text, encoding="utf-8")
                say(f"{outcome.kind} {case.name}\n  {outcome.detail}\n  " + "\n  ".join(case.done))
            if report.counts.total() % 1000 == 0:
                say(f"{report.counts.total()} cases: {dict(report.counts)}")
    return report
