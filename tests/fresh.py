"""Runs code in a new process, as a user's first program runs it."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support import unavailable

SECONDS_TO_START = 20
SECONDS_TO_RUN = 120


def run_fresh(code: str, *arguments: str, seconds: float = SECONDS_TO_RUN, **environment: str) -> str:
    """Run the code in a new interpreter, and return what it prints. If it fails or takes longer, fail with its output.

    It finds modules where this process does. Its `sys.argv` has the arguments.
    """
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-c", code, *arguments]
    settings: Any = {"capture_output": True, "text": True, "timeout": seconds}
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths, **environment}, **settings)
    output: str = done.stdout
    assert done.returncode == 0, f"it ended with {done.returncode}:\n{output}{done.stderr}"
    return output


@contextmanager
def virtual_screen() -> Iterator[str]:
    """The name of a display that shows nothing, for windows; in CI it must be there."""
    if shutil.which("Xvfb") is None:
        unavailable("Xvfb is not installed; try: apt-get install xvfb")
    reader, writer = os.pipe()
    command = ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1024x768x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[writer], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], SECONDS_TO_START)
        number = os.read(reader, 16).decode().strip() if ready else ""
        if not number:
            unavailable("Xvfb does not start")
        yield f":{number}"
    finally:
        os.close(reader)
        server.terminate()
        server.wait()
