"""Models that are saved as .sentis files pass the checker, and give the same outputs when they are loaded again."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf
from files.rewriting import saved
from fuzz.random_graphs.plain import WITHOUT_KERNELS
from importers.sentis_files import complaints
from perframe.backends.cpu import backend as cpu
from perframe.exporters.sentis.table import rules
from perframe.importers.sentis.file import read
from perframe.importers.sentis.kinds import kinds
from perframe.testing import Case, Draw
from small import load, node

LAYERS = Path(__file__).resolve().parents[1] / "layers"
draw = Draw(11)
TAKEN = (np.float32, np.int32, np.int64, np.bool_)
RANDOM = {"Bernoulli", "Dropout", "Multinomial"}  # and all that begins with Random
# kinds that only Unity writes: layers of ours become others
UNITYS = (
    *("AsStrided", "Atan2", "BroadcastArgs", "CastLike", "DenseBatched", "Diagonal", "Expm1", "FloorDiv", "HardTanh"),
    *("Log10", "Log1p", "Log2", "Mean", "MoveDim", "Narrow", "NotEqual", "ReduceVariance", "Relu6", "Rsqrt", "Select"),
    *("SliceSet", "Square", "Sum", "Trunc", "TruncDiv"),
)
OTHERS = ("test_contrib_models", "test_outside")
TESTED_BELOW = ("Bernoulli", "DequantizeUint8", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform")
TESTED_BELOW += ("RandomUniformLike",)


def sentis(model: pf.Model) -> bytes:
    return saved(model, name="m.sentis")


def narrowed(array: Any) -> Any:
    """An array as Unity has it: whole numbers and bools are int32."""
    return array.astype(np.int32) if array.dtype in (np.int64, np.bool_) else array


def assert_same(found: Any, wanted: Any) -> None:
    wanted = narrowed(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    most = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-6 * float(most))


def cases_of(module: Path) -> Iterator[Case]:
    """The cases in the lists of a file of tests: of each operator, one with inputs that Unity does not have."""
    seen = set()
    for value in vars(importlib.import_module(f"layers.{module.stem}")).values():
        for case in value if isinstance(value, list) else ():
            if isinstance(case, Case):
                if any(x is not None and x.dtype not in TAKEN for x in case.inputs):
                    if case.op in seen:
                        continue
                    seen.add(case.op)
                yield case


@pytest.mark.parametrize("module", sorted(LAYERS.glob("test_*.py")), ids=lambda path: path.stem[5:])
def test_layers_give_the_same(module: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every case of every layer, before and after the way through a .sentis file. What cannot be written says why.

    NumPy computes them: the kernels are the same.
    """
    if module.stem in OTHERS:
        pytest.skip("these need PyTorch, or operators of the test")
    monkeypatch.setattr(cpu, "reference", WITHOUT_KERNELS)
    for case in cases_of(module):
        try:
            model = pf.load(case.proto(), optimize=False)
        except pf.PerframeError:  # other tests say why
            continue
        try:
            data = sentis(model)
        except pf.ModelError as error:
            assert "a .sentis file cannot express" in str(error), case
            continue
        try:
            wanted = pf.run(model, case.fed)
        except pf.PerframeError:
            continue
        assert complaints(shared, data) == [], case
        found = pf.run(pf.load(data, optimize=False), {name: narrowed(x) for name, x in case.fed.items()})
        for name, made in found.items():
            if case.op in RANDOM or case.op.startswith("Random"):
                assert made.shape == wanted[name].shape and made.dtype == narrowed(wanted[name]).dtype
            else:
                assert_same(made, wanted[name])


@pytest.mark.slow
def test_the_cases_cover_all_kinds_that_are_written() -> None:
    written: set[str] = set()
    for module in LAYERS.glob("test_*.py"):
        for case in cases_of(module) if module.stem not in OTHERS else ():
            try:
                data = sentis(pf.load(case.proto(), optimize=False))
            except pf.PerframeError:
                continue
            written |= {operation.kind for operation in read(data, "m").operations}
    assert kinds().keys() - written == {*UNITYS, *TESTED_BELOW}


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(
    "name",
    ["mnist-12.onnx", "ultraface_rfb_320.onnx", "blaze_face_short_range.onnx", "selfie_segmentation.onnx"],
)
def test_real_models_give_the_same(name: str, optimize: bool, shared: Path) -> None:
    model = pf.load(shared / "models" / name, optimize=optimize)
    data = sentis(model)
    assert complaints(shared, data) == []
    again = pf.load(data, optimize=optimize)
    inputs = {value.name: draw(*value.shape.to_shape()) for value in model.inputs if value.shape is not None}
    wanted = pf.run(model, inputs)
    for key, found in pf.run(again, inputs).items():
        assert_same(found, wanted[key])


