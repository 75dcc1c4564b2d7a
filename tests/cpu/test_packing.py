"""Weights are packed into panels, large ones in several threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from perframe.backends.cpu.kernels.sizes import LANES, PANEL
from perframe.backends.cpu.lowering import gemm
from perframe.backends.cpu.program import bindings
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.tensor import DataType
from perframe.tensor.background import Work
from perframe.tensor.storage import HostStorage

random = np.random.default_rng(11)


def panels(matrix: Any) -> Any:
    """The panels of matrices, one element at a time."""
    *batch, depth, columns = matrix.shape
    packed = []
    for index in np.ndindex(*batch):
        for first in range(0, columns, PANEL):
            width = -(-min(PANEL, columns - first) // LANES) * LANES
            for row in range(depth):
                packed += [matrix[(*index, row, first + at)] if first + at < columns else 0.0 for at in range(width)]
    return np.array(packed, np.float32)


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (300, 61), (1, 20_000), (513, PANEL), (2, 3, 90, 97), (3, 64, 257)])
@pytest.mark.parametrize("by_rows", [True, False])
def test_packing(shape: tuple[int, ...], by_rows: bool) -> None:
    """A matrix that is transposed in memory is packed in another way, if it is large."""
    stored = shape if by_rows else (*shape[:-2], shape[-1], shape[-2])
    matrix = random.standard_normal(stored).astype(np.float32)
    matrix = matrix if by_rows else matrix.swapaxes(-1, -2)
    np.testing.assert_array_equal(gemm.pack(matrix), panels(matrix))


def late(count: int, size: int, threads: set[str], fails: bool = False) -> list[HostStorage]:
    def make(value: int) -> Any:
        threads.add(threading.current_thread().name)
        if fails and value == 1:
            raise MemoryError("no more")
        together.wait(30)
        return np.full(size, value, np.float32)

    together = threading.Barrier(1 if fails else min(2, thread_count()))
    return [HostStorage.later(size, DataType.FLOAT32, lambda value=value: make(value)) for value in range(count)]


def test_large_weights_are_made_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "thread_count", lambda: 2)
    threads = set[str]()
    storages = late(4, bindings.MUCH, threads)
    bindings._make_late([*storages, *storages])
    assert len(threads) == 2 and not any(one.is_late for one in storages)
    assert [one.memory.view(np.float32)[-1] for one in storages] == [0, 1, 2, 3]


def test_small_ones_and_those_beside_frames_are_made_later() -> None:
    threads = set[str]()
    small, large = late(4, 1000, threads), late(4, bindings.MUCH, threads)
    bindings._make_late(small)
    thread = threading.Thread(target=Work().run, args=[lambda work: bindings._make_late(large)])
    thread.start()
    thread.join()
    assert not threads and all(one.is_late for one in (*small, *large))


def test_an_error_comes_out_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "thread_count", lambda: 2)
    storages = late(4, bindings.MUCH, set(), fails=True)
    with pytest.raises(MemoryError):
        bindings._make_late(storages)
    assert storages[1].is_late and storages[3].address and storages[0].memory.view(np.float32)[5] == 0
