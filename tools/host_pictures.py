"""Draws docs/pictures/script-error.png: what a window shows when a script fails, here that of docs/host.md.

`python tools/host_pictures.py`. The picture is the project's own.
"""

from __future__ import annotations

import re
import runpy
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

import perframe as pf

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE = DOCS / "pictures" / "script-error.png"


def program() -> str:
    """The program under the heading "Errors"."""
    found = re.search(r"^## Errors\n.*?```python\n(.*?)```", (DOCS / "host.md").read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


class App(pf.App):
    """An app that takes a picture after the second frame of the error."""

    def loop_once(self) -> pf.Frame:
        frame = super().loop_once()
        if frame.index == 3:
            self.screenshot(PICTURE)
        return frame


def draw() -> None:
    """Run the program, in a file of the name that the page gives it."""
    ours: Any = pf
    ours.App = App
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "demo.py"
        file.write_text(program())
        runpy.run_path(str(file))


if __name__ == "__main__":
    draw()
    Image.open(PICTURE).quantize(96).save(PICTURE, optimize=True)
