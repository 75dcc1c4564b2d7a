"""Copies between storages on the CPU: a few values are copied at once, unless a job uses them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from perframe.backends.cpu.backend import CpuBackend
from perframe.backends.cpu.threads import jobs
from perframe.errors import BackendError
from perframe.tensor import DataType, HostStorage
from perframe.tensor.sharing import LITTLE

FEW, MANY = (3, 5), (LITTLE // 4 + 1,)


def storage(shape: Any, values: Any) -> HostStorage:
    made = HostStorage(shape, DataType.FLOAT32)
    made.upload(np.broadcast_to(np.float32(values), shape))
    return made


def copy(source: HostStorage, target: HostStorage, shape: Any) -> Any:
    changes = target.changes
    CpuBackend().copy(source, target, shape, DataType.FLOAT32)
    assert target.changes == changes + 1
    job = target.write
    assert (target.download(shape) == 7).all()
    return job


@pytest.mark.parametrize(("shape", "at_once"), [(FEW, True), ((0,), True), (MANY, False)])
def test_a_few_values_need_no_job(shape: Any, at_once: bool) -> None:
    assert (copy(storage(shape, 7), storage(shape, 0), shape) is None) == at_once


def test_a_copy_waits_for_what_writes_the_source() -> None:
    source, target, may_write = storage(FEW, 0), storage(FEW, 0), threading.Event()

    def write() -> None:
        may_write.wait()
        source.memory.view(np.float32)[:] = 7

    source.write = jobs.schedule(write)
    threading.Timer(0.05, may_write.set).start()
    assert copy(source, target, FEW) is not None


def test_a_copy_waits_for_what_reads_the_target() -> None:
    source, target, may_end = storage(FEW, 7), storage(FEW, 0), threading.Event()
    seen: list[float] = []

    def read() -> None:
        may_end.wait()
        seen.append(float(target.memory.view(np.float32)[0]))

    target.reads = [jobs.schedule(read)]
    threading.Timer(0.05, may_end.set).start()
    assert copy(source, target, FEW) is not None
    assert seen == [0]


def test_a_copy_of_what_failed_fails() -> None:
    source, target = storage(FEW, 0), storage(FEW, 0)
    source.write = jobs.ThreadJob.failed(BackendError("no values"))
    CpuBackend().copy(source, target, FEW, DataType.FLOAT32)
    with pytest.raises(BackendError, match="no values"):
        target.download(FEW)
