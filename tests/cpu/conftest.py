from __future__ import annotations

from pathlib import Path

import pytest

from perframe.backends.cpu.compile import jit
from under_way import finish_jobs


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for kernels of an empty cache, and a process that has linked nothing."""
    finish_jobs()
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path / "cache"))
    jit.kernel.cache_clear()
    return tmp_path / "cache" / "kernels"
