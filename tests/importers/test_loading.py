"""Unusable files: each ends in a typed error that says what is wrong, where, and what to do."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import perframe as pf


def model(*nodes: Any, opsets: dict[str, int] | None = None, **options: Any) -> onnx.ModelProto:
    """x, float32 (n, 3), to y."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones((3, 2), np.float32), "w")],
    )
    domains = opsets or {"": 21}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in domains.items()], **options)


RELU = helper.make_node("Relu", ["x"], ["y"], name="activation")
WHOLE = model(RELU).SerializeToString()


def test_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.onnx"):
        pf.load(tmp_path / "nowhere.onnx")
    (tmp_path / "inside.onnx").touch()
    with pytest.raises(pf.MissingFileError, match=r"is a folder.*inside\.onnx"):
        pf.load(tmp_path)
    with pytest.raises(pf.ModelError):
        pf.load("x" * 5000)
    with pytest.raises(pf.ModelError, match="device"):
        pf.load("/dev/null")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04" + bytes(50), r"PyTorch.*torch\.onnx\.export"),
        (b"\x80\x02}q\x00", "pickle"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"<!DOCTYPE html><html>not found</html>", "download"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(20), "LiteRT"),
        (b"a model, or so they said\n", "text"),
    ],
)
def test_a_file_of_another_format_is_recognised(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(pf.ModelError, match=rf"m\.onnx.*{words}"):
        pf.load(path)


def test_a_file_that_was_opened_as_text() -> None:
    with pytest.raises(pf.ModelError, match="'rb'"):
        pf.load(io.StringIO("text"))


@pytest.mark.parametrize("kept", [1, 10, len(WHOLE) // 2, len(WHOLE) - 1])
def test_a_truncated_file(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(WHOLE[:kept])
    with pytest.raises(pf.ModelError, match=r"cut\.onnx"):
        pf.load(path)


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG\r\n\x1a\n" + bytes(64), b"GIF89a", b"{}", b"\x00" * 100, b"#!/bin/sh\necho"]
)
def test_what_is_no_onnx_file(data: bytes) -> None:
    with pytest.raises(pf.ModelError, match=r"ONNX"):
        pf.load(data)


def test_what_is_no_source() -> None:
    with pytest.raises(pf.ModelError, match="int"):
        pf.load(42)


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_file_loads_or_says_why(position: int, value: int) -> None:
    """One byte changed: nothing but our own errors."""
    data = bytearray(WHOLE)
    data[position] = value
    with suppress(pf.PerframeError):
        pf.load(bytes(data))


def test_a_file_object_is_read() -> None:
    assert [layer.op for layer in pf.load(io.BytesIO(WHOLE)).layers] == ["Relu"]


def test_unsupported_operators_are_all_reported_at_once() -> None:
    nodes = [
        helper.make_node("NoSuchOperator", ["x"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="between"),
        helper.make_node("FancyGelu", ["b"], ["c"], name="second", domain="com.example"),
        helper.make_node("NoSuchOperator", ["c"], ["d"], name="third"),
        helper.make_node("BatchNormalization", ["d"] * 5, ["y"], name="fourth", training_mode=1),
    ]
    with pytest.raises(pf.UnsupportedOperatorError) as caught:
        pf.load(model(*nodes, opsets={"": 21, "com.example": 3}))
    problems = caught.value.problems
    assert [problem.node for problem in problems] == ["first", "second", "third", "fourth"]
    assert [problem.opset for problem in problems] == [21, 3, 21, 21]
    text = str(caught.value)
    for words in (
        "4 nodes of 3 kinds are",
        "com.example::FancyGelu",
        "opset 3",
        "'third'",
        "training_mode",
        "Your own layer",
    ):
        assert words in text


def test_an_unsupported_operator_whose_shape_matters_is_still_reported() -> None:
    """A layer after it must not fail first, whatever inputs it would have got."""
    nodes = [
        helper.make_node("NoSuchOperator", ["x"], ["a", "b"], name="first"),
        helper.make_node("Reshape", ["x", "a"], ["c"], name="reshape"),
        helper.make_node("MatMul", ["c", "w"], ["d"], name="product"),
        helper.make_node("Concat", ["d", "b"], ["e"], name="join", axis=1),
        helper.make_node("NoSuchEither", ["e"], ["y"], name="second"),
    ]
    with pytest.raises(pf.UnsupportedOperatorError) as caught:
        pf.load(model(*nodes))
    assert [problem.node for problem in caught.value.problems] == ["first", "second"]


def test_a_value_that_no_node_makes() -> None:
    with pytest.raises(pf.ModelError, match=r"activation.*'ghost'"):
        pf.load(model(helper.make_node("Add", ["x", "ghost"], ["y"], name="activation")))


def test_an_output_that_no_node_makes() -> None:
    with pytest.raises(pf.ModelError, match="'y'"):
        pf.load(model(helper.make_node("Relu", ["x"], ["z"])))


def test_a_value_that_is_made_twice() -> None:
    with pytest.raises(pf.ModelError, match="twice"):
        pf.load(model(RELU, helper.make_node("Neg", ["x"], ["y"], name="again")))


def test_nodes_out_of_order() -> None:
    nodes = [helper.make_node("Relu", ["a"], ["y"], name="early"), helper.make_node("Neg", ["x"], ["a"])]
    with pytest.raises(pf.ModelError, match="early"):
        pf.load(model(*nodes))


def test_shapes_that_do_not_fit_name_the_layer_and_both() -> None:
    first = helper.make_node("MatMul", ["x", "w"], ["a"], name="fits")
    second = helper.make_node("MatMul", ["a", "w"], ["y"], name="product")
    with pytest.raises(pf.InferenceError, match=r"product.*MatMul.*\(n, 2\).*\(3, 2\)"):
        pf.load(model(first, second))


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (helper.make_node("Relu", ["x"], ["y"], name="odd", colour=3), "colour"),
        (helper.make_node("Relu", ["x", "w"], ["y"], name="odd"), "at most 1"),
        (helper.make_node("Add", ["x"], ["y"], name="odd"), "needs 2"),
        (helper.make_node("Relu", ["x"], ["y", "z"], name="odd"), "2 outputs"),
        (helper.make_node("Transpose", ["x"], ["y"], name="odd", perm=[0, 0]), "perm"),
        (helper.make_node("Flatten", ["x"], ["y"], name="odd", axis=5), "axis"),
        (helper.make_node("Concat", ["x", "w"], ["y"], name="odd", axis=7), "axis 7"),
        (helper.make_node("DepthToSpace", ["x"], ["y"], name="odd", blocksize=2), "4"),
        (helper.make_node("MaxPool", ["x"], ["y"], name="odd", kernel_shape=[2, 2]), "kernel_shape"),
        (helper.make_node("MaxPool", ["x"], ["y"], name="odd"), "kernel_shape"),
        (helper.make_node("Conv", ["x", "w"], ["y"], name="odd", strides=[0]), "odd"),
        (helper.make_node("Softmax", ["x"], ["y"], name="odd", axis=4), "axis 4"),
    ],
    ids=lambda value: getattr(value, "op_type", None),
)
def test_a_malformed_node_is_named(node: Any, words: str) -> None:
    with pytest.raises(pf.ModelError, match="odd") as caught:
        pf.load(model(node))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (helper.make_node("Softmax", ["x"], ["y"], name="odd", axis="last"), "axis is of type STRING, and must be INT"),
        (helper.make_node("Concat", ["x", "x"], ["y"], name="odd"), "needs the attribute axis"),
        (helper.make_node("MatMul", ["x", ""], ["y"], name="odd"), "input B is missing"),
        (helper.make_node("Add", ["x", "n"], ["y"], name="odd"), "is tensor(int64), and must be tensor(float)"),
        (helper.make_node("Gather", ["x", "x"], ["y"], name="odd"), "indices cannot be tensor(float)"),
        (helper.make_node("Softmax", ["n"], ["y"], name="odd"), "cannot be tensor(int64)"),
        (helper.make_node("Relu", ["s"], ["y"], name="odd"), "cannot be seq(tensor(float))"),
        (helper.make_node("ConcatFromSequence", ["x"], ["y"], name="odd", axis=0), "cannot be tensor(float)"),
    ],
    ids=str,
)
def test_a_node_of_other_types_than_the_standard_says(node: Any, words: str) -> None:
    proto = model(node)
    proto.graph.input.append(helper.make_tensor_value_info("n", TensorProto.INT64, [3]))
    proto.graph.input.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    with pytest.raises(pf.ModelError, match="odd") as caught:
        pf.load(proto)
    assert words in str(caught.value)


