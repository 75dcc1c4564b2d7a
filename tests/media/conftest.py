"""No test of media leaves a thread behind."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from media.films import media_threads


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    end = time.monotonic() + 5
    while media_threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert media_threads() == []
