"""ONNX files that are read without the onnx package: they give what the package gives, or are left to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import perframe as pf
from fresh import run_fresh
from perframe.importers.onnx_messages import _CLASSES, Message, NeedsLibrary, is_a, parsed
from perframe.importers.onnx_schema import ATTRIBUTE_TYPES, library_schema, row_of, schema_of, type_name
from perframe.importers.onnx_values import DATA_TYPES, array_of, data_type
from perframe.importers.onnx_weights import LARGE, listed_array
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType

MODELS = sorted((Path(__file__).resolve().parents[2] / "assets").rglob("*.onnx"))
IMPORTS = "import sys, perframe as pf; {}; print(*{{'onnx', 'google.protobuf', 'ml_dtypes'}} & set(sys.modules))"


def graph() -> onnx.GraphProto:
    """A graph with all kinds of attributes and listed values, a body, and open dims."""
    body = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["n"])], "body", [], [helper.make_tensor_value_info("n", TensorProto.FLOAT, [])]
    )
    nodes = [
        helper.make_node("If", ["c"], ["i"], then_branch=body, else_branch=body),
        helper.make_node("Odd", ["i", ""], ["o"], "odd", "doc", "my.domain", f=0.1, i=-5, s="text", fs=[0.5, 1e30]),
        helper.make_node("Odd", ["o"], ["y"], ints=[-1, 1 << 40], strings=["a", "ü"], graphs=[body, body]),
        helper.make_node("Odd", ["o"], ["z"], t=helper.make_tensor("t", TensorProto.INT32, [2], [-7, 7])),
    ]
    shape: list[Any] = ["batch", 3, None, 0]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("c", TensorProto.BOOL, None),
        helper.make_tensor_sequence_value_info("s", TensorProto.INT64, [1]),
        helper.make_value_info("e", helper.make_optional_type_proto(helper.make_tensor_type_proto(10, [2, "k"]))),
    ]
    numbers = [
        helper.make_tensor("f", TensorProto.FLOAT, [3], [1.5, np.inf, np.nan]),
        helper.make_tensor("d", TensorProto.DOUBLE, [1, 1], [1e300]),
        helper.make_tensor("l", TensorProto.INT64, [2], [-(1 << 62), 1 << 62]),
        helper.make_tensor("u", TensorProto.UINT64, [1], [1 << 63]),
        numpy_helper.from_array(np.arange(LARGE, dtype=np.float32), "raw"),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    return helper.make_graph(nodes, "g", inputs, outputs, numbers, "a text that nothing reads")


def model() -> onnx.ModelProto:
    made = helper.make_model(graph(), producer_name="tests", opset_imports=[helper.make_opsetid("", 18)])
    helper.set_model_props(made, {"a": "b"})
    return made


def differences(ours: Message, theirs: Any, path: str = "") -> Iterator[str]:
    """The fields that differ, of those that ours has."""
    for name, kind, is_repeated in {*type(ours).fields.values()}:
        one, other, at = getattr(ours, name), getattr(theirs, name), f"{path}.{name}"
        if is_repeated and len(one) != len(other):
            yield f"{at}: {len(one)} and {len(other)}"
        if not is_repeated and kind in _CLASSES:
            if ours.HasField(name) != theirs.HasField(name):
                yield f"{at}: only one has it"
            if not ours.HasField(name):
                continue
        pairs = zip(one, other, strict=False) if is_repeated else [(one, other)]
        for mine, its in pairs:
            if kind in _CLASSES:
                yield from differences(mine, its, at)
            elif kind != "-" and not (mine == its or mine != mine or (kind == "i" and mine % (1 << 64) == its)):
                yield f"{at}: {mine!r} and {its!r}"


def test_fields_are_those_of_onnx() -> None:
    """Fields that our reader skips are plain: in a message among them, damage would stay unseen."""
    inner = {"Dimension": onnx.TensorShapeProto.Dimension}
    inner |= {name: getattr(onnx.TypeProto, name) for name in ("Tensor", "Sequence", "Optional")}
    for name, ours in _CLASSES.items():
        theirs = inner.get(name) or getattr(onnx, name)
        known = {key >> 3: field for key, (field, _, _) in ours.fields.items()}
        for field in theirs.DESCRIPTOR.fields:
            assert known.get(field.number, field.name) == field.name
            assert field.number in known or field.message_type is None
            if field.number in known and field.message_type is not None:
                kinds = {kind for at, kind, _ in ours.fields.values() if at == field.name}
                assert kinds <= {"-", field.message_type.name}


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_shipped_models_are_read_alike(path: Path) -> None:
    data = path.read_bytes()
    assert not list(differences(parsed(data), onnx.ModelProto.FromString(data)))


def test_all_kinds_of_fields_are_read_alike() -> None:
    made = model()
    ours = parsed(made.SerializeToString())
    assert not list(differences(ours, made))
    assert is_a(ours, "ModelProto") and is_a(made, "ModelProto") and not is_a(ours.graph, "ModelProto")
    dims = ours.graph.input[0].type.tensor_type.shape.dim
    assert [dim.HasField("dim_value") for dim in dims] == [False, True, False, True]
    assert [info.type.WhichOneof("value") for info in ours.graph.input] == [
        info.type.WhichOneof("value") for info in made.graph.input
    ]
    assert not ours.graph.output[0].type.tensor_type.HasField("shape") and not ours.graph.output[0].HasField("nothing")


@pytest.mark.parametrize("seed", range(8))
def test_damaged_files_are_read_alike_or_left_to_the_library(seed: int) -> None:
    rng, whole, read = random.Random(seed), model(), 0
    del whole.graph.initializer[4:]
    data = whole.SerializeToString()
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.choice([rng.randrange(256), 0, 0x7F, 0x80, 0xFF])
        del changed[rng.choice([len(changed), rng.randrange(len(changed))]) :]
        try:
            ours = parsed(bytes(changed))
        except NeedsLibrary:
            continue
        read += 1
        assert not list(differences(ours, onnx.ModelProto.FromString(bytes(changed))))
    assert read > 15


def deep() -> bytes:
    """Graphs in attributes of nodes, 40 deep."""
    data = b""
    for number in (6, 5, 1) * 40 + (7,):
        size = bytes([len(data) & 127 | 128, len(data) >> 7]) if len(data) > 127 else bytes([len(data)])
        data = bytes([number << 3 | 2]) + size + data
    return data


def functions() -> onnx.ModelProto:
    made = model()
    made.functions.append(helper.make_function("my.domain", "Odd", ["x"], ["y"], [], []))
    return made


def twice() -> bytes:
    return model().SerializeToString() + onnx.ModelProto(graph=onnx.GraphProto(name="again")).SerializeToString()


CASES: list[Callable[[], Any]] = [
    deep,
    functions,
    twice,
    lambda: onnx.ModelProto(graph=onnx.GraphProto(sparse_initializer=[onnx.SparseTensorProto()])),
    lambda: b"\x3a\x03\x12\x01\xff",  # a graph whose name is no UTF-8
    lambda: b"\x0a\x01\x01",  # a version that is a text
    lambda: b"\x08" + b"\xff" * 10 + b"\x01",  # a number of more than 64 bits
    lambda: b"\x3a\x05\x12\x09abc",  # a name longer than its graph
    lambda: b"\x0b\x0c",  # a group
]


@pytest.mark.parametrize("case", CASES)
def test_what_is_unusual_is_left_to_the_library(case: Callable[[], Any]) -> None:
    made = case()
    with pytest.raises(NeedsLibrary):
        parsed(made if isinstance(made, bytes) else made.SerializeToString())


def test_the_table_holds_the_schemas_of_the_standard() -> None:
    newest = onnx.defs.onnx_opset_version()
    schemas = onnx.defs.get_all_schemas_with_history()
    assert len(schemas) > 600
    for schema in schemas:
        ours = schema_of(schema.name, schema.since_version, schema.domain)
        last = library_schema(schema.name, newest, schema.domain) if schema.domain == "" else None
        newer = {} if last is None else {formal.name: set(formal.types) for formal in last.inputs}
        assert ours is not None and ours.inputs == (schema.min_input, schema.max_input)
        assert ours.outputs == (schema.min_output, schema.max_output)
        assert ours.types == {name: kind.type.value for name, kind in schema.attributes.items()}
        assert set(ours.required) == {name for name, kind in schema.attributes.items() if kind.required}
        for formal, its in zip(ours.formals, schema.inputs, strict=True):
            assert (formal.name, formal.kind, formal.homogeneous) == (its.name, its.type_str, its.is_homogeneous)
            assert formal.types == set(its.types) | newer.get(its.name, set())
        assert row_of(schema)[0] == schema.since_version
    assert schema_of("Conv", 1000, "") == schema_of("Conv", newest, "")
    assert schema_of("Conv", 22, "nowhere") is schema_of("Nothing", 22, "") is None


def test_numbers_and_names_are_those_of_onnx() -> None:
    kinds = onnx.AttributeProto.AttributeType
    assert list(ATTRIBUTE_TYPES) == [kinds.Name(number) for number in range(len(ATTRIBUTE_TYPES))]
    for number in range(1, len(DATA_TYPES) + 1):
        dtype = data_type(number)
        assert number == helper.np_dtype_to_tensor_dtype(dtype.numpy) or dtype is DataType.STRING
        assert type_name(PartialTensor(dtype)) == f"tensor({TensorProto.DataType.Name(number).lower()})"
    for number in (0, -1, len(DATA_TYPES) + 1):
        with pytest.raises(pf.ModelError, match=f"no element type {number}"):
            data_type(number)


LISTED = [(1, [0.1, -2.0]), (6, [-5, 5]), (7, [-5, 1 << 40]), (11, [0.1, 2.0]), (2, [3, 255]), (3, [-3, 127])]
LISTED += [(4, [3, 65535]), (5, [-3, 300]), (9, [0, 1]), (2, [256, -1]), (5, [1 << 20, 0])]


@pytest.mark.parametrize(("number", "values"), LISTED)
def test_listed_numbers_are_read_alike(number: int, values: list[Any]) -> None:
    field = {1: "float_data", 7: "int64_data", 11: "double_data"}.get(number, "int32_data")
    tensor = TensorProto(data_type=number, dims=[1, 2], **{field: values})
    made = onnx.ModelProto(graph=onnx.GraphProto(initializer=[tensor]))
    ours = array_of(parsed(made.SerializeToString()).graph.initializer[0], "g")
    theirs = array_of(tensor, "g")
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape and (ours == theirs).all()


def test_numbers_that_only_the_library_converts() -> None:
    assert listed_array(TensorProto(int32_data=[2]), TensorProto.BOOL, [1]) is None
    assert listed_array(TensorProto(float_data=[2]), TensorProto.FLOAT, [2]) is None
    assert listed_array(parsed(b""), TensorProto.BFLOAT16, []) is None


@pytest.mark.quick(cases=0)
def test_a_load_needs_neither_onnx_nor_protobuf(tmp_path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    w = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "y")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], [w])), tmp_path / "m.onnx")
    pf.save(pf.load(tmp_path / "m.onnx"), tmp_path / "m.perframe")
    for name in ("m.onnx", "m.perframe"):
        assert run_fresh(IMPORTS.format(f"pf.load({str(tmp_path / name)!r})")).split() == []


def test_a_function_of_the_standard_is_imported_by_the_library(tmp_path: Path) -> None:
    """No layer and no adapter stands for it: its body comes from the onnx package, in a second reading."""
    node = helper.make_node("CenterCropPad", ["x", "s"], ["y"])
    s = numpy_helper.from_array(np.array([2, 5]), "s")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    made = helper.make_model(helper.make_graph([node], "g", [x], [y], [s]), opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(made, tmp_path / "m.onnx")
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    (result,) = pf.run(tmp_path / "m.onnx", {"x": array}).values()
    (expected,) = ReferenceEvaluator(made).run(None, {"x": array})
    np.testing.assert_array_equal(result, expected)