def test_an_attribute_given_twice() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], name="odd", axis=0)
    node.attribute.append(helper.make_attribute("axis", 1))
    with pytest.raises(pf.ModelError, match="twice"):
        pf.load(model(node))


def test_a_model_without_opset() -> None:
    proto = model(RELU)
    del proto.opset_import[:]
    with pytest.raises(pf.ModelError, match="opset"):
        pf.load(proto.SerializeToString())


def test_dims_bind_names_and_refuse_others() -> None:
    assert pf.load(WHOLE, dims={"n": 4}).inputs[0].shape == (4, 3)
    with pytest.raises(pf.ModelError, match=r"no open dim named m: .*its open dims are n"):
        pf.load(WHOLE, dims={"m": 4})
    for wrong in (-1, "x", 1.5, True, None):
        with pytest.raises(pf.ModelError, match="'n' must be an integer"):
            pf.load(WHOLE, dims={"n": wrong})
    with pytest.raises(pf.ModelError, match="sizes by the dims' names"):
        pf.load(WHOLE, dims=[1])


def test_dims_that_exporters_write_for_unknown_ones() -> None:
    """-1 and "?" say nothing of a dim; two of them may be of two sizes."""
    proto = model(helper.make_node("Relu", ["x"], ["y"]))
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["?", -1, "?", "unk__1"]))
    loaded = pf.load(proto)
    assert loaded.inputs[0].shape == (None, None, None, "unk__1")
    x = np.ones((2, 3, 4, 5), np.float32)
    np.testing.assert_array_equal(pf.run(loaded, {"x": x})["y"], x)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -3
    with pytest.raises(pf.ModelError, match="'x' has a dim of -3"):
        pf.load(proto)