@pytest.mark.parametrize("name", ["digits", "life", "painter", "talk", "voice"])
def test_shipped_models_give_the_same(name: str, shared: Path) -> None:
    """Their named dims stay, and so do shapes that follow from them."""
    model = pf.load(name)
    data = sentis(model)
    assert complaints(shared, data) == []
    again = pf.load(data)
    assert [value.shape for value in again.outputs] == [value.shape for value in model.outputs]
    inputs = {}
    for value in model.inputs:
        shape = [dim if isinstance(dim, int) else 2 for dim in value.shape or ()]
        inputs[value.name] = draw(*shape, low=0, high=3, dtype=value.dtype.numpy)
    wanted = pf.run(model, inputs)
    for key, found in pf.run(again, inputs).items():
        assert_same(found, wanted[key])


@pytest.mark.parametrize("name", ["mnist8_v4", "xrhands_gesture_v3"])
def test_real_files_are_written_again(name: str, shared: Path) -> None:
    model = pf.load(shared / "sentis" / "files" / f"{name}.sentis")
    data = sentis(model)
    assert complaints(shared, data) == []
    inputs = {value.name: draw(*value.shape.to_shape()) for value in model.inputs if value.shape is not None}
    wanted = pf.run(model, inputs)
    for key, found in pf.run(pf.load(data), inputs).items():
        assert_same(found, wanted[key])


def test_other_formats(tmp_path: Path, shared: Path) -> None:
    """A .sentis file becomes an ONNX file and one of perframe's own."""
    source = shared / "sentis" / "files" / "mnist8_v4.sentis"
    x = draw(1, 1, 28, 28)
    wanted = pf.run(source, x)["Plus214_Output_0"]
    for name in ("m.onnx", "m.perframe", "m.sentis"):
        pf.save(pf.load(source), tmp_path / name)
        assert_same(pf.run(tmp_path / name, x)["Plus214_Output_0"], wanted)


def version_of(op: str, *inputs: Any, **attributes: Any) -> int:
    case = Case("", op, inputs, attributes, constants=range(1, len(inputs)))
    return read(sentis(pf.load(case.proto(), optimize=False)), "m").version


def test_the_oldest_version_is_written() -> None:
    x, w = draw(1, 4, 6, 6), draw(4, 1, 3, 3)
    assert version_of("Relu", x) == 2
    assert version_of("RMSNormalization", x, draw(6)) == 4
    assert version_of("Mish", x) == 5
    assert version_of("ConvTranspose", x, w) == 2
    assert version_of("ConvTranspose", x, w, group=4) == 6
    assert version_of("BitwiseNot", np.arange(3, dtype=np.int32)) == 7
    assert version_of("Swish", x) == 2
    assert version_of("Swish", x, alpha=2.0) == 8
    index = np.zeros((1, 1, 1, 1), np.int64)
    assert version_of("ScatterElements", x, index, x[:, :1, :1, :1], reduction="add") == 2
    assert version_of("ScatterElements", x, index, x[:, :1, :1, :1], reduction="max") == 5


def test_dims() -> None:
    """Names of dims need version 5. Dims that are open without a name do not."""
    for dims, version in ((("batch", 3, "batch"), 5), ((None, 3, None), 2)):
        data = sentis(load([node("Relu", "x", "y")], {"x": dims}))
        model = pf.load(data)
        assert read(data, "m").version == version
        assert model.inputs[0].shape == (dims if version == 5 else ("d0", 3, "d1"))


def test_whole_numbers_become_int32() -> None:
    model = load([node("Add", "x c", "y")], {"x": (3,)}, constants={"c": np.array(2)}, dtypes={"x": "int64"})
    again = pf.load(sentis(model))
    assert again.inputs[0].dtype == again.outputs[0].dtype == "int32"
    assert pf.run(again, np.arange(3))["y"].tolist() == [2, 3, 4]


