"""Storage whose memory is made when it is first used."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from perframe import ClosedError, DataType
from perframe.tensor import HostStorage

VALUES = np.arange(6, dtype=np.float32)


def test_it_is_made_on_the_first_use() -> None:
    made: list[int] = []
    storage = HostStorage.later(6, DataType.FLOAT32, lambda: (made.append(1), VALUES)[1])
    assert storage.max_capacity == 6 and storage.element_bytes == 4 and storage.is_open and not storage.busy
    assert not made
    assert storage.address % 4 == 0
    np.testing.assert_array_equal(storage.download((2, 3), DataType.FLOAT32), VALUES.reshape(2, 3))
    assert made == [1]


def test_two_threads_make_it_once() -> None:
    made: list[int] = []
    inside = threading.Barrier(2)

    def make() -> np.ndarray:
        made.append(1)
        return VALUES

    storage = HostStorage.later(6, DataType.FLOAT32, make)
    seen: list[int] = []

    def use() -> None:
        inside.wait()
        seen.append(storage.address)

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1] and len(set(seen)) == 1


@pytest.mark.parametrize("is_made", [False, True])
def test_released_storage_has_no_memory(is_made: bool) -> None:
    storage = HostStorage.later(6, DataType.FLOAT32, VALUES.copy)
    if is_made:
        assert storage.address
    storage.release()
    storage.release()
    for use in (lambda: storage.memory, lambda: storage.address, storage.download):
        with pytest.raises(ClosedError, match="after its release"):
            use()


def test_an_error_of_the_maker_comes_again() -> None:
    def make() -> np.ndarray:
        raise MemoryError("no room")

    storage = HostStorage.later(6, DataType.FLOAT32, make)
    for _ in range(2):
        with pytest.raises(MemoryError, match="no room"):
            storage.download()
