"""The examples of pages and demos have types: both checkers find what is wrong, at its line of the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = """A page.

```python
import numpy as np

import perframe as pf

picture = np.zeros((1, 3, 4, 4), np.float32)

def shown(values: pf.Tensor) -> int:
    return len(values.shape)
```

The next block uses names of the first:

```python
with pf.Worker("painter", backend="auto") as worker:
    output = worker.schedule(picture).peek_output()
print(shown(output), np.sum(output.numpy()))
```
"""


def check(folder: Path, text: str) -> tuple[int, str]:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    command = [sys.executable, "tools/check_programs.py", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_later_blocks_use_names_of_earlier_ones(tmp_path: Path) -> None:
    assert check(tmp_path, PAGE) == (0, "2 programs, 0 errors\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        ("shown(output)", "shown(3)", 19),
        ('"auto"', '"gpu"', 17),
        ("output.numpy()", "output.nmupy()", 19),
        ("len(values.shape)", "str(values)", 11),
        ("(picture)", "(pictured)", 18),
    ],
)
def test_a_wrong_type_is_found_by_both(right: str, wrong: str, line: int, tmp_path: Path) -> None:
    status, output = check(tmp_path, PAGE.replace(right, wrong))
    found = [one for one in output.splitlines() if f"page.md:{line}:" in one and " error: " in one]
    assert status == 1 and len(found) >= 2, output
    assert any("(mypy)" in one for one in found) and "(pyright)" in output


PACKAGE = """Two files.

`mine/layers.py`:

```python
import perframe as pf

@pf.layers.layer(domain="mine")
def Same(x):
    return x

COUNT = 3
```

`use.py`:

```python
from mine.layers import COUNT

print(COUNT + 1)
```
"""


@pytest.mark.slow
def test_blocks_with_a_path_are_files_of_a_package(tmp_path: Path) -> None:
    assert check(tmp_path, PACKAGE) == (0, "2 programs, 0 errors\n")
    status, output = check(tmp_path, PACKAGE.replace("COUNT + 1", 'COUNT + "1"'))
    assert status == 1 and output.count("page.md:20: error:") == 2, output
