"""Formulas of sizes, evaluated natively: a plan for a new size is waited for by a frame."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from perframe.backends.cpu import jit
from perframe.backends.cpu.kernels import request as words
from perframe.formulas import Formulas
from perframe.storage import address_of


class Evaluator:
    """Writes the first of the formulas' results to the places given for them."""

    def __init__(self, formulas: Formulas, places: Sequence[int]) -> None:
        given = formulas.inputs + len(formulas.constants)
        self._rows = np.array(formulas.rows, np.int32)
        self._values = np.zeros(given + len(formulas.rows), np.int64)
        self._values[formulas.inputs : given] = formulas.constants
        self._places = np.array(places, np.int32)
        self._sources = np.array(formulas.results[: len(places)], np.int32)
        self._inputs = (ctypes.c_int64 * formulas.inputs).from_buffer(self._values)  # type: ignore[arg-type]
        self._request = (ctypes.c_int64 * words.REQUEST)()  # NumPy sets and gets a single number in twice the time
        for word, array in (
            (words.VALUES, self._values),
            (words.ROWS, self._rows),
            (words.PLACES, self._places),
            (words.SOURCES, self._sources),
        ):
            self._request[word] = address_of(array)
        self._request[words.GIVEN], self._request[words.COUNT] = given, len(places)
        self._arguments = jit.arguments(ctypes.addressof(self._request), 0, len(formulas.rows))
        self._function: Callable[..., int] | None = None
        jit.kernel("formulas")

    @property
    def ready(self) -> bool:
        """Whether the kernel is there."""
        if self._function is None and not jit.busy():
            self._function = jit.function("formulas")
        return self._function is not None

    def fill(self, inputs: Sequence[int], out: int) -> bool:
        """Whether all guards hold; then the results are at their places after the address `out`."""
        assert self._function is not None, "ask whether it is ready"
        self._inputs[:] = inputs  # type: ignore[call-overload]  # any sequence of ints is right
        self._request[words.OUT] = out
        self._function(*self._arguments)
        return self._request[words.HOLDS] == 1
