"""A worker that is made while the process exits runs, and nothing is printed on stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, sys
import numpy as np
import perframe as pf


def late() -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (1, 3, "h", "w"), "x")
    worker = pf.Worker(graph.compile(y=x * 2 + 1), backend=sys.argv[1])
    worker.schedule(np.ones((1, 3, 8, 8), np.float32))
    print(worker.peek_output().download_to_array().max())


atexit.register(late)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("gl_context")
def test_a_worker_made_at_exit(backend: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), backend]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for _ in range(2):  # with a cold cache, and then with the kernels on disk
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert (done.returncode, done.stdout, done.stderr) == (0, "3.0\n", "")
