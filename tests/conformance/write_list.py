"""Writes what all cases do on all backends: not_passed.txt, not_strict.txt, docs/conformance.md and docs/operators.md.

`python tests/conformance/write_list.py`, with tests/ on the path: some five minutes.
"""

from __future__ import annotations

import logging
import re
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

import perframe as pf
from conformance.suite import KINDS, Case, all_cases, not_passed, run, write_list
from perframe.backends import gl_dtypes
from perframe.importers.operators import markdown, operators
from perframe.ir.declaration import registry

BACKENDS = ("cpu", "gpu_compute", "gpu_pixel")
SECONDS = 60
DOCS = Path(__file__).resolve().parents[2] / "docs"
REFUSAL = re.compile(r"layer '.*' \((?P<op>\w+)\) cannot run on \w+: (?P<why>.*); without strict")
DTYPE = re.compile(r"'.*' is (?P<dtype>\w+), and the GPU holds")

Found = dict[str, dict[str, str]]  # backend to case to reason


def measure() -> tuple[Found, Found]:
    """The cases that fail, and those that a strict worker refuses, by backend."""
    failing: Found = {backend: {} for backend in BACKENDS}
    refused: Found = {backend: {} for backend in BACKENDS[1:]}
    for backend in BACKENDS:
        for case in all_cases():
            signal.alarm(SECONDS)
            try:
                _try(case, backend, refused)
            except Exception as error:  # any failure is listed
                failing[backend][case.name] = said(case, error)
            finally:
                signal.alarm(0)
    return failing, refused


def _try(case: Case, backend: str, refused: Found) -> None:
    try:
        run(case, backend, None, strict=backend != "cpu")
    except pf.FallbackError as error:
        refused[backend][case.name] = shortened(str(error))
        run(case, backend, None)


def shortened(refusal: str) -> str:
    """Shorten a strict worker's refusal to the operator and the dtype or reason without a kernel."""
    found = REFUSAL.search(refusal)
    if found is None:
        return refusal
    dtype = DTYPE.match(found["why"])
    return f"{found['op']}: {dtype['dtype'] if dtype else re.sub(r'[0-9]+', 'N', found['why'])}"


def said(case: Any, error: Exception) -> str:
    """A reason to group by: the present list's reason, the missing operators, or the error."""
    kept = {reason for (_, name), reason in not_passed().items() if name == case.name}
    if kept:
        return kept.pop()
    problems = getattr(error, "problems", None)
    if problems:
        names = sorted({f"{p.domain + '::' if p.domain else ''}{p.operator}" for p in problems})
        return f"not supported: {', '.join(names)}"
    names = ", ".join(sorted({node.op_type for node in case.model.graph.node}))
    return f"{type(error).__name__} in {names}"


# --- docs/conformance.md ---


def report(failing: Found, refused: Found) -> str:
    """The counts as a page of the docs."""
    total, nodes = len(all_cases()), sum(is_node(case) for case in all_cases())
    between = {case.name for case in all_cases() if runs_between_plans(case)}
    lines = [
        "# Conformance",
        "",
        "ONNX ships test cases for backends. A case passes if all values, shapes and dtypes match, within its",
        "tolerance. A strict worker refuses a model if any layer would run on the CPU. The script",
        "`tests/conformance/write_list.py` writes this page and the lists in `tests/conformance/`. The tests check",
        "every case against them.",
        "",
        f"onnx {onnx.__version__}; {total} cases, {nodes} of them with a single node.",
        "",
        "| backend | pass | pass strictly | single nodes, strictly | of these, with a layer between plans |",
        "|---|---|---|---|---|",
    ]
    for backend in BACKENDS:
        bad = failing[backend]
        strictly = [case for case in all_cases() if case.name not in {**bad, **refused.get(backend, {})}]
        of_nodes = [case for case in strictly if is_node(case)]
        beside = sum(case.name in between for case in of_nodes)
        counts = (f"{total - len(bad)} of {total}", len(strictly), f"{len(of_nodes)} of {nodes}", beside)
        lines.append(f"| {backend} | {' | '.join(map(str, counts if backend != 'cpu' else (counts[0], *'–––')))} |")
    lines += [
        "",
        "Layers whose output shape depends on data run between plans, on the host. Control flow also runs between",
        "plans, and its bodies run on the backend.",
        "",
        "## What a strict worker refuses",
        "",
        "Cases by the family of the first refused layer, with the dtypes that have no kernels, or another reason.",
        "",
        f"| family | {' | '.join(BACKENDS[1:])} | reason |",
        "|---|---|---|---|",
    ]
    by_family = {backend: Counter(map(family_of, reasons.values())) for backend, reasons in refused.items()}
    for family in sorted({family for counts in by_family.values() for family in counts}):
        numbers = " | ".join(str(by_family[backend][family]) for backend in refused)
        lines.append(f"| {family} | {numbers} | {_reasons(family, refused)} |")
    lines += ["", "## What fails", "", "Listed in `tests/conformance/not_passed.txt`:", ""]
    lines += [f"- {backend}: {len(found)}" for backend, found in failing.items()]
    return "\n".join([*lines, ""])


def is_node(case: Case) -> bool:
    """Whether it is a case of one operator."""
    return bool(case.case.kind == KINDS[0])


def runs_between_plans(case: Case) -> bool:
    """Whether a layer of it runs on the host between two plans; a model that cannot be loaded has none."""
    try:
        return any(layer.declaration.on_host for layer in pf.load(case.model).layers)
    except pf.PerframeError:
        return False


def family_of(reason: str) -> str:
    """The family of the operator that a reason begins with."""
    entry = registry().get(reason.split(":")[0])
    return "" if entry is None else entry.family


def _reasons(family: str, refused: Mapping[str, Mapping[str, str]]) -> str:
    """The dtypes and reasons without kernels of a family's layers, the most frequent first."""
    counts = Counter(
        reason.partition(": ")[2]
        for reasons in refused.values()
        for reason in reasons.values()
        if family_of(reason) == family
    )
    return "; ".join(why for why, _ in counts.most_common())


def main() -> None:
    logging.getLogger("perframe").setLevel(logging.ERROR)  # fallbacks are counted, not told
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("too slow")))
    failing, refused = measure()
    pages = {"conformance.md": report(failing, refused), "operators.md": markdown(operators(gl_dtypes))}
    write_list("not_passed.txt", failing)
    write_list("not_strict.txt", refused)
    for name, text in pages.items():
        (DOCS / name).write_text(text, encoding="utf-8")
    for backend, found in failing.items():
        strict = f", {len(refused[backend])} refused strictly" if backend in refused else ""
        print(f"{backend}: {len(all_cases()) - len(found)}/{len(all_cases())}{strict}")


if __name__ == "__main__":
    main()
