"""The page of errors has the messages that the library gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from small import load, node

PAGE = Path(__file__).resolve().parents[1] / "docs" / "errors.md"
X = np.ones((2, 3), np.float32)


def relu() -> pf.Worker:
    return pf.Worker(load([node("Relu", "x", "y")], {"x": [2, 3]}))


def wrong_shape() -> None:
    with relu() as worker:
        worker.schedule(np.ones((2, 4), np.float32))


def wrong_dtype() -> None:
    with relu() as worker:
        worker.schedule(np.full((2, 3), 0.1))


def wrong_name() -> None:
    with relu() as worker:
        worker.schedule({"image": X})


def missing_input() -> None:
    with relu() as worker:
        worker.schedule()


def early_output() -> None:
    with relu() as worker:
        worker.peek_output()


def released() -> None:
    worker = relu()
    worker.release()
    worker.schedule(X)


def no_file() -> None:
    pf.load("no-such-file.onnx")


def not_a_model() -> None:
    pf.load(b"these bytes are no model")


def unknown_operator() -> None:
    pf.load(_with_operator("Frobnicate"))


def _with_operator(name: str) -> Any:
    import onnx
    from onnx import helper

    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node(name, ["x"], ["y"], name="frob")], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


CASES: list[Callable[[], None]] = [
    wrong_shape,
    wrong_dtype,
    wrong_name,
    missing_input,
    early_output,
    released,
    no_file,
    not_a_model,
    unknown_operator,
]


@pytest.mark.parametrize("provoke", CASES)
def test_a_message_is_on_the_page(provoke: Callable[[], None]) -> None:
    with pytest.raises(pf.PerframeError) as caught:
        provoke()
    said = f"{type(caught.value).__name__}: {caught.value}".split(" (looked in")[0]
    page = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    assert re.sub(r"\s+", " ", said) in page
