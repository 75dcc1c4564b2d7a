"""What the standard leaves open is the same on all backends, optimised or not, for inputs and for constants.

The page docs/unspecified.md has the same list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import perframe as pf
from layers.unspecified import OPEN, Open

PAGE = Path(__file__).resolve().parents[2] / "docs" / "unspecified.md"
EXAMPLES = [(row, index) for row in OPEN for index in range(len(row.examples))]


def _name(given: Any) -> str:
    return f"{given.examples[0][0]}: {given.question}" if isinstance(given, Open) else str(given)


def _model(op: str, inputs: Any, attributes: Any, outputs: Any, constants: bool) -> onnx.ModelProto:
    """One layer. Its inputs are inputs of the graph, or constants that are added to nothing of an input."""
    names = ["" if array is None else f"x{index}" for index, array in enumerate(inputs)]
    made = [f"y{index}" for index in range(len(outputs))]
    given = {name: array for name, array in zip(names, inputs, strict=True) if name}
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()
    ]
    graph = helper.make_graph(
        [helper.make_node(op, names, made, "layer", **attributes)],
        "open",
        [] if constants else infos,
        [helper.make_empty_tensor_value_info(name) for name in made],
        [numpy_helper.from_array(array, name) for name, array in given.items()] if constants else [],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("how", ["optimized", "as filed", "constants"])
@pytest.mark.parametrize(("row", "index"), EXAMPLES, ids=_name)
def test_every_backend_gives_the_same_answer(
    row: Open, index: int, how: str, backend: str, backend_context: Any
) -> None:
    op, inputs, attributes, wanted = row.examples[index]
    model = pf.load(_model(op, inputs, attributes, wanted, how == "constants"), optimize=how != "as filed")
    given = {} if how == "constants" else {f"x{i}": array for i, array in enumerate(inputs) if array is not None}
    made = pf.run(model, given, backend=backend, ctx=backend_context)
    for got, want in zip(made.values(), wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(got, want)
        if want.dtype.kind == "f":
            zeros = want == 0
            np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]), "signs of zeros")


def test_the_page_has_the_list() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    assert lines == [f"| {row.operators} | {row.question} | {row.answer} |" for row in OPEN]
