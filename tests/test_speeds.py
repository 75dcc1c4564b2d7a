"""The two speeds of these tests: the quick ones cover each function and backend. Both pass in the background."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from quick import CASES

ROOT = Path(__file__).resolve().parents[1]
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def collected(*arguments: str) -> list[str]:
    command = [*PYTEST, "--collect-only", *arguments, "tests/layers/test_pad.py", "tests/fuzz/test_fuzz.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def group(name: str) -> tuple[str, str]:
    function, _, parameters = name.partition("[")
    return function, next((one for one in ("gpu_compute", "gpu_pixel", "cpu") if one in parameters), "")


@pytest.mark.slow
def test_quick_keeps_some_cases_of_each_function_on_each_backend() -> None:
    every, kept = collected(), collected("--quick")
    counts, of_quick = Counter(map(group, every)), Counter(map(group, kept))
    assert set(kept) < set(every) and max(of_quick.values()) == CASES
    slow = {function for function, _ in counts.keys() - of_quick.keys()}
    assert slow and all(function.startswith("tests/fuzz/") for function in slow)
    assert kept == collected("--quick"), "the same cases every time"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_ctrl_c_reaches_tests_whose_shell_ignores_it() -> None:
    tests = "tests/conversion/test_environments.py -k test_an_interrupt_ends"
    command = f"trap '' INT; exec {' '.join(PYTEST)} {tests}"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
