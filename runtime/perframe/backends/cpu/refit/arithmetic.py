"""Arithmetic of sizes, done natively: a plan for a new size is waited for by a frame."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels import request as words
from perframe.backends.cpu.kernels.request import CHOSEN
from perframe.sizes.arithmetic import SizeArithmetic
from perframe.sizes.open_dims import Positions, Shapes
from perframe.tensor.storage import address_of


class NativeArithmetic:
    """Arithmetic, and where in a block of words the first of its results go.

    `places` has, for each of these, its place and that of an address in the same block which is added to it. The first
    `read` of them are numbers, to which none is added.
    """

    def __init__(self, arithmetic: SizeArithmetic, places: Sequence[tuple[int, int]], read: int) -> None:
        given = arithmetic.inputs + len(arithmetic.constants)
        values = np.zeros(given + len(arithmetic.rows), np.int64)
        values[arithmetic.inputs : given] = arithmetic.constants
        rows = np.array(arithmetic.rows, np.int32)
        triples = zip(places, arithmetic.results, strict=False)
        placed = np.array([(place, source, address) for (place, address), source in triples], np.int32)
        self._arrays = values, rows, placed
        self._record = (ctypes.c_int64 * words.RECORD)()  # NumPy sets a single number in twice the time
        for word, array in ((words.VALUES, values), (words.ROWS, rows), (words.PLACED, placed)):
            self._record[word] = address_of(array)
        self._record[words.GIVEN], self._record[words.ROW_COUNT] = given, len(rows)
        self.address = ctypes.addressof(self._record)
        self._first = jit.arguments(self.address, 0, read)
        self._rest = jit.arguments(self.address, read, len(placed))
        self._function: Callable[..., Any] | None = None
        jit.kernel("arithmetic")
        jit.kernel("arithmetic.write")

    @property
    def ready(self) -> bool:
        """Whether the kernel is there."""
        if self._function is None and not jit.busy():
            self._function = jit.function("arithmetic.write")
        return self._function is not None

    def read(self, block: int) -> None:
        """Write the numbers for the sizes for which it was chosen last to the block at this address."""
        self._record[words.BLOCK] = block
        self._call(self._first)

    def write(self, block: int) -> None:
        """Write the other results, to which addresses in the block are added."""
        self._record[words.BLOCK] = block
        self._call(self._rest)

    def _call(self, arguments: tuple[Any, ...]) -> None:
        assert self._function is not None, "ask whether it is ready"
        self._function(*arguments)


class CpuChooser:
    """Asks in one call which arithmetic holds for the sizes that are at these positions of shapes."""

    def __init__(self, natives: Sequence[NativeArithmetic], positions: Positions) -> None:
        self._natives = natives  # which live as long
        dims, listed = (ctypes.c_int64 * positions.count)(), (ctypes.c_int64 * len(natives))()
        listed[:] = [native.address for native in natives]
        opened, alike = np.array(positions.opened, np.int32), np.array(positions.alike, np.int32)
        self._arrays, self._dims, self._request = (listed, opened, alike), dims, (ctypes.c_int64 * words.REQUEST)()
        self._request[words.DIMS], self._request[words.LISTED] = ctypes.addressof(dims), ctypes.addressof(listed)
        self._request[words.OPEN], self._request[words.OPEN_COUNT] = address_of(opened), len(opened)
        self._request[words.ALIKE], self._request[words.ALIKE_COUNT] = address_of(alike), len(alike)
        self._arguments = jit.arguments(ctypes.addressof(self._request), 0, len(natives))
        self._function = None if jit.busy() else jit.function("arithmetic")

    def choose(self, shapes: Shapes) -> int:
        """The first one whose guards hold, which has its results then; -1 where there is none, or no kernel yet.

        A frame waits, with nothing of this in the processor's caches: loops of Python cost half of what functions do
        that nothing else calls, such as those of itertools and of arrays' slices.
        """
        if self._function is None:
            if jit.busy():
                return -1
            self._function = jit.function("arithmetic")
        dims = self._dims
        for place, dim in enumerate([dim for shape in shapes for dim in shape]):
            dims[place] = dim
        self._function(*self._arguments)
        return self._request[CHOSEN]
