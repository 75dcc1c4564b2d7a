"""Locks that are free in a forked child, even if a thread of the parent held them."""

from __future__ import annotations

import os
import threading
import weakref

_all: weakref.WeakSet[threading.RLock] = weakref.WeakSet()


def new_lock() -> threading.RLock:
    """Return a reentrant lock. A forked child renews it, since the thread that held it does not exist there."""
    lock = threading.RLock()
    _all.add(lock)
    return lock


def _renew_all() -> None:
    for lock in list(_all):
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
