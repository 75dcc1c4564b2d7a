"""The pages show the packages as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "runtime" / "perframe"
MOST = 5  # files at the top of the package
NAMED = re.compile(r"`([a-z_][\w/]*\.(?:py|glsl))`(?!:\n\n```)")  # but for a file whose text follows


def test_the_drawing_shows_the_imports() -> None:
    done = subprocess.run(
        [sys.executable, "tools/draw_packages.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_little_lies_at_the_top() -> None:
    assert len([path for path in PACKAGE.iterdir() if path.suffix == ".py" and path.stem != "__main__"]) <= MOST


def test_files_named_in_pages_exist() -> None:
    """From the root, the package, its tests, or (in tables of kernels) the CPU backend."""
    homes = (ROOT, PACKAGE, PACKAGE / "backends" / "cpu")
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {(page.name, name) for page in pages for name in NAMED.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 50
    assert not sorted(one for one in named if not any((home / one[1]).exists() for home in homes))
