"""User functions as jobs: they run on perframe's threads, in order with the workers' use of the same tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, cast

import numpy as np

from perframe.backends import job_scheduler
from perframe.errors import InputError
from perframe.tensor import BackendType, Fence, HostStorage, Storage, Tensor
from perframe.tensor.sharing import begin_job


class Job(Fence, Protocol):
    """A function that will run. It is a fence: other jobs may depend on it."""


def schedule(
    function: Callable[..., Any],
    *arguments: Any,
    depends_on: Iterable[Tensor | Storage | Fence] = (),
    writes: Iterable[Tensor | Storage] = (),
) -> Job:
    """Run `function(*arguments)` on another thread once everything in `depends_on` is finished. Returns at once.

    The job reads the tensors in `depends_on`: it begins when their values exist, and later writers wait for the job.
    The job overwrites the tensors in `writes`: it begins when nothing uses the old values any more. Later readers (a
    worker's run, a readback) wait for the job, and fail if the job fails. The function receives a tensor argument as an
    array over the tensor's memory, without a copy. The job must not call methods of a tensor, because they would wait
    for the job itself.

    A Numba function with `nogil=True` runs in parallel with Python code; any other callable takes turns with it.
    `wait()` on the job blocks, and raises the function's error; it may run the function in the waiting thread. A failed
    job is logged if nothing waits for it. Raises InputError for a tensor on a GPU (read it back first) and for anything
    but tensors, storages and jobs, and ClosedError for a released tensor.
    """
    if not callable(function):
        raise InputError(f"a job runs a function, and got {type(function).__name__}")
    given, written = _listed(depends_on, "depends_on"), _listed(writes, "writes")
    for item in given:
        if not (_holds_data(item) or isinstance(item, Fence)):
            raise InputError(f"a job depends on tensors, storages and jobs, not on {type(item).__name__}")
    for item in written:
        if not _holds_data(item):
            raise InputError(f"a job writes tensors and storages, not {type(item).__name__}")
    sources = [_host_storage(item) for item in given if _holds_data(item)]
    targets = [_host_storage(item) for item in written]
    fences: list[Fence] = [item for item in given if not _holds_data(item)]
    passed = [_as_array(value) if isinstance(value, Tensor) else value for value in arguments]

    def begin(needed: list[Fence], after: list[Fence]) -> Job:
        job: Job = job_scheduler()(_call, function, passed, depends_on=[*fences, *needed], after=after)
        return job

    return begin_job(begin, sources, targets)


def _listed(items: Any, what: str) -> list[Any]:
    if isinstance(items, Iterable) and not isinstance(items, Tensor | str | bytes | np.ndarray):
        return list(items)
    raise InputError(f"{what} takes a list, as in {what}=[tensor], and got {type(items).__name__}")


def _holds_data(item: Any) -> bool:
    return isinstance(item, Tensor) or hasattr(item, "max_capacity")


def _host_storage(item: Any) -> HostStorage:
    storage: Storage = item.data_on_backend if isinstance(item, Tensor) else item
    if storage.backend_type is not BackendType.CPU:
        raise InputError(f"a job cannot use a tensor on {storage.backend_type}: read it back to the CPU first")
    return cast(HostStorage, storage)


def _call(function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    function(*arguments)


def _as_array(tensor: Tensor) -> Any:
    return _host_storage(tensor).view(tensor.shape, tensor.dtype)
