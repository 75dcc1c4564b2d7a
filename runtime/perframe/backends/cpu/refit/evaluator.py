"""Formulas of sizes, evaluated natively: a plan for a new size is waited for by a frame."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels import request as words
from perframe.backends.cpu.kernels.request import CHOSEN
from perframe.sizes.arithmetic import Formulas
from perframe.sizes.open_dims import Places, Shapes
from perframe.tensor.storage import address_of


class Evaluator:
    """Formulas, and where in a block of words the first of their results go.

    `places` has, for each of these, its place and that of an address in the same block which is added to it. The first
    `read` of them are numbers, to which none is added.
    """

    def __init__(self, formulas: Formulas, places: Sequence[tuple[int, int]], read: int) -> None:
        given = formulas.inputs + len(formulas.constants)
        values = np.zeros(given + len(formulas.rows), np.int64)
        values[formulas.inputs : given] = formulas.constants
        rows = np.array(formulas.rows, np.int32)
        triples = zip(places, formulas.results, strict=False)
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
        jit.kernel("formulas")
        jit.kernel("formulas.place")

    @property
    def ready(self) -> bool:
        """Whether the kernel is there."""
        if self._function is None and not jit.busy():
            self._function = jit.function("formulas.place")
        return self._function is not None

    def read(self, block: int) -> None:
        """Write the numbers for the sizes for which it was chosen last to the block at this address."""
        self._record[words.BLOCK] = block
        self._call(self._first)

    def place(self, block: int) -> None:
        """Write the other results, to which addresses in the block are added."""
        self._record[words.BLOCK] = block
        self._call(self._rest)

    def _call(self, arguments: tuple[Any, ...]) -> None:
        assert self._function is not None, "ask whether it is ready"
        self._function(*arguments)


class Chooser:
    """Asks evaluators in one call which of them holds for the sizes that are at these places of shapes."""

    def __init__(self, evaluators: Sequence[Evaluator], places: Places) -> None:
        self._evaluators = evaluators  # which live as long
        dims, listed = (ctypes.c_int64 * places.count)(), (ctypes.c_int64 * len(evaluators))()
        listed[:] = [evaluator.address for evaluator in evaluators]
        opened, alike = np.array(places.opened, np.int32), np.array(places.alike, np.int32)
        self._arrays, self._dims, self._request = (listed, opened, alike), dims, (ctypes.c_int64 * words.REQUEST)()
        self._request[words.DIMS], self._request[words.LISTED] = ctypes.addressof(dims), ctypes.addressof(listed)
        self._request[words.OPEN], self._request[words.OPEN_COUNT] = address_of(opened), len(opened)
        self._request[words.ALIKE], self._request[words.ALIKE_COUNT] = address_of(alike), len(alike)
        self._arguments = jit.arguments(ctypes.addressof(self._request), 0, len(evaluators))
        self._function = None if jit.busy() else jit.function("formulas")

    def choose(self, shapes: Shapes) -> int:
        """The first one whose guards hold, which has its results then; -1 where there is none, or no kernel yet.

        A frame waits, with nothing of this in the processor's caches: loops of Python cost half of what functions do
        that nothing else calls, such as those of itertools and of arrays' slices.
        """
        if self._function is None:
            if jit.busy():
                return -1
            self._function = jit.function("formulas")
        dims = self._dims
        for place, dim in enumerate([dim for shape in shapes for dim in shape]):
            dims[place] = dim
        self._function(*self._arguments)
        return self._request[CHOSEN]