def test_an_initializer_of_the_wrong_size() -> None:
    proto = model(helper.make_node("MatMul", ["x", "w"], ["y"]))
    proto.graph.initializer[0].raw_data = bytes(7)
    with pytest.raises(pf.ModelError, match="'w'"):
        pf.load(proto)


def test_a_dim_of_an_initializer_is_not_negative() -> None:
    proto = model(helper.make_node("MatMul", ["x", "w"], ["y"]))
    proto.graph.initializer[0].dims[:] = [-1, 2]
    with pytest.raises(pf.ModelError, match=r"'w' has a negative dim"):
        pf.load(proto)


@pytest.mark.parametrize("opset", [0, -1, 2**40])
def test_an_unknown_opset(opset: int) -> None:
    with pytest.raises(pf.ModelError, match=f"opset {opset}"):
        pf.load(model(RELU, opsets={"": opset}))


def test_an_opset_of_other_operators_alone() -> None:
    with pytest.raises(pf.ModelError, match=r"which opset of ai\.onnx"):
        pf.load(model(RELU, opsets={"com.example": 1}))


@pytest.mark.parametrize("what", ["initializer", "input", "Constant"])
def test_two_values_of_one_name(what: str) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    if what == "Constant":
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value_float=1.0))
    proto = model(*nodes)
    if what == "initializer":
        proto.graph.initializer.add().CopyFrom(proto.graph.initializer[0])
    elif what == "input":
        proto.graph.input.add().CopyFrom(proto.graph.input[0])
    with pytest.raises(pf.ModelError, match=r"made twice|two inputs"):
        pf.load(proto)


def test_a_sequence_of_nothing() -> None:
    proto = model(helper.make_node("SequenceLength", ["s"], ["y"]))
    proto.graph.input.add(name="s").type.sequence_type.SetInParent()
    with pytest.raises(pf.ModelError, match="'s' is a sequence"):
        pf.load(proto)


