"""The Python programs of pages that need no file of the reader's run from their first line to their last."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (
    "budgets.md",
    "gpu.md",
    "host.md",
    "index.md",
    "media.md",
    "process.md",
    "profile.md",
    "recipes/from-onnxruntime.md",
)
STORIES = ("start.md", "tutorial.md")  # a program reads the files of those before it


def programs(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.S | re.M)


def run(program: str, page: str) -> None:
    exec(compile(program, page, "exec"), {"__name__": "__main__"})


PROGRAMS = [pytest.param(text, id=f"{page}-{index}") for page in PAGES for index, text in enumerate(programs(page))]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program: str, gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(program, "page")


@pytest.mark.parametrize("page", STORIES)
def test_a_story_runs(page: str, gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISPLAY", raising=False)
    found = programs(page)
    for index, program in enumerate(found):
        run(program, f"{page}, program {index}")
    assert len(found) == {"start.md": 3, "tutorial.md": 6}[page]


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 16
