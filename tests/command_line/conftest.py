"""A command line within the test's process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from perframe.command_line import cli

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def perframe(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """`perframe("run", "painter")` returns the exit status, and stdout and stderr without line breaks."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["perframe", *map(str, arguments)])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        said = capfd.readouterr()
        return int(ending.value.code or 0), " ".join(said.out.split()), " ".join(said.err.split())

    return run
