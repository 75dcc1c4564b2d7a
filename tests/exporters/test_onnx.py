"""Models that are saved as ONNX files give the same outputs in onnxruntime, and the same ones in perframe again."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import perframe as pf
from exporters.compared import assert_same, exported, run
from files.rewriting import saved
from models.zoo import ZOO, Entry, given
from perframe.backends import evaluator
from perframe.command_line.sources import named_model
from perframe.exporters import onnx as exporter
from perframe.ir import Value
from perframe.passes import prepare
from perframe.testing import Case, Draw
from small import load, node

LAYERS = Path(__file__).resolve().parents[1] / "layers"
LIGHT = ("light_shufflenet", "light_inception_v1", "light_inception_v2", "light_densenet121")
draw = Draw(5)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("entry", ZOO, ids=str)
def test_real_models_give_the_same(entry: Entry, optimize: bool, shared: Path) -> None:
    model = pf.load(entry.file, optimize=optimize)
    inputs = {model.inputs[0].name: given(entry, None)}
    assert_same(run(exported(model), inputs), run(entry.file, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("name", LIGHT)
def test_light_models_give_the_same(name: str) -> None:
    source = named_model(name)
    assert isinstance(source, bytes)
    model = pf.load(source)
    inputs = {value.name: draw(*value.shape.to_shape()) for value in model.inputs if value.shape is not None}
    assert_same(run(exported(model), inputs), run(source, inputs))


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", ["silero_vad", "silero_vad_op18_ifless"])
def test_branches_within_branches_give_the_same(name: str, optimize: bool, shared: Path) -> None:
    path = shared / "models" / f"{name}.onnx"
    data = exported(pf.load(path, optimize=optimize))
    for rate, length in ((16000, 512), (8000, 256)):
        inputs = {"input": draw(1, length), "state": draw(2, 1, 128), "sr": np.array(rate, np.int64)}
        assert_same(run(data, inputs), run(path, inputs))


def cases_of(module: Path) -> Iterator[Case]:
    """The cases in the lists of a file of tests."""
    for value in vars(importlib.import_module(f"layers.{module.stem}")).values():
        if isinstance(value, list):
            yield from (item for item in value if isinstance(item, Case))


# weights that only a run knows make int32 convolutions, which ONNX has for bytes alone; one mean is of another type
INEXPRESSIBLE = ("Conv", "LayerNormalization")


@pytest.mark.parametrize("module", sorted(LAYERS.glob("test_*.py")), ids=lambda path: path.stem[5:])
def test_layers_give_the_same(module: Path) -> None:
    """Every case of every layer, in onnxruntime: before and after the way through perframe."""
    if module.stem in ("test_contrib_models", "test_outside"):  # they need PyTorch, or operators of the test
        pytest.skip("onnxruntime cannot run these")
    for case in cases_of(module):
        proto = case.proto()
        try:
            want = run(proto.SerializeToString(), case.fed)
        except Exception:  # onnxruntime has no such kernel
            continue
        try:
            data = exported(pf.load(proto, optimize=False))
        except pf.ModelError as error:
            assert any(f"({op}): its" in str(error) for op in INEXPRESSIBLE), (case, error)
            continue
        for got, value in zip(run(data, case.fed), want, strict=True):
            assert_same(got, value, max(case.rtol, 1e-5), max(case.atol, 1e-6))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("width", [4, 8])
def test_rotations_are_spelled_out(interleaved: int, width: int) -> None:
    given = [draw(2, 3, 5, 8), draw(5, width), draw(2, 1, 5, width)]
    case = Case("", "RotatePairs", given, {"interleaved": interleaved})
    proto = case.proto()
    model = pf.load(proto, optimize=False)
    assert_same(run(exported(model), case.fed), case.expected(proto))
    assert [layer.op for layer in pf.load(exported(model)).layers].count("RotatePairs") == 1


# --- layers of our own ---


def test_a_prepared_model_is_spelled_out(shared: Path) -> None:
    """Channels last, addends, factors and nested epilogues become ONNX's layers."""
    entry = next(entry for entry in ZOO if entry.name == "selfie_segmentation")
    model = pf.load(entry.file)
    prepared = prepare(model, evaluator(), "cpu")
    assert any(layer.channels_last for layer in prepared.layers)
    assert any(len(layer.inputs) > 3 for layer in prepared.layers if layer.op == "Conv")
    inputs = {model.inputs[0].name: given(entry, None)}
    assert_same(run(exported(prepared), inputs), run(entry.file, inputs))


@pytest.mark.parametrize("turned", [(), ("transB",), ("transA",), ("transA", "transB")], ids=str)
def test_transposed_operands_of_a_product_are_spelled_out(turned: tuple[str, ...]) -> None:
    shapes = {"x": (2, 5, 3) if "transA" in turned else (2, 3, 5), "z": (7, 5) if "transB" in turned else (5, 7)}
    values = [Value(name, pf.DataType.FLOAT32, pf.DynamicTensorShape(shape)) for name, shape in shapes.items()]
    layer = pf.Layer("MatMul", "product", ["x", "z"], ["y"], dict.fromkeys(turned, 1))
    model = pf.Model(values, [Value("y", pf.DataType.FLOAT32, None)], [layer], {})
    inputs = {name: draw(*shape) for name, shape in shapes.items()}
    x = inputs["x"].swapaxes(1, 2) if "transA" in turned else inputs["x"]
    z = inputs["z"].T if "transB" in turned else inputs["z"]
    assert_same(run(exported(model), inputs)[0], x @ z)


