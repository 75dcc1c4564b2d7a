"""Weights are read from the file into arrays of their own, and lie in memory once."""

from __future__ import annotations

import io
import os
import tracemalloc
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from perframe.importers import filling, kept, onnx_weights
from perframe.importers import onnx as onnx_importer
from perframe.importers.onnx_weights import LARGE, split
from perframe.plan.constants import UNCHANGED

DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint32", "bool")


def proto_of(constants: dict[str, Any]) -> onnx.ModelProto:
    """A file whose constants are its outputs."""
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], [f"{name} out"]) for name in constants],
        "weights",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [onnx.ValueInfoProto(name=f"{name} out") for name in constants],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
        doc_string="after the initializers",
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], producer_name="test")


def many() -> dict[str, Any]:
    random = np.random.default_rng(0)
    large = {name: random.integers(0, 2, (3, LARGE)).astype(name) for name in DTYPES}
    small = {f"small {name}": random.integers(0, 2, (5,)).astype(name) for name in DTYPES}
    return {**small, **large, "last": random.standard_normal((7, 1, 300)).astype(np.float32)}


class _NoThread(Thread):
    def start(self) -> None:
        raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("how", ["path", "path in a thread", "threads refused", "in frames", "bytes", "file object"])
def test_weights_equal_those_that_onnx_reads(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "LATE", LARGE if "thread" in how else 1 << 40)
    monkeypatch.setattr(filling, "BATCH", 3 * LARGE)  # an array in pieces, and many in one call
    if how == "threads refused":
        monkeypatch.setattr(filling, "Thread", _NoThread)
    constants = many()
    data = proto_of(constants).SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    source: Any = {"bytes": data, "file object": io.BytesIO(data)}.get(how, path)
    load = (lambda *given: pf.load_async(*given).result(wait=True)) if how == "in frames" else pf.load
    model = load(source, False)
    assert model.constants.keys() == constants.keys()
    for name, value in constants.items():
        read = model.constants[name]
        assert read.dtype == value.dtype and read.flags.aligned
        np.testing.assert_array_equal(read, value)


@pytest.mark.parametrize("late", [1, 1 << 40])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16])
def test_a_file_that_ends_early_gives_no_array(
    late: int, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "LATE", late)
    path = tmp_path / "short"
    path.write_bytes(bytes(range(8)))
    with path.open("rb") as file, filling.filling("short"):
        read = onnx_weights.read_array(file, 0, size, TensorProto.UINT8, [size])
    assert read is None if size > 8 else read is not None and read.tolist() == list(range(size))


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="no array is late without preadv")
def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays would keep what their memory held before."""
    path = tmp_path / "m.onnx"
    path.write_bytes(proto_of({"w": np.ones(1 << 16, np.float32)}).SerializeToString())
    monkeypatch.setattr(filling, "Thread", _NoThread)  # nothing is filled before the wait

    def shrink(what: str, _: float) -> None:
        if what.startswith("imports"):
            os.truncate(path, 1000)

    with pytest.raises(pf.ModelError, match=r"m\.onnx: its file has changed while it was read: load it again"):
        pf.load(path, progress=shrink)
    assert not [link for link in Path("/proc/self/fd").glob("*") if link.exists() and link.resolve() == path]


@pytest.mark.parametrize(
    ("op", "inputs", "shape"),
    [("NonZero", "w", (1, 10000)), ("Reshape", "x shape", (3, 50, 200)), ("microsoft::Inverse", "m", (8, 8))],
)
def test_an_import_that_reads_numbers_waits_for_them(
    op: str, inputs: str, shape: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a shape rule that counts them, by one that needs an input on the host, and by an adapter."""
    monkeypatch.setattr(filling, "LATE", 16)
    monkeypatch.setattr(onnx_weights, "LARGE", 16)
    monkeypatch.setattr(filling, "Thread", _NoThread)
    constants = {
        "w": (np.arange(30000) % 3 == 0).astype(np.float32),
        "shape": np.array([3, 50, 200], np.int64),
        "m": 2 * np.eye(8, dtype=np.float32),
    }
    info = helper.make_tensor_value_info
    domain, _, name = op.rpartition("::")
    graph = helper.make_graph(
        [helper.make_node(name, inputs.split(), ["y"], domain=domain and f"com.{domain}")],
        "g",
        [info("x", TensorProto.FLOAT, [30000])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(value, key) for key, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 9), helper.make_opsetid("com.microsoft", 1)]
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    model = pf.load(path, optimize=False)
    assert tuple(model.outputs[0].spec.shape or ()) == shape
    if name == "Inverse":
        (made,) = model.constants.values()
        np.testing.assert_array_equal(made, np.eye(8) / 2)


