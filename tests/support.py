"""Helpers of tests: skip without a requirement, trace a worker's plans, find its parts."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

_ASKED = os.environ.get("PERFRAME_BACKENDS", "gpu_compute,gpu_pixel").split(",")
GL_BACKENDS = [name for name in _ASKED if name.startswith("gpu_")]  # for tests that are of GL alone


def unavailable(reason: str) -> NoReturn:
    """Skip the test with the reason; in CI, where everything must run, fail it."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
