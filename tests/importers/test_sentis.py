"""Files of Unity's format .sentis: real ones, the versions of the format, and files that are refused."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from importers.sentis_files import Const, KindCase, joined
from perframe.errors import Problem
from perframe.exporters.flatbuffer import FlatTable, Number, Vector, size_prefixed
from perframe.exporters.sentis.program import Record, SentisProgram, _FileWriter
from perframe.importers.flatbuffer import FlatBuffer
from perframe.importers.formats import HEAD, is_sentis
from perframe.importers.sentis import file as sentis_file
from perframe.ir import Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType
from perframe.testing import Draw

TWINS = {"mnist8_v4": "mnist-8", "xrhands_gesture_v3": "xrhands_gesture"}
draw = Draw(7)
X = draw(2, 3)


def value(name: str, dims: Sequence[Any] | None, dtype: DataType = DataType.FLOAT32) -> Value:
    return Value(name, dtype, None if dims is None else DynamicTensorShape(dims))


def relu(*dims: Any, version: int | None = None, kind: str = "Relu") -> bytes:
    x, y = value("x", dims), value("y", None)
    return joined(SentisProgram([x], [("y", y)], [Record(kind, [x], [y])]), version)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", TWINS)
def test_real_files_give_what_their_onnx_twins_give(
    name: str, optimize: bool, shared: Path, backend: str, backend_context: Any
) -> None:
    model = pf.load(shared / "sentis" / "files" / f"{name}.sentis", optimize=optimize)
    twin = pf.load(shared / "sentis" / "files" / f"{TWINS[name]}.onnx")
    assert [(v.name, v.dtype, v.shape) for v in (*model.inputs, *model.outputs)] == [
        (v.name, v.dtype, v.shape) for v in (*twin.inputs, *twin.outputs)
    ]
    inputs = {v.name: draw(*v.shape.to_shape()) for v in twin.inputs if v.shape is not None}
    found = pf.run(model, inputs, backend=backend, ctx=backend_context)
    for key, wanted in pf.run(twin, inputs).items():
        most = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(found[key] / most, wanted / most, 0, 1e-6)


def test_sources(tmp_path: Path) -> None:
    data = relu(2, 3)
    path = tmp_path / "net.sentis"
    path.write_bytes(data)
    for source in (path, str(path), data, io.BytesIO(data), tmp_path / "net.bytes"):
        (tmp_path / "net.bytes").write_bytes(data)
        np.testing.assert_array_equal(pf.run(source, X)["y"], np.maximum(X, 0))
    assert pf.load(path).name == "net.sentis"


def test_other_files_are_not_taken_for_sentis_files(shared: Path) -> None:
    for path in (shared / "models").iterdir():
        assert not is_sentis(path.read_bytes()[:HEAD]), path
    for path in (shared / "sentis" / "files").glob("*.sentis"):
        assert is_sentis(path.read_bytes()[:HEAD]), path


def test_integers_stay_int32_and_take_int64_that_fits() -> None:
    data = KindCase("Add", [np.arange(3, dtype=np.int32), Const(np.array(2, np.int32))], [np.arange(3, dtype=np.int32)])
    model = pf.load(data.data())
    assert model.inputs[0].dtype == model.outputs[0].dtype == "int32"
    found = pf.run(model, np.arange(3))["y0"]
    assert found.dtype == np.int32 and found.tolist() == [2, 3, 4]
    with pytest.raises(pf.InputError, match="int64"):
        pf.run(model, np.array([0, 1, 2**40]))


def test_small_constants_stay_small() -> None:
    whole = Const(np.arange(12, dtype=np.uint8).reshape(3, 4))
    case = KindCase("DequantizeUint8", [whole], [np.zeros((3, 4), np.float32)], {"scale": 0.5, "zero_point": 1})
    assert pf.load(case.data(), optimize=False).constants["constant"].dtype == np.uint8
    half = KindCase("Cast", [Const(np.ones(20, np.float16))], [np.zeros(20, np.float32)], {"to": DataType.FLOAT32})
    assert pf.load(half.data(), optimize=False).constants["constant"].dtype == np.float16


@pytest.mark.parametrize("version", range(1, 9))
def test_dims(version: int) -> None:
    """Names of dims came with version 5; before, equal numbers are equal sizes."""
    data = relu("batch", 3, None, "batch", version=version)
    model = pf.load(data)
    names = ("batch", 3, None, "batch") if version >= 5 else ("d0", 3, "d1", "d0")
    assert model.inputs[0].shape == names
    assert pf.load(data, dims={str(names[0]): 4}).inputs[0].shape == (4, 3, names[2], 4)


def test_an_input_of_unknown_rank() -> None:
    """Unity forgets to say so, and what it writes would read as a shape of no dims."""
    model = pf.load(relu())
    assert model.inputs[0].shape == ()
    unknown = FlatTable({0: Number("b", 0), 5: Number("b", 1), 6: []})
    x, y = value("x", ()), value("y", None)
    writer = _FileWriter(SentisProgram([x], [("y", y)], [Record("Relu", [x], [y])]), 4, 1 << 20)
    writer._tensor = lambda dtype, fields: writer._value(6, unknown)  # type: ignore[method-assign]
    assert pf.load(b"".join(map(bytes, writer.buffers()))).inputs[0].shape is None


def test_the_first_version_stores_the_names_of_layers() -> None:
    class Named(_FileWriter):
        def _chain(self, record: Record) -> FlatTable:
            found = super()._chain(record)
            (step,) = found.fields[2]  # type: ignore[misc, union-attr]
            called = step.fields[1].fields[1]  # type: ignore[union-attr]
            called.numbers.append(self._value(7, FlatTable({0: "conv1"})))  # type: ignore[union-attr]
            return found

    x, y = value("x", (2, 3)), value("y", None)
    program = SentisProgram([x], [("y", y)], [Record("Elu", [x], [y], {"alpha": 2.0})])
    data = b"".join(map(bytes, Named(program, 1, 1 << 20).buffers()))
    found = pf.run(pf.load(data), X)["y"]
    np.testing.assert_allclose(found, np.where(X > 0, X, 2 * np.expm1(X)), 1e-6, 1e-6)
    with pytest.raises(pf.ModelError, match="version 2 has 1"):
        pf.load(b"".join(map(bytes, Named(program, 2, 1 << 20).buffers())))


def test_older_versions_mean_what_they_meant() -> None:
    """RoiAlign, ConvTranspose and Swish got arguments, whose values in older files are fixed."""
    rois, batch = np.array([[0, 0, 3, 3]], np.float32), np.zeros(1, np.int32)
    given = {"mode": "avg", "output_height": 2, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 1.0}
    case = KindCase("RoiAlign", [draw(1, 1, 4, 4), rois, batch], [np.zeros((1, 1, 2, 2), np.float32)], given, 4)
    (layer,) = (layer for layer in pf.load(case.data(), optimize=False).layers if layer.op == "RoiAlign")
    assert layer.coordinate_transformation_mode == "output_half_pixel"
    conv = {"auto_pad": "NOTSET", "output_padding": (0,) * 6, "pads": (0,) * 12, "strides": (1,) * 6, "activation": ""}
    case = KindCase("ConvTranspose", [draw(1, 1, 4, 4), Const(draw(1, 2, 3, 3)), None], [X], conv, 5)
    (layer,) = pf.load(case.data(), optimize=False).layers
    assert (layer.group, layer.dilations, layer.strides, layer.pads) == (1, None, (1, 1), (0, 0, 0, 0))


def test_outputs_of_constants_inputs_and_twice() -> None:
    x, y = value("x", (2, 3)), value("y", None)
    constant = Value("c", constant=np.arange(3, dtype=np.float32))
    program = SentisProgram([x], [("x", x), ("c", constant), ("y", y), ("z", y)], [Record("Add", [x, constant], [y])])
    found = pf.run(joined(program), X)
    assert list(found) == ["x:output", "c", "y", "z"]
    np.testing.assert_array_equal(found["x:output"], X)
    np.testing.assert_array_equal(found["c"], [0, 1, 2])
    np.testing.assert_array_equal(found["y"], found["z"])


def test_weights_in_several_segments() -> None:
    x, values = value("x", (2, 3)), [value(f"y{i}", None) for i in range(3)]
    constants = [Value("c", constant=draw(3)) for _ in range(3)]
    inputs = [x, *values]
    records = [Record("Add", [inputs[i], constants[i]], [values[i]]) for i in range(3)]
    program = SentisProgram([x], [("y", values[-1])], records)
    buffers = program.buffers(most=24)
    assert sum(isinstance(buffer, bytearray) for buffer in buffers) == 3  # the description, and two segments
    found = pf.run(b"".join(map(bytes, buffers)), X)["y"]
    np.testing.assert_allclose(found, X + sum(c.constant for c in constants if c.constant is not None), 1e-6)  # type: ignore[operator]


def test_all_unknown_kinds_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    from perframe.importers.sentis.kinds import LayerKind, kinds

    known = dict(kinds())
    monkeypatch.setattr("perframe.exporters.sentis.program.kinds", lambda: known)
    known |= {name: LayerKind(name, known["Relu"].inputs, False, (), ("",), 7) for name in ("Warp", "Weave")}
    x, *made = value("x", (2, 3)), *(value(f"y{i}", None) for i in range(4))
    records = [Record("Warp", [x], [made[0]]), Record("Gather", [x, made[0]], [made[1]], {"axis": 0})]
    records += [Record("Weave", [made[1]], [made[2]]), Record("LeakyRelu", [x], [made[3]], {"alpha": 1.0})]
    with pytest.raises(pf.UnsupportedOperatorError) as raised:
        pf.load(joined(SentisProgram([x], [("y", made[2]), ("z", made[3])], records)))
    assert [problem.operator for problem in raised.value.problems] == ["Warp", "Weave"]
    assert isinstance(raised.value.problems[0], Problem) and "Load the ONNX file" in str(raised.value)
    assert "Sentis::Warp (file version 7), node 'Warp_0': perframe does not know this kind" in str(raised.value)


OLD = struct.pack("<ii", 29, 1) + b"\0\1\0\0\0\xff\xff\xff\xff\1" + bytes(100)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (OLD, "Sentis 1.0 to 1.3.*Sentis 1.4 or later"),
        (relu(2, 3)[:-1], "truncated"),
        (relu(2, 3)[:300], "truncated"),
        (relu(2, 3) + b"\0", "1 bytes follow"),
        (relu(2, 3, version=9), "version 9.*reads 1 to 8"),
    ],
)
def test_what_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(pf.ModelError, match=said):
        pf.load(data)


def test_a_text_that_is_listed_many_times() -> None:
    """Thousands of references to one long text list more than the file may."""
    data = size_prefixed(FlatTable({0: ["a" * 4000] * 1, 1: Vector("I", [0] * 4000)}))
    buffer = memoryview(data)[4:]
    root = FlatBuffer(buffer, "bomb").root()
    assert root.texts(0) == ["a" * 4000]
    text, listed = data.index(b"aaaa") - 4 - 4, data.index(struct.pack("<I", 4000) + bytes(4000)) - 4
    for at in range(listed + 4, listed + 4 + 16000, 4):
        struct.pack_into("<I", buffer, at, (text - at) % 2**32)
    with pytest.raises(pf.ModelError, match=r"bomb is damaged.* list more than that"):
        FlatBuffer(buffer, "bomb").root().texts(1)


def test_constants_must_lie_in_their_segment() -> None:
    data = bytearray(KindCase("Add", [X[:, :1], Const(draw(5))], [draw(2, 5)]).data())
    read = sentis_file.read(bytes(data), "m")
    assert isinstance(read.values[1], sentis_file.SentisTensor) and read.values[1].length == 20
    sizes = struct.pack("<ii", 1, 5)
    assert data.count(sizes) == 1
    data[data.index(sizes) + 4] = 6
    with pytest.raises(pf.ModelError, match=r"constant 1 of shape \(6,\) and dtype float32 takes 24 bytes; it has 20"):
        pf.load(bytes(data))