def test_a_kept_model_waits_before_its_shapes_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of a constant decide a shape."""
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PERFRAME_KEEP_MODELS", raising=False)
    monkeypatch.setattr(kept, "SETTLED", float("-inf"))  # the file is young
    monkeypatch.setattr(kept, "REGISTRY", {})  # without the layers that other tests have declared
    monkeypatch.setattr(filling, "Thread", _NoThread)
    empty = np.empty
    monkeypatch.setattr(np, "empty", lambda *given, **named: _zeroed(empty(*given, **named)))
    info = helper.make_tensor_value_info
    numbers = numpy_helper.from_array((np.arange(60000) % 3 == 0).astype(np.float32), "w")
    nodes = [helper.make_node("NonZero", ["w"], ["places"]), helper.make_node("Cast", ["places"], ["f"], to=1)]
    graph = helper.make_graph(
        [*nodes, helper.make_node("Add", ["f", "x"], ["y"])],
        "g",
        [info("x", TensorProto.FLOAT, [1])],
        [onnx.ValueInfoProto(name="y")],
        [numbers],
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    pf.load(path)
    assert len(list((tmp_path / "cache").glob("**/*.kept"))) == 1
    monkeypatch.setattr(onnx_importer, "load_onnx", None)  # nothing is imported again
    assert tuple(pf.load(path).outputs[0].spec.shape or ()) == (1, 20000)


def _zeroed(array: Any) -> Any:
    if array.dtype == np.float32:
        array[...] = 0
    return array


def test_what_is_left_is_the_file_without_them() -> None:
    constants = many()
    whole = proto_of(constants)
    data = whole.SerializeToString()
    kept, weights, *_ = split(io.BytesIO(data), len(data))
    parsed = onnx.ModelProto.FromString(kept)
    assert len(kept) < len(data) - sum(weight.nbytes for weight in weights.values())
    assert sorted(whole.graph.initializer[index].name for index in weights) == sorted(
        name for name, value in constants.items() if value.nbytes >= LARGE
    )
    for index in weights:
        parsed.graph.initializer[index].raw_data = whole.graph.initializer[index].raw_data
    assert parsed == whole


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_a_damaged_file_is_left_to_the_parser(data: st.DataObject) -> None:
    """It ends in an error or in a model, as a whole file does, and takes no more memory than it has bytes."""
    whole = bytearray(proto_of({"w": np.ones(2 * LARGE, np.float32)}).SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, 200))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.sampled_from([len(whole), len(whole) - 1, LARGE, 50]))])
    try:
        pf.load(cut, optimize=False)
    except pf.PerframeError:
        return


@pytest.mark.parametrize("external", [False, True])
def test_weights_lie_in_memory_once(external: bool, tmp_path: Path) -> None:
    """Reading takes the memory of the weights, and a little more for the weight that is being read."""
    constants = {f"w{index}": np.full((256, 1024), index, np.float32) for index in range(16)}
    path = tmp_path / "m.onnx"
    onnx.save(proto_of(constants), path, save_as_external_data=external, location="m.data")
    size = sum(value.nbytes for value in constants.values())
    pf.load(path, optimize=False)
    tracemalloc.start()
    try:
        model = pf.load(path, optimize=False)
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size <= now and peak < size + size // 8
    assert all((model.constants[name] == value).all() for name, value in constants.items())


def test_kernels_read_constants_where_they_lie(tmp_path: Path) -> None:
    """Constants in the order of the kernels are not copied, and are read-only."""
    value = np.arange(4 * LARGE, dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", value.size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "m.onnx")
    model = pf.load(tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="read-only"):
        model.constants["w"][0] = 1
    with pf.Worker(model) as worker:
        made = worker.schedule(np.full((2, value.size), 2, np.float32)).peek_output().download_to_array()
        np.testing.assert_array_equal(made, [2 * value, 2 * value])
        (use,) = worker.memory_use
        assert use.read == value.nbytes
        kept = worker.parts._parts[0].constants._made.items()  # type: ignore[attr-defined]
        storages = [operand.storage for (_, _, kind), operand in kept if kind == UNCHANGED]
        assert all(np.shares_memory(storage.memory, model.constants["w"]) for storage in storages)


def test_other_runtimes_get_constants_that_they_may_fold(tmp_path: Path) -> None:
    """A file of IR version 3 names its initializers among the inputs, and other runtimes must not fold those."""
    from perframe.importers.light import for_other_runtimes

    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "w")]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    weights = numpy_helper.from_array(np.ones(2, np.float32), "w")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "old", inputs, [output], [weights])
    for version in (3, 8):
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=version)
        onnx.save(proto, tmp_path / "m.onnx")
        data = for_other_runtimes(tmp_path / "m.onnx")
        assert data is not None
        changed = onnx.ModelProto.FromString(data)
        assert [value.name for value in changed.graph.input] == ["x"] and changed.ir_version == max(version, 4)
        onnx.save(changed, tmp_path / "m.onnx")
        assert for_other_runtimes(tmp_path / "m.onnx") is None
