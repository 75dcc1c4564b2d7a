"""A Numba function of one's own runs between two networks, beside the frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

import perframe as pf


@njit(nogil=True)
def sharpen(source: NDArray[Any], target: NDArray[Any]) -> None:  # arrays over the tensors' memory, without a copy
    for row in range(source.shape[0]):
        for column in range(1, source.shape[1] - 1):
            around = source[row, column - 1] + source[row, column + 1]
            target[row, column] = 2 * source[row, column] - around / 2


graph = pf.FunctionalGraph()
x = graph.add_input(pf.DataType.FLOAT32, (64, 64))
first = graph.compile(pf.functional.relu(x))
graph = pf.FunctionalGraph()
x = graph.add_input(pf.DataType.FLOAT32, (64, 64))
second = graph.compile(pf.functional.tanh(x))

with pf.Worker(first) as before, pf.Worker(second) as after:
    y = before.schedule(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)).peek_output()
    between = pf.Tensor(np.zeros(y.shape, np.float32))
    job = pf.jobs.schedule(sharpen, y, between, depends_on=[y], writes=[between])
    z = after.schedule(between).peek_output()
    print("nothing has waited so far; done:", job.done)
    print("the result:", z.download_to_array().shape)
