"""One self-contained page of HTML, filled from a template. It loads nothing from elsewhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perframe.safety.names import shown


def filled(template: Path, title: str, data: Mapping[str, Any], **texts: str) -> str:
    """Fill the places %TITLE%, %DATA% (as JSON) and the names of `texts` (such as %STYLE%) in a template."""
    values = {
        "TITLE": html.escape(shown(title)),
        "DATA": json.dumps(data, separators=(",", ":"), allow_nan=False, default=str).replace("<", "\\u003c"),
        **texts,
    }
    split = re.split("%([A-Z]+)%", read(template))
    return "".join(values[text] if index % 2 else text for index, text in enumerate(split))


def read(path: Path) -> str:
    """The text of a template, a style sheet or a script."""
    return path.read_text(encoding="utf-8")
