"""The programs of docs/vision.md run one after the other, and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "vision.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.S | re.M)


def test_the_programs_print_what_the_page_shows(gl_context: Any) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    assert len(PROGRAMS) == PAGE.count("```python") == 2
    for program, shown in PROGRAMS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, "vision.md", "exec"), names)
        assert printed.getvalue() == shown
