"""Products of very deep rows take their depth in blocks, and add up the same sums."""

from __future__ import annotations

import numpy as np
import pytest

import perframe as pf
from perframe.backends.cpu.kernels.sizes import PANEL, ROWS
from perframe.backends.cpu.lowering import gemm
from perframe.testing import Draw

DEPTH = gemm.LARGE_PANEL // (4 * PANEL) + 257
draw = Draw(71)


def test_blocks_change_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, c = draw(31, DEPTH, low=-1, high=1), draw(DEPTH, 37, low=-1, high=1), draw(31, 37, low=-1, high=1)
    graph = pf.FunctionalGraph()
    given = graph.add_input(pf.DataType.FLOAT32, ("rows", DEPTH))
    added = graph.add_input(pf.DataType.FLOAT32, c.shape)
    model = graph.compile(pf.functional.gelu(given @ w + added))
    fed = {value.name: array for value, array in zip(model.inputs, (x, c), strict=True)}
    (in_blocks,) = pf.run(model, fed).values()
    blocks = list[int]()

    def whole(form: gemm.Multiplication) -> int:
        blocks.append(deep_block(form))
        return form.channels

    deep_block = gemm._deep_block
    monkeypatch.setattr(gemm, "_deep_block", whole)
    (at_once,) = pf.run(model.copy(), fed).values()
    np.testing.assert_array_equal(in_blocks, at_once)
    assert len(blocks) == 1 and blocks[0] < DEPTH


@pytest.mark.parametrize("rows", [1, 2 * ROWS])
def test_few_rows_take_their_depth_at_once(rows: int) -> None:
    """They read each panel once anyway."""
    form = gemm.Multiplication(1, 37, DEPTH, 37, 37, gemm.window_of_rows(rows), DEPTH)
    assert gemm._deep_block(form) == DEPTH
