"""The short scripts run from their first line to their last, and say something."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "demos" / "scripts").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(
    script: Path, gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if script.stem == "compute_shader" and gl_context.version_code < 430:
        pytest.skip("compute shaders need GL 4.3")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert 15 <= len(script.read_text(encoding="utf-8").splitlines()) <= 60


def test_there_is_a_script_for_each_sample() -> None:
    assert len(SCRIPTS) >= 12
