"""The peak operations a second of a device, measured with a large product of matrices."""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np

from perframe.backends import waiting_for_kernels
from perframe.execution.worker import Worker
from perframe.functional import matmul
from perframe.functional.graph import FunctionalGraph
from perframe.tensor import BackendType, DataType

SIDE = 1024
SECONDS = 0.5  # of measuring: the shortest run counts, since other programs hold runs up
LEAST, MOST = 3, 50


@cache
def peak_of(backend: BackendType) -> float | None:
    """Multiplications and additions a second, of a product of two matrices of 1,024 rows and columns. None where the
    device measures no time. Blocks: it takes a second on a slow device, and is done once in a process.

    A convolution that saves multiplications (Winograd's) may achieve more.
    """
    graph = FunctionalGraph()
    left, right = (graph.add_input(DataType.FLOAT32, (SIDE, SIDE)) for _ in range(2))
    model = graph.compile(matmul(left, right))
    ones = np.ones((SIDE, SIDE), np.float32)
    with waiting_for_kernels(), Worker(model, backend) as worker:
        worker.schedule(ones, ones).peek_output().download_to_array()
        begin = perf_counter()
        worker.schedule(ones, ones).peek_output().download_to_array()
        steps = worker.report(min(MOST, max(LEAST, int(SECONDS / (perf_counter() - begin)))))
    seconds = sum(step.seconds or 0 for step in steps)
    return 2 * SIDE**3 / seconds if seconds else None