def test_a_piece_that_nothing_reads_has_a_name_in_the_file() -> None:
    x, shape = draw(3, 4), pf.DynamicTensorShape((3, 4))
    layer = pf.Layer("Split", "cut", ["x"], ["y"], {"axis": 1, "num_outputs": 2})
    value = Value("x", pf.DataType.FLOAT32, shape)
    model = pf.Model([value], [Value("y", pf.DataType.FLOAT32, None)], [layer], {})
    assert_same(run(exported(model), {"x": x})[0], x[:, :2])


def test_an_addend_of_fewer_channels_is_padded() -> None:
    layer = pf.Layer("Conv", "conv", ["x", "w", "", "a"], ["y"])
    shapes = {"x": (1, 3, 4, 4), "a": (1, 2, 4, 4)}
    values = [Value(name, pf.DataType.FLOAT32, pf.DynamicTensorShape(shape)) for name, shape in shapes.items()]
    out = Value("y", pf.DataType.FLOAT32, None)
    model = pf.Model(values, [out], [layer], {"w": draw(5, 3, 1, 1)})
    inputs = {name: draw(*shape) for name, shape in shapes.items()}
    plain = load([node("Conv", "x w", "y")], {"x": [1, 3, 4, 4]}, constants={"w": model.constants["w"]})
    want = pf.run(plain, {"x": inputs["x"]})["y"]
    want[:, :2] += inputs["a"]
    assert_same(run(exported(model), inputs)[0], want)


def test_a_table_of_rows_is_compressed_wherever_it_comes_from() -> None:
    table = np.array([[0, 1, 2], [-1, -1, -1], [3, 4, 5]], np.int64)
    spec = Value("x", pf.DataType.INT64, pf.DynamicTensorShape((3, 3)))
    rows = Value("y", pf.DataType.INT64, None)
    model = pf.Model([spec], [rows], [pf.Layer("FilledRows", "rows", ["x"], ["y"])], {})
    assert_same(run(exported(model), {"x": table})[0], table[[0, 2]])


def test_whole_numbers_are_convolved_as_bytes() -> None:
    x, w = draw(1, 2, 5, 5, high=200, dtype=np.uint8), draw(3, 2, 3, 3, low=-100, high=100, dtype=np.int8)
    zero = np.array(7, np.uint8)
    model = load([node("ConvInteger", "x w z", "y")], {}, constants={"w": w, "z": zero, "x": x}, optimize=False)
    assert_same(run(exported(model), {})[0], pf.run(model, {})["y"])


def test_names_and_open_dims_stay() -> None:
    model = load([node("Relu", "x", "y")], {"x": ["batch", 3, None]})
    proto = onnx.ModelProto.FromString(exported(model))
    dims = proto.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 3, 0]
    assert [proto.graph.input[0].name, proto.graph.output[0].name, proto.producer_name] == ["x", "y", "perframe"]


def test_outputs_that_no_layer_makes_are_there() -> None:
    """A constant, and an input."""
    shape = pf.DynamicTensorShape((2,))
    given_value, constant = (Value(name, pf.DataType.FLOAT32, shape) for name in "xc")
    y = Value("y", pf.DataType.FLOAT32, shape)
    array = np.array([1, 2], np.float32)
    model = pf.Model(
        [given_value], [constant, y, given_value], [pf.Layer("Add", "sum", ["x", "c"], ["y"])], {"c": array}
    )
    x = np.array([3, 4], np.float32)
    got = run(saved(model, name="m.onnx"), {"x": x})
    for one, other in zip(got, (array, array + x, x), strict=True):
        assert_same(one, other)


def test_bodies_share_names_and_weights_with_what_is_around_them() -> None:
    """Both bodies call their values like the graph around them, and one gives back what it captures."""
    bool_, float_ = pf.DataType.BOOL, pf.DataType.FLOAT32
    row = pf.DynamicTensorShape((3,))
    weights = np.arange(3, dtype=np.float32)
    captured, out = Value("around", float_, row), Value("y", float_, row)
    adds = pf.Model([captured], [out], [pf.Layer("Add", "sum", ["around", "w"], ["y"])], {"w": weights}, "then")
    returns = pf.Model([captured], [captured], [], {}, "else")
    attributes = {"bodies": {"then_branch": adds, "else_branch": returns}, "captures": ("around",)}
    model = pf.Model(
        [Value("x", float_, row), Value("c", bool_, pf.DynamicTensorShape(()))],
        [out],
        [pf.Layer("Mul", "sum", ["x", "w"], ["m"]), pf.Layer("If", "if", ["c", "m"], ["y"], attributes)],
        {"w": weights},
    )
    data = exported(model)
    x = np.ones(3, np.float32)
    for condition, want in ((True, 2 * weights), (False, weights)):
        assert_same(run(data, {"x": x, "c": np.array(condition)})[0], want)
        assert_same(pf.run(data, {"x": x, "c": np.array(condition)})["y"], want)
    proto = onnx.ModelProto.FromString(data)
    bodies = [attribute.g for made in proto.graph.node for attribute in made.attribute if attribute.HasField("g")]
    assert len(bodies) == 2 and not any(body.initializer for body in bodies)
    names = [name for graph in (proto.graph, *bodies) for made in graph.node for name in made.output]
    assert len(set(names)) == len(names)


