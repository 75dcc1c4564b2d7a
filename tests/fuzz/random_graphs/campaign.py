"""Many random graphs in processes that may die or hang."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.campaign import Settings, results

FAILURES = ("wrong", "untyped", "refused", "signal", "hang", "memory")


@dataclass
class Report:
    """How many graphs ended how, and the lines about those that failed."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)

    def table(self) -> str:
        """One line an outcome."""
        lines = [f"{self.counts[kind]:8}  {kind}" for kind in (*FAILURES, "ok")]
        return "\n".join([*lines, f"{self.counts.total():8}  graphs"])


def campaign(
    count: int,
    settings: Settings,
    jobs: int = 1,
    first: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """Judge `count` graphs."""
    report, began = Report(), time.monotonic()
    for word, outcome in results((str(n) for n in range(first, first + count)), settings, Path(), jobs):
        report.counts[outcome.kind] += 1
        if outcome.kind in FAILURES:
            report.failures.append((int(word), outcome.kind, outcome.detail))
            say(f"{outcome.kind} {settings.campaign}-{word}: {outcome.detail}\n")
        total = report.counts.total()
        if total % 100 == 0:
            say(f"{total} graphs, {total / (time.monotonic() - began):.1f} a second: {dict(report.counts)}")
    return report
