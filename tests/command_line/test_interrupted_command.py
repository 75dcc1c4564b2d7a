"""Ctrl-C, and errors, end a command at once: it waits for no compilers."""

from __future__ import annotations

import pytest

from fresh import run_fresh

CODE = """
import sys
import perframe.command_line.sources as sources
from perframe.backends.cpu.compile import compilers
from perframe.command_line.cli import main
from perframe.errors import InputError

def fail(*_, **__):
    raise {error}

sources.loaded_model = fail
compilers.Compilers.stay = lambda self: print("waits")
compilers.compilers()  # which would wait at exit
sys.stderr = sys.stdout
sys.argv = ["perframe", "check", "digits"]
try:
    main()
except SystemExit as end:
    print("status", end.code)
"""


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize(
    ("error", "said"), [("KeyboardInterrupt", "interrupted\nstatus 130\n"), ("InputError('x')", "error: x\nstatus 1\n")]
)
def test_it_ends_at_once(error: str, said: str) -> None:
    assert run_fresh(CODE.format(error=error)) == said
