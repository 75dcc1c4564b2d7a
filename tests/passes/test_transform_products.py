from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from passes.graphs import apply, check_numbers_stay, graph, node, ops, prepared, random
from perframe import functional as F
from perframe.backends import evaluator
from perframe.passes import prepare
from support import GL_BACKENDS

LINE = ["Reshape", "MatMul", "Reshape"]
FRAMES = ["Unsqueeze", "Conv", "Transpose", "Reshape"]


def dft(shape: Any, constants: dict[str, Any] | None = None, inputs: str = "x", **attributes: Any) -> Any:
    return graph([node("DFT", inputs, "y", **attributes)], {"x": shape}, constants)


def whole(number: int) -> Any:
    return np.array(number, np.int64)


def stft(shape: Any, step: int = 3, window: int | None = 8, length: int | None = None, **attributes: Any) -> Any:
    inputs = f"x step {'window' if window else ''} {'length' if length else ''}".rstrip()
    constants = {"step": whole(step)}
    constants |= {} if window is None else {"window": np.hanning(window).astype(np.float32)}
    constants |= {} if length is None else {"length": whole(length)}
    return graph([node("STFT", inputs, "y", **attributes)], {"x": shape}, constants)


LINES = {
    "real": dft((2, 3, 7, 1)),
    "complex": dft((2, 7, 2)),
    "one sample": dft((3, 1, 2)),
    "onesided": dft((2, 8, 1), onesided=1),
    "inverse": dft((2, 5, 2), inverse=1),
    "the inverse of a half": dft((2, 5, 2), inverse=1, onesided=1),
    "a shorter length": dft((2, 7, 2), {"n": whole(5)}, "x n"),
    "a longer length": dft((2, 3, 7, 1), {"n": whole(12)}, "x n"),
    "an axis": dft((4, 3, 7, 1), {"n": whole(7), "at": whole(2)}, "x n at"),
    "no signals": dft((0, 7, 1)),
}
FRAMED = {
    "a window": stft((2, 30)),
    "one frame": stft((1, 8)),
    "all bins": stft((2, 19), onesided=0),
    "no window": stft((2, 30), window=None, length=7),
    "both": stft((2, 30), step=8, length=8),
    "parts": stft((2, 30, 1)),
    "a step beyond the frame": stft((3, 40), step=11, window=5),
}
KEPT = {
    "another axis": dft((2, 5, 3, 1), {"n": whole(5), "at": whole(1)}, "x n at"),
    "one line": dft((7, 2)),
    "an open size": dft((2, "n", 1)),
    "a large matrix": dft((1, 2048, 1)),
    "the first axis": dft((2, 3, 5, 2), {"at": whole(0)}, "x  at"),
    "complex frames": stft((2, 30, 2), onesided=0),
    "a signal that may be too short": stft((2, "n")),
    "a signal that is too short": stft((2, 7)),
    "many samples": stft((1, 5000), window=2049),
}


@pytest.mark.parametrize("name", [*LINES, *FRAMED, *KEPT])
def test_the_numbers_stay(name: str, backend: str, backend_context: Any) -> None:
    model = (LINES | FRAMED | KEPT)[name]
    shape = [dim.dim_value or 19 for dim in model.graph.input[0].type.tensor_type.shape.dim]
    shape = [0, *shape[1:]] if name == "no signals" else shape
    check_numbers_stay(model, {"x": random(*shape)}, backend, backend_context)


@pytest.mark.parametrize("name", [*LINES, *FRAMED])
def test_it_fires(name: str) -> None:
    model, changed = apply("transform_products", (LINES | FRAMED)[name])
    want = LINE if name in LINES else ["Transpose", *FRAMES[1:]] if name == "parts" else FRAMES
    assert (changed, ops(model)) == (1, want)


@pytest.mark.parametrize("name", KEPT)
def test_it_does_not_fire(name: str) -> None:
    assert apply("transform_products", KEPT[name])[1] == 0


def test_a_window_that_comes_later_is_kept() -> None:
    nodes = [node("STFT", "x step window", "y")]
    model = graph(nodes, {"x": (2, 30), "window": (8,)}, {"step": whole(3)})
    assert apply("transform_products", model)[1] == 0


@pytest.mark.parametrize("backend", GL_BACKENDS)
def test_only_shaders_need_it(backend: str) -> None:
    model = stft((2, 30))
    assert "STFT" in ops(prepared(model, "cpu")) and "STFT" not in ops(prepared(model, backend))


def test_an_open_length_is_enough_where_borders_make_a_frame(backend: str, backend_context: Any) -> None:
    """As of speech: padding at both ends is as long as a frame."""
    graph = pf.FunctionalGraph("speech")
    signal = graph.add_input("float32", (1, "samples"), "signal")
    model = graph.compile(spectrum=F.stft(signal, 16, 5))
    if backend != "cpu":
        assert "STFT" not in ops(prepare(model, evaluator(), backend))
    with pf.Worker(model, backend, ctx=backend_context) as worker:
        for samples in (40, 9, 33, 61):
            x = random(1, samples)
            made = worker.schedule(x).peek_output("spectrum").numpy()
            want = pf.run(model, x)["spectrum"]
            np.testing.assert_allclose(made, want, 1e-4, 1e-5 * np.abs(want).max())
