"""Copies of values for callers. A copy takes the memory of an earlier one that was dropped."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.tensor.memory import Held, ledger

LEAST = 128 << 10  # bytes: the system gives larger memory page by page, which takes longer than the copy
MOST = 3  # copies whose memory is kept: one that a caller holds, one that replaces it, and one on its way
_FREE = 3  # references to memory that no copy uses: the list's, the loop's, and the call's that counts them


class Snapshots:
    """Copies values of a storage. The caller owns each copy; its memory is used again once all views of it are gone."""

    def __init__(self) -> None:
        self._memories: list[NDArray[np.uint8]] = []
        self._held: list[Held] = []  # one for each of the memories

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of the values, contiguous and writeable."""
        if values.nbytes < LEAST or values.dtype.hasobject:
            return values.copy()
        made: NDArray[Any] = np.ndarray(values.shape, values.dtype, self.room(values.nbytes))
        np.copyto(made, values)
        return made

    def room(self, size: int) -> NDArray[np.uint8]:
        """Return `size` bytes for a copy. They are the caller's as long as a view of them is held."""
        if size < LEAST:
            return np.empty(size, np.uint8)
        for memory in self._memories:
            if memory.nbytes == size and getrefcount(memory) == _FREE:
                return memory
        made = np.empty(size, np.uint8)
        self._memories, self._held = self._memories[1 - MOST :], self._held[1 - MOST :]
        if ledger.fits(size):  # otherwise it is the caller's alone
            self._held.append(Held(size, "a readback"))
            self._memories.append(made)
        return made

    @property
    def held_bytes(self) -> int:
        """The bytes of the memory that is kept."""
        return sum(held.size for held in self._held)

    def free(self) -> None:
        """Keep nothing. Copies that a caller holds are the caller's."""
        self._memories, self._held = [], []