def test_a_name_that_is_no_text() -> None:
    data = model(helper.make_node("Relu", ["xxxx"], ["y"])).SerializeToString()
    with pytest.raises(pf.ModelError, match="is not text"):
        pf.load(data.replace(b"xxxx", b"\xff\xfe\xfd\xfc"))


def test_graphs_too_deep_within_each_other() -> None:
    """A file that protobuf reads has 32 levels at most; a message in memory may have any number."""
    proto = model(helper.make_node("Identity", ["x"], ["y"]))
    graph = proto.graph
    for _ in range(200):
        node = graph.node.add(op_type="If", input=["c"], output=["z"])
        attribute = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
        graph = attribute.g
    with pytest.raises(pf.ModelError, match="deep"):
        pf.load(proto)


def test_initializers_listed_as_inputs_are_constants() -> None:
    proto = model(helper.make_node("MatMul", ["x", "w"], ["y"]))
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 2]))
    loaded = pf.load(proto)
    assert [value.name for value in loaded.inputs] == ["x"] and list(loaded.constants) == ["w"]


def test_unread_outputs_are_left_out() -> None:
    nodes = [
        helper.make_node("Dropout", ["x"], ["a", "mask"]),
        helper.make_node("Split", ["a"], ["b", "c", "d"], axis=1, num_outputs=3),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    loaded = pf.load(model(*nodes), optimize=False)
    assert [layer.output_names for layer in loaded.layers] == [["a"], ["b", "c"], ["y"]]
    x = np.array([[1, 2, 3], [-4, -5, 6]], np.float32)
    np.testing.assert_array_equal(pf.run(loaded, {"x": x})["y"], [[2], [0]])


def test_the_public_name_is_the_function_in_any_order() -> None:
    """A module of a public function's name would take its place once it is imported."""
    names = ("load", "run", "Worker", "Tensor")
    script = f"import perframe as pf; pf.Worker; assert all(callable(getattr(pf, n)) for n in {names})"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("dims", [[2**22, 2**20], [2**40, 2**40], [-2, -3]], ids=str)
def test_a_sparse_tensor_of_absurd_dims(dims: list[int]) -> None:
    proto = model(helper.make_node("Identity", ["s"], ["y"]))
    sparse = proto.graph.sparse_initializer.add(dims=dims)
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "s"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.zeros(1, np.int64)))
    with pytest.raises(pf.ModelError, match="'s'"):
        pf.load(proto)


def test_an_unread_sequence_or_optional_input_needs_no_storage(backend: str, backend_context: Any) -> None:
    """Folding leaves the model's inputs as they are."""
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    given = [x, helper.make_value_info("o", kind), helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)]
    nodes = [helper.make_node("OptionalHasElement", ["o"], ["h"]), helper.make_node("Relu", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    made = pf.run(proto, {"x": np.float32([-1, 2]), "o": None, "s": []}, backend=backend, ctx=backend_context)
    assert made["y"].tolist() == [0, 2]


def test_a_load_reports_its_progress() -> None:
    names = ["x", *(f"v{index}" for index in range(199)), "y"]
    nodes = [helper.make_node("Sin", [one], [other]) for one, other in pairwise(names)]
    seen: list[tuple[str, float]] = []
    pf.load(model(*nodes).SerializeToString(), progress=lambda what, done: seen.append((what, done)))
    steps = list(dict.fromkeys(what.partition(":")[0] for what, _ in seen))
    assert steps[:3] == ["reads the file", "imports 200 nodes", "optimizes 200 layers"]
    assert [done for what, done in seen if what == steps[1]] == [0, 0.32, 0.64, 0.96]
    assert all(0 <= done < 1 for _, done in seen)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not an ONNX file: it is empty; copy"),
        (b"some text\n", "not an ONNX file .*it is text"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "not an ONNX file .*it is a PNG picture"),
        (b"\x08\x07\xff\xfe", "not a complete ONNX file .*truncated"),
    ],
)
def test_data_that_is_no_model_is_called_what_it_is(data: bytes, said: str) -> None:
    with pytest.raises(pf.ModelError, match=said):
        pf.load(data)
