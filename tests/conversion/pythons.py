"""Pythons that have PyTorch, TensorFlow or scikit-learn, and files that they write."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from perframe.conversion.environments import MODULES, clean_environment, environments_folder

HERE = Path(__file__).parent


def python_with(framework: str) -> Path | None:
    """A Python that has a framework: this one, that of PERFRAME_TORCH_PYTHON (or _TENSORFLOW_, _SKLEARN_), or one in
    the cache folder that `perframe convert` has made.
    """
    if all(find_spec(name) for name in MODULES[framework]):
        return Path(sys.executable)
    named = os.environ.get(f"PERFRAME_{framework.upper()}_PYTHON")
    if named:
        return Path(named)
    return next(iter(sorted(environments_folder().glob(f"{framework}-*/bin/python"))), None)


def write_files(framework: str, python: Path, folder: Path) -> None:
    """Let a framework write the files of the tests."""
    script = HERE / f"write_{framework}_files.py"
    environment = dict(os.environ) if python == Path(sys.executable) else clean_environment()
    done = subprocess.run([python, script, folder], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
