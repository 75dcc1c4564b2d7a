"""The Python programs of pages that need no file of the reader's run from their first line to their last."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("budgets.md", "gpu.md", "host.md", "media.md", "process.md", "profile.md")
PROGRAMS = [
    pytest.param(program, id=f"{page}-{index}")
    for page in PAGES
    for index, program in enumerate(
        re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.S | re.M)
    )
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program: str, gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "page", "exec"), {"__name__": "__main__"})


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 14
