"""Counts the kernels and programs that are compiling, for the watchdog and the progress bar: the frame loop knows no
backend.
"""

from __future__ import annotations

from time import monotonic, perf_counter

from perframe.safety.records import dataclass


@dataclass
class KernelsCompiling:
    """Kernels in one spell of compiling: requested and compiled ones, and the begin by `time.monotonic`."""

    requested: int = 0
    compiled: int = 0
    began: float = 0.0

    @property
    def is_under_way(self) -> bool:
        """Whether any kernel is missing."""
        return self.compiled < self.requested

    @property
    def share(self) -> float:
        """The compiled share, from 0 to 1."""
        return self.compiled / self.requested if self.requested else 1.0

    @property
    def seconds(self) -> float:
        """Seconds since the spell began."""
        return monotonic() - self.began

    def begin(self) -> None:
        """One more kernel is requested. If none was missing, another spell begins."""
        if not self.is_under_way:
            self.requested, self.compiled, self.began = 0, 0, monotonic()
        self.requested += 1

    def end(self) -> None:
        """One more kernel is compiled, or cannot be."""
        self.compiled += 1

    def forget(self) -> None:
        """Forget all kernels, in a forked child: its parent compiles them."""
        self.requested = self.compiled = 0

    def __str__(self) -> str:
        return f"{self.compiled} of {self.requested} kernels are compiled after {self.seconds:.0f} s"


compiling = KernelsCompiling()  # of this process; the lock of the compilers guards it


@dataclass
class ProgramsCompiling:
    """GL programs that a driver had to compile, and when the last one began, by `time.perf_counter`. No driver says
    when it has ended: some compile a program when it first runs.
    """

    count: int = 0
    began: float = 0.0

    def begin(self) -> None:
        """The driver begins to compile one more."""
        self.count, self.began = self.count + 1, perf_counter()


programs = ProgramsCompiling()  # of all contexts of this process
