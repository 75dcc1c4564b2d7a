"""Jobs on host memory that several threads use."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import numpy as np

from perframe.tensor.dtypes import DataType
from perframe.tensor.locks import new_lock
from perframe.tensor.protocol import Fence
from perframe.tensor.storage import HostStorage

Job = TypeVar("Job", bound=Fence)
_locking = new_lock()
LITTLE = 128 << 10  # bytes, which are copied in less time than a job takes to begin


def lock_all(storages: Collection[HostStorage]) -> None:
    """Acquire the locks of all storages; the caller releases them. Threads that want several locks take turns, so that
    no two threads wait for each other.
    """
    with _locking:
        for storage in storages:
            storage.lock.acquire()


def copied_here(source: HostStorage, target: HostStorage, shape: Sequence[int], dtype: DataType) -> bool:
    """Copy a few values in this thread, unless a job or a readback uses them. Return whether it did."""
    if math.prod(shape) * source.element_bytes > LITTLE:
        return False
    lock_all((source, target))
    try:
        if not source.is_written or target.busy:
            return False
        np.copyto(target.view(shape, dtype), source.view(shape, dtype))
        target.write, target.reads = None, []
        target.changes += 1
        return True
    finally:
        source.lock.release()
        target.lock.release()


def begin_job(
    begin: Callable[[list[Fence], list[Fence]], Job],
    sources: Sequence[HostStorage],
    targets: Sequence[HostStorage],
) -> Job:
    """Begin a job that reads `sources` and writes `targets`.

    `begin` receives the fences whose work the job needs, and the fences that must only finish before it. Later users of
    the storages wait for the job. The locks of all storages are held from the collection of fences to the begin.
    """
    together = {*sources, *targets}
    lock_all(together)
    try:
        needed, after = list[Fence](), list[Fence]()
        for storage in sources:
            if storage.write is not None:
                needed.append(storage.write)
        for storage in targets:
            if storage.write is not None or storage.reads:  # a frame waits, and mostly there is nothing
                after += storage.fences
        job = begin(needed, after)
        for storage in together.difference(targets):
            storage.reads = [*[fence for fence in storage.reads if not fence.done], job]
        for storage in targets:
            storage.write, storage.reads = job, []
            storage.changes += 1
    finally:
        for storage in together:
            storage.lock.release()
    return job
