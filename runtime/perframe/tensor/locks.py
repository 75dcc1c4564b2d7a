"""Locks that a forked child finds free, whatever thread of its parent held them."""

from __future__ import annotations

import os
import threading
import weakref

_all: weakref.WeakSet[threading.RLock] = weakref.WeakSet()


def new_lock() -> threading.RLock:
    """A reentrant lock. A forked child renews it: the thread that may have held it does not exist there."""
    lock = threading.RLock()
    _all.add(lock)
    return lock


def _renew_all() -> None:
    for lock in list(_all):
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
