"""Copies for callers use the memory of earlier copies, and never memory that somebody still holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perframe.tensor.dtypes import DataType
from perframe.tensor.snapshots import LEAST, MOST, Snapshots
from perframe.tensor.storage import HostStorage

VALUES = np.arange(LEAST // 4, dtype=np.float32).reshape(2, -1)


def place(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_is_used_again_once_its_copy_is_gone() -> None:
    snapshots = Snapshots()
    first = snapshots.of(VALUES)
    where, part = place(first), first[1, 5:9]
    del first
    second = snapshots.of(VALUES + 1)
    assert place(second) != where and part.tolist() == VALUES[1, 5:9].tolist(), "a view of the first is held"
    del part
    third = snapshots.of(VALUES + 2)
    assert place(third) == where and second[0, 0] == 1 and third[0, 0] == 2


@pytest.mark.parametrize("hold", [memoryview, np.ravel, lambda made: made.view(np.int32), lambda made: made.data.obj])
def test_every_way_to_hold_a_copy_keeps_it(hold: Any) -> None:
    snapshots = Snapshots()
    made = snapshots.of(VALUES)
    where, held = place(made), hold(made)
    del made
    assert place(snapshots.of(VALUES)) != where
    del held
    assert where in [place(array) for array in [snapshots.of(VALUES), snapshots.of(VALUES)]]


def test_a_copy_is_the_callers() -> None:
    storage = HostStorage((2, LEAST // 4), DataType.FLOAT32)
    storage.upload(np.zeros((2, LEAST // 4), np.float32))
    first = storage.download((2, LEAST // 4))
    assert first.flags.writeable and first.flags.c_contiguous and first.flags.aligned
    first += 1
    assert not storage.download((2, LEAST // 4)).any()
    storage.release()
    assert (first == 1).all()


def test_few_memories_are_kept() -> None:
    snapshots = Snapshots()
    made = [snapshots.of(VALUES) for _ in range(3 * MOST)]
    made.clear()
    assert len({place(snapshots.of(VALUES)) for _ in range(10)}) == 1
    held = [snapshots.of(VALUES) for _ in range(MOST)]
    assert len({place(array) for array in held}) == MOST
    assert len({*map(place, held), place(snapshots.of(VALUES[:1]))}) == MOST + 1, "other sizes have other memory"


def test_small_copies_and_strings_are_their_own() -> None:
    for values in (VALUES[:, :3], np.full(LEAST, "text", object)):
        assert Snapshots().of(values).base is None
