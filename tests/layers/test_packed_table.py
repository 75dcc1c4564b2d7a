"""Rows of tables with packed weights, as of embeddings."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perframe as pf
from passes.graphs import graph, node, random
from perframe.layers.packed import PANEL
from quantization.networks import peer


@pytest.mark.parametrize("kind", ["int8", "uint8", "int4"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (0,), ()])
def test_rows_of_a_table(kind: str, shape: tuple[int, ...], backend: str, backend_context: Any) -> None:
    """Exact: each row equals the dequantized one. Negative indices count from the end."""
    nodes = [node("Gather", "t i", "y")]
    infos = {"i": [None] * len(shape)}
    table = random(37, 50, seed=1)
    model = pf.quantize(pf.load(graph(nodes, infos, {"t": table}, dtype="int64")), kind)
    rows = np.random.default_rng(2).integers(-37, 37, shape)
    with pf.Worker(model, backend, backend_context, strict=True) as worker:
        found = worker.schedule(rows).peek_output().download_to_array()
        (use,) = worker.memory_use
    assert use.constants < table.nbytes / (4 if kind == "int4" else 2)
    np.testing.assert_array_equal(found, peer(model, {"i": rows})["y"])


def test_an_index_outside_the_table(backend: str, backend_context: Any) -> None:
    model = pf.quantize(pf.load(graph([node("Gather", "t i", "y")], {"i": [2]}, {"t": random(37, 50)}, dtype="int64")))
    with pf.Worker(model, backend, backend_context) as worker:
        tensor = worker.schedule(np.array([1, 37])).peek_output()
        if backend == "cpu":
            with pytest.raises(pf.BackendError, match="index 37 reaches beyond 37 elements"):
                tensor.download_to_array()
        else:
            assert not tensor.download_to_array()[1].any()


def test_a_table_that_a_product_reads_too(backend: str, backend_context: Any) -> None:
    """As in language models with tied embeddings: both share one constant."""
    draw, (count, depth) = np.random.default_rng(3), (90, 64)
    codes = draw.integers(-8, 8, (count, depth)).astype(ml_dtypes.int4)
    constants = {"t": codes, "s": draw.random((count, depth // 32)).astype(np.float32)}
    nodes = [
        node("DequantizeLinear", "t s", "v", axis=1, block_size=32),
        node("Gather", "v i", "e"),
        node("Transpose", "v", "u", perm=[1, 0]),
        node("MatMul", "e u", "y"),
    ]
    proto = graph(nodes, {"i": [7]}, constants, dtype="int64")
    rows = draw.integers(0, count, 7)
    with pf.Worker(proto, backend, backend_context, strict=True) as worker:
        found = worker.schedule(rows).peek_output().download_to_array()
        (use,) = worker.memory_use
    table = codes.astype(np.float32) * np.repeat(constants["s"], 32, 1)
    np.testing.assert_allclose(found, table[rows] @ table.T, 1e-4, 1e-3)
    assert use.constants <= 0.67 * -(-count // PANEL) * PANEL * depth
