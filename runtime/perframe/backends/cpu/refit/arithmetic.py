"""Native arithmetic of sizes. It is native because a frame waits for the plan for a new size."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels import request as words
from perframe.backends.cpu.kernels.request import CHOSEN
from perframe.backends.refit import SizeMath
from perframe.ir.sizes.arithmetic import SizeArithmetic
from perframe.ir.sizes.open_dims import Positions, Shapes
from perframe.tensor.storage import address_of


class NativeArithmetic:
    """Arithmetic of sizes that writes its first results into a block of words.

    `targets` has for each of these results its index in the block, and the index of an address in the block to add to
    it. The first `read` results are plain numbers without an address.
    """

    def __init__(self, arithmetic: SizeArithmetic, targets: Sequence[tuple[int, int]], read: int) -> None:
        given = arithmetic.inputs + len(arithmetic.constants)
        values = np.zeros(given + len(arithmetic.rows), np.int64)
        values[arithmetic.inputs : given] = arithmetic.constants
        rows = np.array(arithmetic.rows, np.int32)
        triples = zip(targets, arithmetic.results, strict=False)
        placed = np.array([(target, source, address) for (target, address), source in triples], np.int32)
        self._arrays = values, rows, placed
        self._record = (ctypes.c_int64 * words.RECORD)()  # NumPy takes twice as long to set a single number
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
        """Whether the kernel is compiled."""
        if self._function is None and not jit.busy():
            self._function = jit.function("arithmetic.write")
        return self._function is not None

    def read(self, block: int) -> None:
        """Write the plain numbers for the last chosen sizes to the block at this address."""
        self._record[words.BLOCK] = block
        self._call(self._first)

    def write(self, block: int) -> None:
        """Write the other results, each plus its address in the block."""
        self._record[words.BLOCK] = block
        self._call(self._rest)

    def _call(self, arguments: tuple[Any, ...]) -> None:
        assert self._function is not None, "ask whether it is ready"
        self._function(*arguments)


class CpuChooser:
    """Finds in one native call the arithmetic that holds for the sizes at these positions of shapes."""

    def __init__(self, natives: Sequence[NativeArithmetic], positions: Positions) -> None:
        self._natives = natives  # keeps them alive, since the request has their addresses
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
        """Return the index of the first arithmetic whose guards hold; it then has its results. Return -1 if there is
        none, or while the kernel is compiling.

        A frame waits for this, and the code is not in the processor's caches. There, a loop in Python costs half as
        much as functions that no other code calls, such as those of itertools and of arrays' slices.
        """
        if self._function is None:
            if jit.busy():
                return -1
            self._function = jit.function("arithmetic")
        dims = self._dims
        for position, dim in enumerate([dim for shape in shapes for dim in shape]):
            dims[position] = dim
        self._function(*self._arguments)
        return self._request[CHOSEN]


SIZE_MATH = SizeMath(NativeArithmetic, CpuChooser)
