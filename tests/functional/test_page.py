"""The programs of docs/functional.md print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from support import unavailable

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "functional.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.S | re.M)


def test_the_programs_print_what_the_page_shows(gl_context: Any) -> None:
    if gl_context.version_code < 430:
        unavailable("the page shows all backends, and gpu_compute needs GL 4.3")
    assert len(PROGRAMS) == 3
    names: dict[str, Any] = {}
    for program, shown in PROGRAMS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, "functional.md", "exec"), names)
        assert printed.getvalue().strip() == shown.strip()