def test_random_numbers(shared: Path) -> None:
    nodes = [
        node("RandomNormalLike", "x", "normal", mean=3.0, scale=0.5, seed=7.0),
        node("RandomUniformLike", "x", "like", low=0.0, high=2.0),
        node("RandomUniform", "", "uniform", shape=[40, 50], low=-1.0, high=1.0),
        node("RandomNormal", "", "other", shape=[40, 50]),
        node("Mul", "x zero", "z"),
        node("Add", "z quarter", "p"),
        node("Bernoulli", "p", "coin"),
        node("Multinomial", "logs", "drawn", sample_size=2000),
    ]
    for one in nodes:
        if list(one.input) == [""]:
            del one.input[:]
    constants = {"zero": np.float32(0), "quarter": np.float32(0.25), "logs": np.log(np.float32([[0.2, 0.8]]))}
    model = load(nodes, {"x": (40, 50)}, "normal like uniform other coin drawn", constants, optimize=False)
    data = sentis(model)
    assert complaints(shared, data) == []
    normal, like, uniform, other, coin, drawn = pf.run(pf.load(data), draw(40, 50)).values()
    assert abs(normal.mean() - 3) < 0.1 and abs(normal.std() - 0.5) < 0.05
    assert 0 <= like.min() < 0.1 and 1.9 < like.max() <= 2
    assert -1 <= uniform.min() < -0.9 and 0.9 < uniform.max() <= 1
    assert abs(other.mean()) < 0.1 and abs(other.std() - 1) < 0.1
    assert set(np.unique(coin)) == {0, 1} and abs(coin.mean() - 0.25) < 0.1
    assert drawn.dtype == np.int32 and abs(drawn.mean() - 0.8) < 0.1


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_quantized_weights(dtype: str, shared: Path) -> None:
    """Weights of uint8 with one scale stay small, others become floats."""
    weights = np.arange(12, dtype=dtype).reshape(3, 4)
    model = load(
        [node("DequantizeLinear", "w s z", "v"), node("MatMul", "x v", "y")],
        {"x": (2, 3)},
        constants={"w": weights, "s": np.float32(0.5), "z": np.array(3, dtype)},
        optimize=False,
    )
    data = sentis(model)
    assert complaints(shared, data) == []
    assert ("DequantizeUint8" in [one.kind for one in read(data, "m").operations]) is (dtype == "uint8")
    x = draw(2, 3)
    assert_same(pf.run(pf.load(data), x)["y"], pf.run(model, x)["y"])


def test_products_with_weights_are_dense_layers() -> None:
    """As Unity's own importer makes them, whose kinds have fast kernels there."""
    x, w, b = draw(2, 3), draw(4, 3), draw(4)
    model = load([node("Gemm", "x w b", "y", transB=1)], {"x": (2, 3)}, constants={"w": w, "b": b})
    data = sentis(model)
    assert [one.kind for one in read(data, "m").operations] == ["Dense"]
    np.testing.assert_allclose(pf.run(pf.load(data), x)["y"], x @ w.T + b, 1e-5, 1e-6)


def test_all_that_cannot_be_written_is_listed() -> None:
    nodes = [
        node("Unique", "x", "u", axis=0),
        node("Cast", "x", "d", to=TensorProto.DOUBLE),
        node("Neg", "d", "e"),
        node("MaxPool", "p", "m", kernel_shape=[2, 2], dilations=[2, 2]),
        node("GRU", "s w r", "g h", hidden_size=2),
        node("Add", "i big", "y"),
    ]
    model = load(
        nodes,
        {"x": (3, 4), "p": (1, 1, 6, 6), "s": (5, 1, 3), "i": (3,)},
        "u e m g h y",
        {"w": draw(1, 6, 3), "r": draw(1, 6, 2), "big": np.array(2**40)},
        {"i": "int64"},
        optimize=False,
    )
    with pytest.raises(pf.ModelError) as raised:
        sentis(model)
    lines = str(raised.value).splitlines()
    assert lines[0] == "small: a .sentis file cannot express 6 part(s) of it:"
    assert [line.split("(")[0].strip() for line in lines[1:]] == [
        f"layer {name!r}" for name in ("u", "d", "e", "m", "g", "y")
    ]
    for part in (
        "compose it of others",
        "Unity has float32",
        "narrow_doubles=True",
        "dilations",
        "LSTM",
        "beyond int32",
    ):
        assert part in str(raised.value), part


def test_inputs_that_unity_does_not_have() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, (2, 3))
    free = helper.make_tensor_value_info("free", TensorProto.FLOAT, None)
    ends = [onnx.ValueInfoProto(name="y"), onnx.ValueInfoProto(name="z")]
    nodes = [node("Cast", "x", "y", to=TensorProto.FLOAT), node("Relu", "free", "z")]
    graph = helper.make_graph(nodes, "m", [x, free], ends)
    model = pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    with pytest.raises(pf.ModelError, match=r"input 'x': it is uint8[^\0]*input 'free': its rank is unknown"):
        sentis(model)


def test_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load([node("Relu", "x", "y")], {"x": (3,)})
    with pytest.raises(pf.InputError, match="encrypted"):
        pf.save(model, tmp_path / "m.sentis", key="secret")
    assert not list(tmp_path.iterdir())
    pf.save(model, tmp_path / "M.SENTIS")
    before = (tmp_path / "M.SENTIS").read_bytes()
    assert before == sentis(model)

    def fails(*_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(pf.ModelError, match="no space"):
        pf.save(load([node("Neg", "x", "y")], {"x": (3,)}), tmp_path / "M.SENTIS")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_every_rule_is_for_an_operator() -> None:
    assert all(onnx.defs.has(op) for op in rules())
