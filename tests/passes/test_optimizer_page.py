"""docs/optimizer.md lists every pass, in its own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from perframe.passes import PASSES, PREPARATIONS, module_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "optimizer.md"


@pytest.mark.parametrize("name", sorted({*PASSES, *(name for names in PREPARATIONS.values() for name in names)}))
def test_the_page_has_each_pass(name: str) -> None:
    said = (module_of(name).__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
    when = [
        *(["load"] if name in PASSES else []),
        *(["CPU"] if name in PREPARATIONS["cpu"] else []),
        *(["GL"] if name in PREPARATIONS["gpu_compute"] else []),
    ]
    assert f"| `{name}` | {', '.join(when)} | {said} |" in PAGE.read_text()
