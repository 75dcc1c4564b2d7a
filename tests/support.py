"""Helpers of tests: skip without a requirement, trace a worker's plans, find its parts."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def unavailable(reason: str) -> NoReturn:
    """Skip the test with the reason; in CI, where everything must run, fail it."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
