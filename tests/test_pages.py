"""The Python programs of pages that need no file of the reader's run from their first line to their last.

Each prints a line or draws a picture. A program that limits memory runs in a new process: its limit counts all that a
process holds. Where a block of text follows, it is what the program prints. The commands that
pages show exist, with their options.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

import perframe as pf
from fresh import run_fresh

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = (
    "budgets.md",
    "glsl.md",
    "gpu.md",
    "host.md",
    "media.md",
    "process.md",
    "profile.md",
    "recipes/from-onnxruntime.md",
    "recipes/run-your-own-jobs.md",
    "sentis.md",
    "start.md",
    "tracking.md",
    "tutorial.md",
)
SILENT = {"gpu.md"}
ELSEWHERE = re.compile("spout:|syphon:")  # of other systems: tests/textures/test_other_programs.py runs these programs
FEW_FRAMES, MANY_FRAMES = 20, 5000  # of a window that a user would close, with a result or without
MANY_SECONDS = 30
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.S | re.M)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.S | re.M)


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


PROGRAMS = [
    pytest.param(page, *found, id=f"{page}-{index}")
    for page in PAGES
    for index, found in enumerate(BLOCK.findall(text_of(page)))
    if not ELSEWHERE.search(found[0])
]


@pytest.mark.parametrize(("page", "program", "shown"), PROGRAMS)
def test_a_program_runs(
    page: str, program: str, shown: str, gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed, run, begin = io.StringIO(), pf.App.run, time.monotonic()

    def closes(app: pf.App, frame: pf.Frame) -> None:
        shows = bool(printed.getvalue()) or "screenshot" in program
        waits = page not in SILENT and time.monotonic() < begin + MANY_SECONDS  # a busy machine makes few results
        if frame.index >= (FEW_FRAMES if shows else MANY_FRAMES) and (shows or not waits):
            app.quit()

    def ends(self: pf.App, *scripts: Any, frames: int | None = None) -> None:
        """Run, and close the window if nothing else does."""
        run(self, *scripts, *([closes] if frames is None else []), frames=frames)

    monkeypatch.setattr(pf.App, "run", ends)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISPLAY", raising=False)
    if "MemoryLimit(" in program:
        printed.write(run_fresh(program))
    else:
        with contextlib.redirect_stdout(printed):
            exec(compile(program, page, "exec"), {"__name__": "__main__"})
    if shown:
        assert printed.getvalue() == shown
    assert page in SILENT or printed.getvalue() or list(tmp_path.glob("*.png"))


def test_there_are_programs() -> None:
    assert {page for page, *_ in (one.values for one in PROGRAMS)} == set(PAGES)


def shown_commands() -> list[Any]:
    """The commands of perframe in all pages, each with the name of its page."""
    found = []
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        for block in COMMANDS.findall(path.read_text(encoding="utf-8")):
            for line in re.sub(r"\\\n", " ", block).splitlines():
                if line.startswith("perframe "):
                    found.append(pytest.param(line, id=f"{path.stem}: {line[:40]}"))
    return found


@pytest.mark.parametrize("line", shown_commands())
def test_a_command_exists(line: str) -> None:
    from perframe.command_line.cli import COMMANDS, built

    _, name, *words = shlex.split(line, comments=True)
    assert name in COMMANDS, name
    known = {option for parameter in built(name).params for option in parameter.opts}
    if name != "demo":  # its options are those of the demo
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known
