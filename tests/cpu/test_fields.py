"""The words of kernels have names, which a lowering and a kernel share."""

from __future__ import annotations

import pytest

from perframe.backends.cpu.kernels.fields import POOL, WINDOW, WINDOW_Z, Fields


def test_words_are_ordered_by_name() -> None:
    fields = Fields("x out", "rows columns")
    assert fields.at == (0, 1, 2, 3) and fields.at.columns == 3
    assert fields.operands(out="b", x="a") == ["a", "b"]
    assert fields.numbers(columns=5, rows=7) == [7, 5]


@pytest.mark.parametrize("given", [{"rows": 1}, {"rows": 1, "columns": 2, "row": 3}, {}])
def test_missing_and_unknown_words(given: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="a kernel's words are rows, columns; missing or unknown: "):
        Fields("x out", "rows columns").numbers(**given)


def test_a_window_is_twelve_words_and_six_for_a_third_dim() -> None:
    assert len(WINDOW.split()) == 12 == POOL.at.size_z - POOL.at.height
    assert len(WINDOW_Z.split()) == 6 == POOL.at.end_z - POOL.at.size_z
