"""Writes not_passed.txt from a run on all backends; `python tests/conformance/write_list.py`, tests/ on the path."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from conformance.suite import all_cases, not_passed
from conformance.test_conformance import run

BACKENDS = ("cpu", "gpu_compute", "gpu_pixel")
SECONDS = 60


def failures(backend: str) -> dict[str, str]:
    """The cases that fail, with the kind of their failure."""
    found = {}
    for case in all_cases():
        signal.alarm(SECONDS)
        try:
            run(case, backend, None)
        except Exception as error:  # any failure is listed
            found[case.name] = said(case, error)
        finally:
            signal.alarm(0)
    return found


def said(case: Any, error: Exception) -> str:
    """A reason to group by: the operators that are missing, or what differs."""
    problems = getattr(error, "problems", None)
    if problems:
        names = sorted({f"{p.domain + '::' if p.domain else ''}{p.operator}" for p in problems})
        return f"not supported: {', '.join(names)}"
    operators = ", ".join(sorted({node.op_type for node in case.model.graph.node}))
    kept = {reason for (_, name), reason in not_passed().items() if name == case.name}
    return kept.pop() if kept else f"{type(error).__name__} in {operators}"


def main() -> None:
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("too slow")))
    by_backend = {backend: failures(backend) for backend in BACKENDS}
    common = set.intersection(*(set(found) for found in by_backend.values()))
    sections = {"all": {name: by_backend["cpu"][name] for name in common}}
    sections |= {b: {n: why for n, why in found.items() if n not in common} for b, found in by_backend.items()}
    lines: list[str] = []
    for backend, found in sections.items():
        if not found:
            continue
        lines.append(f"[{backend}]")
        for reason in sorted(set(found.values())):
            lines += [f"# {reason}", *sorted(name for name, why in found.items() if why == reason)]
        lines.append("")
    target = Path(__file__).parent / "not_passed.txt"
    target.write_text("\n".join(lines), encoding="utf-8")
    for backend, found in by_backend.items():
        print(f"{backend}: {len(all_cases()) - len(found)}/{len(all_cases())}")


if __name__ == "__main__":
    main()
