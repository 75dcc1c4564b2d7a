"""ONNX's own cases on every backend, strict on the GPU. The lists beside say which fail, and which are refused.

What not_passed.txt lists must fail (or, where that is because numbers are random, be right in shape and dtype), and
what not_strict.txt lists must be refused by a strict worker and pass with the CPU's help: a case that does better is
taken off its list, by write_list.py.
"""

from __future__ import annotations

from typing import Any

import pytest

import perframe as pf
from conformance.suite import RANDOM, Case, all_cases, not_passed, not_strict, run


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_conformance(case: Case, backend: str, backend_context: Any) -> None:
    failing, refused = (listed().get(("all", case.name)) or listed().get((backend, case.name)) for listed in LISTS)
    if backend == "cpu":
        refused = None
    if failing == RANDOM:  # which may be the expected ones by chance
        run(case, backend, backend_context, values=False)
        return
    if failing is not None:
        with pytest.raises(Exception):  # noqa: B017, the list has its reason
            run(case, backend, backend_context)
        return
    if refused is not None:
        with pytest.raises(pf.FallbackError):
            run(case, backend, backend_context, strict=True)
    run(case, backend, backend_context, strict=backend != "cpu" and refused is None)


LISTS = (not_passed, not_strict)
