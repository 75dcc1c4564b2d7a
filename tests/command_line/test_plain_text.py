"""Output where the encoding lacks our signs, as on Windows, whose files and pipes are cp1252."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from perframe.command_line.commands import doctor
from perframe.command_line.commands.doctor import Check
from perframe.command_line.terminal import let_print


def file_of(encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_signs_that_an_encoding_lacks_become_plain_ones(encoding: str) -> None:
    file = file_of(encoding)
    let_print([file])
    checks = [Check("Python", "ok", "3.13"), Check("GL", "missing", "no", "install a driver"), Check("面", "note", "…")]
    doctor.show(checks, Console(file=file, width=80))
    file.flush()
    text = file.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    rows = [line.split() for line in text.splitlines()]
    ok, missing, arrow = ("✓", "✗", "→") if encoding == "utf-8" else ("+", "x", "->")
    assert rows[0] == [ok, "Python", "3.13"] and rows[1] == [missing, "GL", "no"]
    assert rows[2] == [arrow, "install", "a", "driver"]
    assert rows[3] == {"cp1252": ["–", "?", "…"], "ascii": ["-", "?", "..."], "utf-8": ["–", "面", "…"]}[encoding]


def test_the_command_line_prints_everywhere() -> None:
    """A file of that name is missing, and the error names it."""
    command = [sys.executable, "-m", "perframe.command_line.cli", "inspect", "面→.onnx"]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 1 and "?->.onnx" in done.stderr.decode("cp1252")