def test_a_domain_from_outside_stays() -> None:
    @pf.layers.elementwise((-3, 3), domain="tests.exporters")
    def Twice(x):
        return x + x

    inner = node("Twice", "x", "y", domain="tests.exporters")
    graph = onnx.helper.make_graph(
        [inner],
        "outside",
        [onnx.helper.make_tensor_value_info("x", 1, [2])],
        [onnx.helper.make_tensor_value_info("y", 1, [2])],
    )
    imports = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("tests.exporters", 1)]
    data = exported(pf.load(onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)))
    proto = onnx.ModelProto.FromString(data)
    assert (proto.graph.node[0].domain, proto.graph.node[0].op_type) == ("tests.exporters", "Twice")
    x = np.array([1, 2], np.float32)
    assert_same(pf.run(data, {"x": x})["y"], x + x)


# --- large weights, and what cannot be saved ---


def test_large_weights_lie_in_a_second_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "MAX_INSIDE", 3000)
    weights = {"w": draw(40, 50), "small": draw(50), "other": draw(50, 30)}
    nodes = [node("MatMul", "x w", "a"), node("Add", "a small", "b"), node("MatMul", "b other", "y")]
    model = load(nodes, {"x": [2, 40]}, constants=weights, optimize=False)
    path = tmp_path / "m.onnx"
    pf.save(model, path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    assert path.stat().st_size < 2000
    inputs = {"x": draw(2, 40)}
    want = (inputs["x"] @ weights["w"] + weights["small"]) @ weights["other"]
    assert_same(run(path, inputs)[0], want)
    back = pf.load(path, optimize=False)
    assert all(np.array_equal(back.constants[name], value) for name, value in weights.items())
    pf.save(back, path)  # over the files that it was loaded from
    assert_same(run(path, inputs)[0], want)
    with pytest.raises(pf.ModelError, match="save it to a path, so that a second file can lie beside it"):
        saved(model, name="m.onnx")


def test_a_failure_leaves_the_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "MAX_INSIDE", 100)
    model = load([node("MatMul", "x w", "y")], {"x": [2, 40]}, constants={"w": draw(40, 50)})
    pf.save(model, tmp_path / "m.onnx")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    calls = itertools.count()

    def fails(_: int) -> None:
        if next(calls):
            raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", fails)
    model.value("w").constant = model.constants["w"] * 2
    with pytest.raises(pf.ModelError, match="the disk is full"):
        pf.save(model, tmp_path / "m.onnx")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_all_that_onnx_cannot_express_is_listed() -> None:
    byte, row = pf.DataType.UINT8, pf.DynamicTensorShape((4,))
    layers = [pf.Layer("LookUp", name, ["x", "t"], [name]) for name in ("first", "second")]
    outputs = [Value(layer.name, byte, row) for layer in layers]
    model = pf.Model([Value("x", byte, row)], outputs, layers, {"t": np.arange(256, dtype=np.uint8)})
    with pytest.raises(pf.ModelError, match=r"(?s)2 layer\(s\).*'first' \(LookUp\).*no such operator.*'second'"):
        saved(model, name="m.onnx")


def test_an_onnx_file_takes_no_key() -> None:
    with pytest.raises(pf.InputError, match="an ONNX file cannot be encrypted"):
        saved(load([node("Relu", "x", "y")], {"x": [1]}), key=bytes(32), name="m.onnx")


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("kept", [0, 1, 2])
@pytest.mark.parametrize("op", ["TopK", "DynamicQuantizeLinear", "Unique"])
def test_outputs_that_nobody_reads_may_be_absent(op: str, kept: int, optimize: bool) -> None:
    outputs = ["a", "b", "c"][: 2 if op == "TopK" else 3]
    if kept >= len(outputs):
        return
    read = outputs[kept]
    attributes = {"sorted": 1} if op == "Unique" else {}
    nodes = [
        node(op, "x k" if op == "TopK" else "x", " ".join(outputs), **attributes),
        node("Cast", read, "y", to=onnx.TensorProto.FLOAT),
    ]
    constants = {"k": np.array([2], np.int64)} if op == "TopK" else {}
    model = load(nodes, {"x": [3, 5]}, constants=constants, optimize=optimize)
    x = draw.numbers(3, 5) if hasattr(draw, "numbers") else np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
    np.testing.assert_allclose(run(exported(model), {"x": x})[0], pf.run(model, {"x": x})["y"], rtol=1e-6)
