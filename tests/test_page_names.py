"""Texts name pages by their titles: an installed wheel has no folder `docs`."""

from __future__ import annotations

import re
from pathlib import Path

import perframe

PACKAGE = Path(perframe.__file__).parent
TOOLS = {"importers/operators.py", "importers/litert/operators.py"}  # they write pages into a checkout


def test_texts_name_no_file_of_a_checkout() -> None:
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert len(texts) > 500
    assert not [name for name, text in texts.items() if name not in TOOLS and re.search(r"docs/\S+\.md", text)]
