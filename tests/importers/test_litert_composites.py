"""Operators of LiteRT files that become many layers: recurrent ones, boxes, Fourier transforms, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf

pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert, the peer of these tests")
pytest.importorskip("tflite", reason="needs the extra litert")

from flatbuffers import flexbuffers

from importers.litert_files import Array, File, Graph, interpreted, packed

F, INT = "float32", "int32"
TANH = 4


def real(*shape: int, low: float = -1, high: float = 1, seed: int = 1) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def check(data: bytes, *fed: Array, tolerance: float = 1e-4) -> list[Any]:
    model = pf.load(data)
    names = [value.name for value in model.inputs]
    made = list(pf.run(model, dict(zip(names, fed, strict=True))).values())
    expected = interpreted(data, fed)
    assert len(made) == len(expected)
    for got, want in zip(made, expected, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, tolerance, tolerance)
    return made


def state(graph: Graph, *shape: int) -> int:
    """A tensor that a file keeps between two runs."""
    made = graph.tensor(f"state {len(graph.tensors)}", shape)
    graph.tensors[made].isVariable = True
    return made


def gates(graph: Graph, depth: int, units: int, coupled: bool, peepholes: bool, seed: int) -> list[int]:
    """The inputs of an LSTM in one direction, from its weights to its projection."""

    def each(count: int, *shape: int) -> list[int]:
        return [graph.constant(real(*shape, seed=seed + len(graph.tensors))) for _ in range(count)]

    w, r, p, b = each(4, units, depth), each(4, units, units), each(3, units), each(4, units)
    for names in (w, r, b, p):
        if coupled:
            names[0] = -1
    return [*w, *r, *(p if peepholes else [-1] * 3), *b, -1, -1]


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("major", [False, True])
def test_lstm(coupled: bool, major: bool) -> None:
    file = File()
    graph, units = file.graph, 5
    shape = (7, 2, 3) if major else (2, 7, 3)
    x = graph.input("x", shape)
    inputs = [x, *gates(graph, 3, units, coupled, False, 3), state(graph, 2, units), state(graph, 2, units)]
    options = {"fusedActivationFunction": TANH, "cellClip": 10.0, "timeMajor": major}
    kind = "UnidirectionalSequenceLSTMOptions"
    check(
        file.data(graph.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [*inputs, -1, -1, -1, -1], options, kind=kind)), real(*shape)
    )


def test_lstm_with_peepholes() -> None:
    file = File()
    graph = file.graph
    x = graph.input("x", (2, 7, 3))
    inputs = [x, *gates(graph, 3, 5, False, True, 3), state(graph, 2, 5), state(graph, 2, 5)]
    options, kind = {"fusedActivationFunction": TANH}, "UnidirectionalSequenceLSTMOptions"
    check(
        file.data(graph.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [*inputs, -1, -1, -1, -1], options, kind=kind)),
        real(2, 7, 3),
    )


@pytest.mark.parametrize("steps", [32, -1])
def test_cells_are_clipped_between_steps(steps: int) -> None:
    """All gates stay open. The cells grow for 20 steps, and sink for 12: to zero if they were clipped."""
    file = File()
    graph = file.graph
    x = graph.input("x", (2, steps, 3))
    inputs = [x, *gates(graph, 3, 5, False, False, 3), state(graph, 2, 5), state(graph, 2, 5)]
    for gate in range(4):
        inputs[1 + gate] = graph.constant(np.full((5, 3), gate == 2, np.float32))
        inputs[5 + gate] = graph.constant(np.full((5, 5), 0.01, np.float32))
        inputs[12 + gate] = graph.constant(np.full(5, 9 * (gate != 2), np.float32))
    options, kind = {"fusedActivationFunction": TANH, "cellClip": 10.0}, "UnidirectionalSequenceLSTMOptions"
    made = graph.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [*inputs, -1, -1, -1, -1], options, kind=kind)
    fed = np.repeat(np.float32([3] * 20 + [-3] * 12)[None, :, None], 2, 0).repeat(3, 2)
    (clipped,) = check(file.data(made), fed)
    graph.operators[0].builtinOptions.cellClip = 0.0
    free = next(iter(pf.run(packed(file.model()), {"x": fed}).values()))
    assert np.abs(free - clipped).max() > 0.5


def test_lstm_in_both_directions() -> None:
    """The interpreter's own joined outputs differ from run to run, so ours are compared with the separate ones."""
    made = []
    for merge in (False, True):
        file = File()
        graph, units = file.graph, 4
        inputs = [graph.input("x", (2, 5, 3)), *gates(graph, 3, units, False, False, 3)]
        inputs += [*gates(graph, 3, units, False, False, 50), *(state(graph, 2, units) for _ in range(4)), *[-1] * 9]
        options = {"fusedActivationFunction": TANH, "mergeOutputs": merge, "timeMajor": False}
        kind, outputs = "BidirectionalSequenceLSTMOptions", (F,) if merge else (F, F)
        found = graph.op("BIDIRECTIONAL_SEQUENCE_LSTM", inputs, options, outputs, kind=kind)
        if merge:
            made.append(list(pf.run(file.data(found), {"x": real(2, 5, 3)}).values()))
        else:
            made.append(check(file.data(*found), real(2, 5, 3)))
    np.testing.assert_array_equal(np.concatenate(made[0], -1), made[1][0])


