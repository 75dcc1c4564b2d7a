"""A worker whose output is its next input: the state stays on the backend, and nothing waits for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

import perframe as pf
from perframe.tensor import Tensor

TEXT = """<ir_version: 9, opset_import: ["" : 17]>
state (float[5, 7] x, float[5, 7] state, int64[3] ticks) => (float[5, 7] y, float[5, 7] next, int64[3] tocks) {
    next = Sub(x, state)
    y = Mul(next, next)
    tocks = Add(ticks, ticks)
}"""


def test_state_is_fed_back_without_the_host(
    backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    with pf.Worker(pf.load(parser.parse_model(TEXT)), backend, backend_context) as worker:
        state: Any = np.zeros((5, 7), np.float32)
        ticks: Any = np.array([1, 2, 3])
        want, count = np.zeros((5, 7), np.float32), np.array([1, 2, 3])
        for _ in range(4):
            worker.schedule({"x": x, "state": state, "ticks": ticks})
            state, ticks = worker.peek_output("next"), worker.peek_output("tocks")
            want, count = x - want, count * 2
            monkeypatch.setattr(Tensor, "download_to_array", None)  # nothing of it goes through the host
        monkeypatch.undo()
        np.testing.assert_array_equal(state.download_to_array(), want)
        np.testing.assert_array_equal(ticks.download_to_array(), count)
