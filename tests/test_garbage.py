"""The helper of tests that collects garbage."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from garbage import collect_garbage


class Ring:
    """It refers to itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.me = self


class Slow(Ring):
    """Its end lasts until it is allowed to end."""

    def __init__(self, began: threading.Event, may_end: threading.Event) -> None:
        super().__init__()
        self.began, self.may_end = began, may_end

    def __del__(self) -> None:
        self.began.set()
        self.may_end.wait(10)


@pytest.mark.quick(cases=0)
def test_another_threads_collection() -> None:
    """Python's own call returns 0 at once, and what that collection has found lives for a while."""
    began, may_end = threading.Event(), threading.Event()
    slow, ring = Slow(began, may_end), Ring()
    lives = weakref.ref(ring)
    gc.disable()
    try:
        del slow, ring
        other = threading.Thread(target=gc.collect)
        other.start()
        began.wait(10)
        assert gc.collect() == 0 and lives() is None  # weak references are cleared first
        threading.Timer(0.05, may_end.set).start()
        collect_garbage()
        assert may_end.is_set()
        other.join()
    finally:
        gc.enable()
