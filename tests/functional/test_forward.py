"""Models inside of models: what stands before and after a network becomes part of it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from PIL import Image

import perframe as pf
from perframe.errors import InputError
from perframe.ir import Model
from small import load, node, row

F = pf.functional


def run(model: Model, inputs: dict[str, Any], backend: str, ctx: Any, strict: bool) -> dict[str, Any]:
    with pf.Worker(model, backend, ctx, strict=strict and backend != "cpu") as worker:
        worker.schedule(inputs)
        return {value.name: worker.peek_output(value.name).download_to_array() for value in model.outputs}


def by_onnxruntime(path: Path, inputs: dict[str, Any]) -> list[Any]:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)  # type: ignore[no-any-return]


# --- real models ---


@pytest.fixture(scope="module")
def picture(shared: Path) -> Any:
    with Image.open(shared / "images" / "astronaut.png") as image:
        return np.asarray(image.convert("RGB").resize((320, 240)))


def suppressed(boxes: Any, scores: Any, most: float, least: float) -> list[int]:
    """Greedy suppression in NumPy."""
    kept: list[int] = []
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    for index in np.argsort(-scores, kind="stable"):
        low = np.maximum(boxes[kept, :2], boxes[index, :2])
        common = (np.minimum(boxes[kept, 2:], boxes[index, 2:]) - low).clip(0).prod(-1)
        if scores[index] > least and (common <= most * (areas[kept] + areas[index] - common)).all():
            kept.append(int(index))
    return kept


@pytest.mark.slow  # on a cold cache
def test_a_detector_from_pixels_to_faces(shared: Path, picture: Any, backend: str, backend_context: Any) -> None:
    """Pixels are normalised, and overlapping boxes left out, in the model: as NumPy does around onnxruntime."""
    path = shared / "models" / "ultraface_rfb_320.onnx"
    graph = pf.FunctionalGraph("faces")
    pixels = graph.add_input("uint8", (240, 320, 3), "pixels")
    x = ((pixels.float() - 127) / 128).permute(2, 0, 1)[None]
    scores, boxes = F.forward(pf.load(path), x)
    kept = F.nms(boxes[0], scores[0, :, 1], 0.5, 0.3)
    model = graph.compile(boxes=boxes[0, kept], scores=scores[0, kept, 1], likely=scores[0].argmax(1))
    got = run(model, {"pixels": picture}, backend, backend_context, strict=False)  # the count of boxes is the CPU's
    x = ((picture.astype(np.float32) - 127) / 128).transpose(2, 0, 1)[None]
    all_scores, all_boxes = (value[0] for value in by_onnxruntime(path, {"input": x}))
    chosen = suppressed(all_boxes, all_scores[:, 1], 0.5, 0.3)
    assert len(chosen) >= 1 and all_scores[chosen[0], 1] > 0.9, "there is a face"
    np.testing.assert_allclose(got["boxes"], all_boxes[chosen], atol=2e-4)
    np.testing.assert_allclose(got["scores"], all_scores[chosen, 1], atol=2e-4)
    clear = np.abs(all_scores[:, 0] - all_scores[:, 1]) > 1e-3
    np.testing.assert_array_equal(got["likely"][clear], all_scores.argmax(1)[clear])


def test_a_classifier_with_its_probabilities(shared: Path, backend: str, backend_context: Any) -> None:
    path = shared / "models" / "mnist-12.onnx"
    graph = pf.FunctionalGraph()
    (logits,) = F.forward(
        pf.load(path, optimize=False), (graph.add_input("float32", (28, 28), "pen") * 255)[None, None]
    )
    model = graph.compile(chances=F.softmax(logits, 1)[0], digit=logits.argmax(1))
    pen = np.zeros((28, 28), np.float32)
    pen[4:24, 13:16] = 1  # a one
    got = run(model, {"pen": pen}, backend, backend_context, strict=True)
    (want,) = by_onnxruntime(path, {"Input3": pen[None, None] * 255})
    chances = np.exp(want - want.max()) / np.exp(want - want.max()).sum()
    np.testing.assert_allclose(got["chances"], chances[0], atol=1e-5)
    assert got["digit"] == [1] == want.argmax(1)


# inputs by name: shape and dtype; a speech model has branches, whose bodies read values around them
RUNS = {
    "mnist-12": {"Input3": ((1, 1, 28, 28), np.float32)},
    "silero_vad": {"input": ((1, 512), np.float32), "state": ((2, 1, 128), np.float32), "sr": ((), np.int64)},
    "blaze_face_short_range": {"input": ((1, 128, 128, 3), np.float32)},
}


def snapshot(model: Model) -> list[Any]:
    """All that a model is, as text and with the identities of its constants."""
    layers = [
        (str(layer), layer.epilogue, [(key, str(value)) for key, value in layer.attributes.items() if key != "bodies"])
        for layer in model.layers
    ]
    bodies = [snapshot(body) for layer in model.layers for body in layer.attributes.get("bodies", {}).values()]
    return [
        str(model.inputs),
        str(model.outputs),
        layers,
        {key: id(value) for key, value in model.constants.items()},
        bodies,
    ]


@pytest.mark.slow  # whole networks of others
@pytest.mark.parametrize(("name", "optimize"), [("mnist-12", False), *((name, True) for name in RUNS)])
def test_a_model_alone_in_a_graph_stays_the_same(name: str, optimize: bool, shared: Path) -> None:
    model = pf.load(shared / "models" / f"{name}.onnx", optimize=optimize)
    before = deepcopy(snapshot(model))
    graph = pf.FunctionalGraph()
    made = graph.compile(*F.forward(model, *graph.add_inputs(model)), optimize=optimize)
    assert snapshot(model) == before, "compiling changes no model that is part of another"
    assert [str(value) for value in made.inputs] == [str(value) for value in model.inputs]
    assert made.output_names == model.output_names
    assert {*map(id, made.constants.values())} == {*map(id, model.constants.values())}, "no constant is copied"
    random = np.random.default_rng(3)
    values = {
        key: random.standard_normal(shape).astype(dtype) if shape else np.array(16000, dtype)
        for key, (shape, dtype) in RUNS[name].items()
        if key in {value.name for value in model.inputs}
    }
    want, got = pf.run(model, values), pf.run(made, values)
    for key, value in want.items():
        np.testing.assert_allclose(got[key], value, 1e-5, 1e-5)


def test_optimising_leaves_the_branches_of_a_model_inside(shared: Path) -> None:
    """Passes change bodies in place, so those of the compiled model are its own."""
    model = pf.load(shared / "models" / "silero_vad.onnx", optimize=False)
    before = deepcopy(snapshot(model))
    graph = pf.FunctionalGraph()
    inner = F.forward(model, *graph.add_inputs(model))
    small, plain = graph.compile(*inner), graph.compile(*inner, optimize=False)
    assert snapshot(model) == before
    assert snapshot(small) != snapshot(plain)


# --- small models ---


def doubled() -> Model:
    """y = relu(2 x + b), with an epilogue and names that others have too."""
    nodes = [node("Mul", "x two", "mul"), node("Add", "mul b", "add"), node("Relu", "add", "y")]
    return load(nodes, {"x": ["n", 3], "b": ["n", 3]}, constants={"two": row(2)})


def test_inputs_by_position_by_name_by_list_and_by_dict() -> None:
    graph, model = pf.FunctionalGraph(), doubled()
    x, b = graph.add_input("float32", ("n", 3), "x"), graph.add_input("float32", ("n", 3), "b")
    calls = [
        F.forward(model, [x, b]),
        F.forward(model, x, b),
        F.forward(model, x=x, b=b),
        F.forward(model, {"b": b, "x": x}),
        F.forward(model, x, b=b),
    ]
    values = {"x": np.ones((2, 3), np.float32), "b": -np.arange(6, dtype=np.float32).reshape(2, 3)}
    for got in pf.run(graph.compile(*(y for (y,) in calls)), values).values():
        np.testing.assert_array_equal(got, np.maximum(2 + values["b"], 0))


def test_a_model_may_come_twice() -> None:
    graph, model = pf.FunctionalGraph(), doubled()
    x = graph.add_input("float32", (1, 3), "x")
    (once,) = F.forward(model, x, row(1, 2, 3)[None])
    (twice,) = F.forward(model, once, x)
    made = graph.compile(y=twice, optimize=False)
    assert sum(value is model.constants["two"] for value in made.constants.values()) == 1, "one constant serves both"
    got = pf.run(made, {"x": row(1, 1, 1)[None]})["y"]
    np.testing.assert_array_equal(got, [[7, 9, 11]])


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda x: F.forward(doubled(), x), "still needs the input.s. b: float32"),
        (lambda x: F.forward(doubled(), x, x, x), "takes 2 input.s., and got 3"),
        (lambda x: F.forward(doubled(), x, x, q=x), "has no input 'q'; its inputs are x: float32"),
        (lambda x: F.forward(doubled(), x, x, x=x), "'x' is given by position and by name"),
        (lambda x: F.forward(doubled(), x.int(), x), r"input 'x' is float32, and got int32 \(4, 3\): convert it"),
        (lambda x: F.forward(doubled(), x.t(), x), r"input 'x' has the shape \(n, 3\), and got \(3, 4\)"),
        (lambda x: F.forward(doubled(), x[:2], x), "the dim 'n' is 2 in the input 'x', and 4 in 'b'"),
    ],
)
def test_inputs_are_checked(give: Any, said: str) -> None:
    x = pf.FunctionalGraph().add_input("float32", (4, 3), "x")
    with pytest.raises(InputError, match=said):
        give(x)


# --- layers without a function ---


def test_any_layer_can_be_applied() -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", ("n", 4), "x")
    first, second = F.apply("Split", x, num_outputs=2, axis=1)
    model = graph.compile(y=F.apply("Swish", first, alpha=2.0), z=F.apply("Clip", second, None, 0.5))
    assert {layer.name for layer in model.layers} == {"split", "swish", "clip"}
    given = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)
    made = pf.run(model, {"x": given})
    np.testing.assert_allclose(made["y"], given[:, :2] / (1 + np.exp(-2 * given[:, :2])), rtol=1e-5)
    np.testing.assert_allclose(made["z"], np.minimum(given[:, 2:], 0.5))


def test_what_does_not_fit_a_layer_is_named() -> None:
    x = pf.FunctionalGraph().add_input("float32", (2,), "x")
    with pytest.raises(pf.ModelError, match=r"there is no layer 'my\.domain::Nothing': import the file"):
        F.apply("my.domain::Nothing", x)
    with pytest.raises(pf.InferenceError, match=r"pf\.functional\.apply\(operator='Add'.*Add needs 2 input"):
        F.apply("Add", x)
    with pytest.raises(InputError, match=r"pf\.functional\.apply\(operator=3"):
        F.apply(3, x)  # type: ignore[arg-type]
