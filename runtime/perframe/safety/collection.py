"""Pauses Python's garbage collector while many objects are made that stay, and lets it free large models."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

MOST_DROPPED = 64 << 20  # bytes of weights of dropped models that may wait for the collector

_dropped = 0  # bytes of weights of the models that were dropped since the last search for them
_is_paused = False
_caller_froze = False  # objects, which then stay frozen


@contextmanager
def uncollected() -> Iterator[None]:
    """Make no search for garbage within the block. After it, all objects count as old: the next full search visits
    them.

    A model's graph or plan grows by 100,000s of objects, none of them garbage, and the collector would visit the older
    ones again and again. Any thread may end the pause early, which costs only time.
    """
    global _is_paused
    if not gc.isenabled():  # by an outer block, another thread or the caller
        yield
        return
    _is_paused = True  # before and after the pause: another thread may fork at any time
    gc.disable()
    try:
        yield
    finally:
        count_as_old()
        gc.enable()
        _is_paused = False


def count_as_old() -> None:
    """Let all objects count as old at once: the next brief search would visit many new ones."""
    global _caller_froze
    _caller_froze = _caller_froze or gc.get_freeze_count() > 0  # to count millions takes as long as a frame: once
    if not _caller_froze:
        gc.freeze()
        gc.unfreeze()


def watch(model: object, size: int) -> None:
    """Count `size` bytes of weights when the model is dropped.

    Its layers and values refer to each other, so that only a search for garbage frees them. Python searches when there
    are many objects, however large these are.
    """
    weakref.finalize(model, _drop, size).atexit = False


def _drop(size: int) -> None:
    global _dropped
    _dropped += size


def free_dropped() -> None:
    """Free dropped models, if their weights are large and the caller has not disabled the collector."""
    global _dropped
    if _dropped > MOST_DROPPED and (_is_paused or gc.isenabled()):
        _dropped = 0
        gc.collect()


def _resume() -> None:
    if _is_paused:  # the thread that would end the pause does not exist in a forked child
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume)