@pytest.mark.parametrize("activation", [1, TANH])
def test_rnn(activation: int) -> None:
    file = File()
    graph = file.graph
    x = graph.input("x", (2, 6, 3))
    inputs = [x, graph.constant(real(4, 3)), graph.constant(real(4, 4)), graph.constant(real(4)), state(graph, 2, 4)]
    options = {"fusedActivationFunction": activation, "timeMajor": False}
    check(file.data(graph.op("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, options, kind="SequenceRNNOptions")), real(2, 6, 3))


def test_lstm_step() -> None:
    file = File()
    graph = file.graph
    x = graph.input("x", (2, 3))
    inputs = [x, *gates(graph, 3, 5, False, True, 3), state(graph, 2, 5), state(graph, 2, 5)]
    options = {"fusedActivationFunction": TANH, "cellClip": 3.0}
    check(file.data(graph.op("LSTM", inputs, options, kind="LSTMOptions")), real(2, 3))


def test_rnn_in_both_directions() -> None:
    file = File()
    graph = file.graph
    x = graph.input("x", (2, 6, 3))
    inputs = [x]
    for seed in (1, 7):
        weights = (real(4, 3, seed=seed), real(4, 4, seed=seed), real(4, seed=seed))
        inputs += [*map(graph.constant, weights), state(graph, 2, 4)]
    options = {"fusedActivationFunction": TANH, "timeMajor": False, "mergeOutputs": True}
    kind = "BidirectionalSequenceRNNOptions"
    check(file.data(graph.op("BIDIRECTIONAL_SEQUENCE_RNN", [*inputs, -1, -1, -1], options, kind=kind)), real(2, 6, 3))


def test_rnn_step_and_filter() -> None:
    file = File()
    graph = file.graph
    x = graph.input("x", (2, 3))
    inputs = [x, graph.constant(real(4, 3)), graph.constant(real(4, 4)), graph.constant(real(4)), state(graph, 2, 4)]
    step = graph.op("RNN", inputs, {"fusedActivationFunction": TANH}, kind="RNNOptions")
    inputs = [x, graph.constant(real(6, 3)), graph.constant(real(6, 5)), graph.constant(real(3)), state(graph, 2, 30)]
    options = {"rank": 2, "fusedActivationFunction": 1}
    check(file.data(step, graph.op("SVDF", inputs, options, kind="SVDFOptions")), real(2, 3))


def boxes(count: int) -> Array:
    corners = real(count, 2, low=0, high=1)
    return np.concatenate([corners, corners + real(count, 2, low=0.1, high=0.4, seed=2)], 1).astype(np.float32)


@pytest.mark.parametrize(
    ("code", "outputs"), [("NON_MAX_SUPPRESSION_V4", (INT, INT)), ("NON_MAX_SUPPRESSION_V5", (INT, F, INT))]
)
def test_non_max_suppression(code: str, outputs: tuple[str, ...]) -> None:
    file = File()
    graph = file.graph
    given = [graph.input("boxes", (20, 4)), graph.input("scores", (20,))]
    given += [graph.constant(value) for value in (np.int32(25), np.float32(0.3), np.float32(0.2))]
    if code.endswith("V5"):
        given.append(graph.constant(np.float32(0)))
    made = graph.op(code, given, {}, outputs, kind=f"NonMaxSuppression{code[-2:]}Options")
    check(file.data(*made), boxes(20), real(20, low=0, high=1, seed=4))


@pytest.mark.parametrize("regular", [False, True])
def test_the_end_of_detectors(regular: bool) -> None:
    """Of boxes below the least score the interpreter leaves what was in memory, so only the others are compared."""
    file = File()
    graph = file.graph
    codes, scores = graph.input("codes", (1, 30, 4)), graph.input("scores", (1, 30, 4))
    anchors = np.concatenate([real(30, 2, low=0.2, high=0.8), real(30, 2, low=0.1, high=0.3, seed=2)], 1)
    options = {
        "max_detections": 8,
        "max_classes_per_detection": 1,
        "detections_per_class": 10,
        "nms_score_threshold": 0.4,
        "nms_iou_threshold": 0.5,
        "num_classes": 3,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
        "use_regular_nms": regular,
    }
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in options.items():
            builder.Key(name)
            builder.Add(value)
    custom = bytes(builder.Finish())
    given = [codes, scores, graph.constant(anchors.astype(np.float32))]
    made = graph.op("TFLite_Detection_PostProcess", given, outputs=(F,) * 4, custom=custom)
    check(file.data(*made), real(1, 30, 4), real(1, 30, 4, low=0, high=1, seed=3))


def test_fourier_transforms() -> None:
    file = File()
    graph = file.graph
    x = graph.input("x", (3, 4, 8))
    waves = graph.op("RFFT2D", [x, graph.constant(np.int32([4, 8]))], {}, ("complex64",), kind="Rfft2dOptions")
    made = [graph.op(code, [waves]) for code in ("REAL", "IMAG", "COMPLEX_ABS")]
    check(file.data(*made), real(3, 4, 8))


def test_drawn_classes_are_the_likely_ones() -> None:
    file = File()
    graph = file.graph
    logits, count = graph.input("logits", (2, 3)), graph.constant(np.int32(50))
    made = graph.op("MULTINOMIAL", [logits, count], {"seed": 3}, ("int64",), kind="RandomOptions", shapes=[(2, 50)])
    fed = np.float32([[-99, 99, -99], [99, -99, -99]])
    np.testing.assert_array_equal(*pf.run(file.data(made), {"logits": fed}).values(), [[1] * 50, [0] * 50])


def test_random_numbers_have_their_distribution() -> None:
    file = File()
    graph = file.graph
    shape = graph.constant(np.int32([100, 200]))
    normal = graph.op("RANDOM_STANDARD_NORMAL", [shape], {"seed": 3}, kind="RandomOptions", shapes=[(100, 200)])
    even = graph.op("RANDOM_UNIFORM", [shape], {"seed": 3}, kind="RandomOptions", shapes=[(100, 200)])
    first, second = pf.run(file.data(normal, even), {}).values()
    assert first.shape == second.shape == (100, 200)
    assert abs(first.mean()) < 0.03
    assert abs(first.std() - 1) < 0.03
    assert abs(second.mean() - 0.5) < 0.02
    assert second.min() >= 0
    assert second.max() < 1
