"""Models come back from files as they were: layers, attributes, constants of every dtype, and results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import perframe as pf
from files.rewriting import Parts, saved
from models.zoo import ZOO, Entry, given
from perframe.command_line.sources import loaded_model
from perframe.files.graph import described
from perframe.ir import Value
from perframe.ir.arrangement import Arrangement
from perframe.ir.declaration import registry
from perframe.ir.epilogue import Stage
from perframe.tensor import DataType
from small import load, node

SMALL = [entry for entry in ZOO if entry.small]


def facts(model: pf.Model) -> Any:
    """All that a file keeps of a model but its name, with the values of its arrays in place of their keys."""

    def key_of(_name: str, array: Any) -> Any:
        values = array.tolist() if array.dtype == object else np.ascontiguousarray(array).tobytes()
        return DataType.of(array.dtype), array.shape, values

    return described(model, key_of) | {"name": ""}


def small() -> pf.Model:
    """A convolution with an epilogue that nests, and a product with a bias."""
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Sigmoid", "c", "s"),
        node("Mul", "c s", "m"),
        node("ReduceMean", "m", "r", keepdims=0),
        node("MatMul", "v u", "p"),
        node("Add", "p r", "y"),
    ]
    random = np.random.default_rng(3)
    constants = {"w": random.normal(size=(4, 3, 3, 3)).astype(np.float32), "u": np.eye(8, dtype=np.float32)}
    return load(nodes, {"x": [1, 3, "height", None], "v": [2, 8]}, constants=constants)


def values_of(dtype: DataType) -> Any:
    """Nine values, so that the last byte of packed numbers is not full."""
    if dtype is DataType.STRING:
        return np.array(["", "a", "ä\0\n", "日本", '"', "\\", "x" * 300, "\ud800", "z"], object).reshape(3, 3)
    numbers = np.arange(9) % (2 if "2" in dtype.value[-2:] and dtype.value.startswith(("int", "uint")) else 7)
    return numbers.astype(np.float32).astype(dtype.numpy).reshape(3, 3)


@pytest.mark.parametrize("dtype", DataType, ids=str)
@pytest.mark.parametrize("shape", [(3, 3), (), (0, 2)], ids=str)
def test_constants_of_every_dtype_come_back(dtype: DataType, shape: tuple[int, ...]) -> None:
    array = np.resize(values_of(dtype), shape) if shape != (3, 3) else values_of(dtype)
    array = np.asarray(array, dtype.numpy)
    value = Value("y", dtype, pf.DynamicTensorShape(shape))
    model = pf.Model([], [value], [pf.Layer("Identity", "same", ["c"], ["y"])], {"c": array})
    back = pf.load(saved(model), optimize=False)
    found = back.constants["c"]
    assert found.dtype == array.dtype and found.shape == array.shape
    assert found.tolist() == array.tolist() if dtype is DataType.STRING else found.tobytes() == array.tobytes()
    assert not found.flags.writeable


def test_numbers_of_less_than_a_byte_are_packed() -> None:
    array = np.ones(10_000, DataType.INT4.numpy)
    value = Value("y", DataType.INT4, pf.DynamicTensorShape((10_000,)))
    model = pf.Model([], [value], [pf.Layer("Identity", "same", ["c"], ["y"])], {"c": array})
    assert len(saved(model)) < 6000


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("entry", SMALL, ids=str)
def test_models_come_back_whole(entry: Entry, optimize: bool, shared: Path) -> None:
    model = pf.load(entry.file, optimize=optimize)
    back = pf.load(saved(model), optimize=optimize)
    assert facts(back) == facts(model)
    assert back.optimized is optimize


@pytest.mark.parametrize("entry", SMALL[:3], ids=str)
def test_results_are_the_same_on_every_backend(entry: Entry, backend: str, backend_context: Any, shared: Path) -> None:
    model = pf.load(entry.file)
    inputs = {model.inputs[0].name: given(entry, None)}
    first, second = (pf.run(one, inputs, backend, ctx=backend_context) for one in (model, pf.load(saved(model))))
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value)


def test_branches_and_loops_come_back(shared: Path) -> None:
    """Silero has branches within branches; their bodies read outer values and share weights."""
    model = pf.load(shared / "models" / "silero_vad.onnx")
    data = saved(model)
    assert facts(pf.load(data)) == facts(model)
    parts = Parts.of(data)
    assert "bodies" in str(parts.layers)
    assert len(parts.body) == sum(array.nbytes for array in arrays_of(model).values())


def arrays_of(model: pf.Model) -> dict[int, Any]:
    """The constants of a model and of its bodies, each once."""
    found = {id(array): array for array in model.constants.values()}
    for layer in model.layers:
        found |= {id(value): value for value in layer.attributes.values() if isinstance(value, np.ndarray)}
        for body in layer.attributes.get("bodies", {}).values():
            found |= arrays_of(body)
    return found


def test_a_prepared_model_comes_back() -> None:
    """With its channels last, an addend, a nested epilogue, and attributes that are not numbers."""
    conv = pf.Layer("Conv", "conv", ["x", "w", "", "a"], ["y"], channels_last=True, on_host=False)
    stage = Stage("Mul", (), (None, (Stage("Sigmoid", (), (None,)), Stage("Clip", (), (None, float("-inf"), 6.0)))))
    conv.epilogue = (stage,)
    views = (Arrangement.of(2), Arrangement.of(2).swapped(), Arrangement.of(2))
    attend = pf.Layer("DotProductAttention", "attend", ["q", "q", "q"], ["z"], {"views": views, "fill": float("-inf")})
    cast = pf.Layer("Cast", "cast", ["z"], ["h"], {"to": DataType.FLOAT16}, on_host=True)
    shapes = {"x": (1, 5, 5, 2), "a": (1, 5, 5, 2), "q": (2, 4)}
    model = pf.Model(
        [Value(name, DataType.FLOAT32, pf.DynamicTensorShape(shape)) for name, shape in shapes.items()],
        [Value("y", DataType.FLOAT32, pf.DynamicTensorShape(shapes["x"])), Value("h", DataType.FLOAT16, None)],
        [conv, attend, cast],
        {"w": np.ones((2, 2, 1, 1), np.float32)},
    )
    assert facts(pf.load(saved(model), optimize=False)) == facts(model)


def test_a_path_bytes_and_a_file_are_told_by_their_content(tmp_path: Path) -> None:
    model = small()
    path = tmp_path / "model.onnx.old"
    with pytest.raises(pf.InputError, match=r"a model is not saved as \.old"):
        pf.save(model, path)
    pf.save(model, tmp_path / "model")
    (tmp_path / "model").rename(path)
    with path.open("rb") as file:
        from_file = pf.load(file)
    for back in (pf.load(path), pf.load(str(path)), pf.load(path.read_bytes()), from_file):
        assert facts(back) == facts(model)
    assert pf.load(path.rename(tmp_path / "model.onnx")).layers[0].epilogue


def test_files_with_a_plain_graph_are_read() -> None:
    """Version 1 of the format."""
    model = small()
    parts = Parts.of(saved(model))
    assert parts.metadata["perframe"] == "2"
    parts.metadata["perframe"] = "1"
    data = parts.sealed()
    assert b'"op\\"' in data
    assert facts(pf.load(data)) == facts(model)


def test_a_graph_that_would_become_too_small_stays_plain() -> None:
    model = small()
    model.producer = "a" * 1_000_000
    data = saved(model)
    assert Parts.of(data).metadata["perframe"] == "1"
    assert pf.load(data).producer == model.producer


def test_the_library_of_safetensors_reads_the_tensors(tmp_path: Path) -> None:
    model = small()
    pf.save(model, tmp_path / "m.perframe")
    with safe_open(tmp_path / "m.perframe", "np") as file:
        assert set(file.metadata()) == {"perframe", "graph", "checksum"}
        assert set(file.keys()) == set(model.constants)
        for name, value in model.constants.items():
            np.testing.assert_array_equal(file.get_tensor(name), value)


def test_weights_are_views_of_the_file_on_lines_of_the_cache(tmp_path: Path) -> None:
    arrays = {"odd": np.ones(3, np.int8), "half": np.ones(7, np.float16), "weights": np.ones((8, 16), np.float32)}
    names = list(arrays)
    values = [Value(f"{name} out", DataType.of(arrays[name].dtype), None) for name in names]
    layers = [pf.Layer("Identity", name, [name], [f"{name} out"]) for name in names]
    pf.save(pf.Model([], values, layers, arrays), tmp_path / "m.perframe")
    back = pf.load(tmp_path / "m.perframe", optimize=False)
    for array in back.constants.values():
        assert not array.flags.owndata and not array.flags.writeable and array.flags.aligned
    assert back.constants["weights"].ctypes.data % 64 == 0


def test_loading_imports_no_onnx(tmp_path: Path) -> None:
    pf.save(small(), tmp_path / "m.perframe")
    code = "import sys, perframe as pf; pf.load(sys.argv[1]); sys.exit('onnx' in sys.modules)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.perframe")], check=True)


def test_an_optimised_model_needs_no_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    data, model, ran = saved(small()), small(), []
    monkeypatch.setattr("perframe.passes.optimize", lambda *_: ran.append(1))
    pf.load(data)
    assert not ran
    pf.load(data, dims={"height": 4})  # a fixed dim may let passes do more
    model.optimized = False
    pf.load(saved(model))
    assert len(ran) == 2


def test_a_file_is_replaced_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, model = tmp_path / "m.perframe", small()
    pf.save(model, path)
    before, opened = path.read_bytes(), pf.load(path)
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(pf.ModelError, match=r"m\.perframe' cannot be written: the disk is full"):
        pf.save(model, path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    pf.save(opened, path)  # over the file that is mapped
    assert facts(opened) == facts(pf.load(path)) == facts(model)


def test_what_no_file_can_hold_is_named(tmp_path: Path) -> None:
    model = small()
    model.layers[0].attributes["odd"] = object()
    with pytest.raises(pf.ModelError, match=r"layer '.*' \(Conv\) cannot be saved: .*odd is a object"):
        pf.save(model, tmp_path / "m.perframe")
    assert not list(tmp_path.iterdir())
    with pytest.raises(pf.InputError, match="cannot save a model to int"):
        pf.save(model, 3)  # type: ignore[arg-type]
    with pytest.raises(pf.ModelError, match="cannot be written"):
        pf.save(small(), tmp_path / "no" / "m.perframe")


def test_the_origin_of_a_model_comes_back(tmp_path: Path) -> None:
    model = loaded_model("light_squeezenet")
    pf.save(model, tmp_path / "s.perframe")
    again = pf.load(tmp_path / "s.perframe")
    assert (again.producer, again.opsets) == (model.producer, model.opsets) and again.opsets


ELEMENTWISE = sorted(
    (name, count)
    for name, entry in registry().items()
    if entry.family == "elementwise" and entry.dtypes == "float" and "::" not in name
    for count in range(max(1, entry.required), (4 if entry.variadic else len(entry.inputs)) + 1)
)


@pytest.mark.parametrize(("op", "count"), ELEMENTWISE)
def test_every_formula_in_an_epilogue_comes_back(op: str, count: int) -> None:
    """With as many operands as it takes: Clip has no limit, one, or two."""
    numbers = {f"k{at}": np.float32(0.25 + 0.25 * at) for at in range(1, count)}
    nodes = [node("Tanh", "x", "t"), node(op, " ".join(["t", *numbers]), "z"), node("Sigmoid", "z", "y")]
    try:
        model = load(nodes, {"x": [3, 4]}, constants=numbers)
    except pf.PerframeError:
        pytest.skip("ONNX has no such node of floats alone")
    again = pf.load(saved(model))
    assert [layer.epilogue for layer in again.layers] == [layer.epilogue for layer in model.layers]
    x = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(pf.run(again, {"x": x})["y"], pf.run(model, {"x": x})["y"], equal_nan=True)
