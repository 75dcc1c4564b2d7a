"""Attributes that no layer can have are refused by name before anything is planned, on every backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import onnx
import pytest
from onnx import helper

import perframe as pf
from perframe.importers.onnx_attributes import COMPOSITES as SAID
from perframe.ir.attributes import ANYTHING, Between, kind_of
from perframe.ir.declaration import Declaration, registry
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType

LEFT_TO_THE_LAYER = {  # tables, values, bodies of loops, and attributes that passes make
    *("ConstantOfShape.value", "LabelEncoder.default", "LabelEncoder.keys", "LabelEncoder.values", "Optional.type"),
    *("If.bodies", "Loop.bodies", "Scan.bodies", "DotProductAttention.perm", "DotProductAttention.views"),
    *("TreeEnsemble.leaf_weights", "TreeEnsemble.membership_values", "TreeEnsemble.nodes_hitrates"),
    *("TreeEnsemble.nodes_modes", "TreeEnsemble.nodes_splits"),
}


def test_every_attribute_of_every_layer_declares_its_values() -> None:
    silent = {
        f"{name}.{attribute}"
        for name, entry in registry().items()
        for attribute, kind in entry.kinds.items()
        if kind is ANYTHING
    }
    assert silent == LEFT_TO_THE_LAYER


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (int, [0, -3, np.int64(2)], [1.0, "1", None, (1,)]),
        (float, [0.5, 1, np.float32(2)], ["1", None, (1.0,)]),
        (str, ["", "x"], [1, None, b"x"]),
        (DataType, [DataType.INT64], ["int64", 7]),
        (int | None, [3, None], [0.5]),
        (Sequence[int], [(), (1, 2), [3]], [1, (1.0,), "12", None]),
        (Sequence[str], [("a",)], ["a", (1,)]),
        (Literal["a", "b"], ["a"], ["c", 1, np.zeros(3)]),
        (Literal[0, 1], [0, 1, True], [2, -1, 0.5]),
        (Annotated[int, Between(1)], [1, 2**31 - 1], [0, -1, 2**31, 1.5]),
        (Annotated[float, Between(0, 1)], [0, 0.5], [-0.1, float("nan")]),
        (Sequence[Annotated[int, Between(0)]], [(0, 3)], [(0, -1)]),
    ],
    ids=str,
)
def test_an_annotation_says_what_fits(annotation: Any, good: list[Any], bad: list[Any]) -> None:
    kind = kind_of(annotation)
    assert all(map(kind.accepts, good))
    assert not any(map(kind.accepts, bad))


def own(x: PartialTensor, *, sizes: Sequence[Annotated[int, Between(1)]], mode: Literal["up", "down"] = "up") -> Any:
    return x


def test_a_custom_layer_is_checked_by_its_declaration() -> None:
    entry = Declaration("Own", "own", own)
    with pytest.raises(pf.InferenceError, match="sizes of Own is a list of integers of at least 1, not"):
        entry.with_defaults({"sizes": (2, 0)})
    with pytest.raises(pf.InferenceError, match="mode of Own is 'up' or 'down', not 'left'"):
        entry.with_defaults({"sizes": (2,), "mode": "left"})


def node_model(op: str, shapes: list[list[int]], attributes: dict[str, Any], opset: int = 22) -> onnx.ModelProto:
    names = [f"x{index}" for index in range(len(shapes))]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], name="node", **attributes)],
        "odd",
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in zip(names, shapes, strict=True)],
        [onnx.ValueInfoProto(name="y")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


POOLS = ("MaxPool", "AveragePool", "LpPool")
SQUARE = {"kernel_shape": [2, 2]}
WINDOWS: list[tuple[str, list[list[int]], dict[str, Any], str]] = [
    *((op, [[1, 1, 8, 8]], SQUARE | {"strides": [2, 2, 7]}, "3 numbers, and 2 are expected") for op in POOLS),
    *((op, [[1, 1, 8, 8]], SQUARE | {"dilations": [1, 1, 5, 3, 50]}, "5 numbers, and 2") for op in POOLS),
    *((op, [[1, 1, 8, 8]], SQUARE | {"pads": [1, 1]}, "2 numbers, and 4 are expected") for op in POOLS),
    *((op, [[1, 1, 8, 8]], SQUARE | {"strides": [0, 1]}, "at least 1") for op in POOLS),
    *((op, [[1, 1, 8, 8]], SQUARE | {"dilations": [-1, -1]}, "at least 1") for op in POOLS),
    *((op, [[1, 1, 8, 8]], {"kernel_shape": [-1, 3]}, "at least 1") for op in POOLS),
    *((op, [[1, 1, 8, 8]], {"kernel_shape": [0, 0]}, "at least 1") for op in POOLS),
    *((op, [[1, 1, 8, 8]], SQUARE | {"pads": [-1, 0, 1, 0]}, "at least 0") for op in POOLS),
    *((op, [[1, 1, 8, 8]], SQUARE | {"auto_pad": "XYZ"}, "auto_pad .* 'NOTSET' or") for op in POOLS),
    ("MaxPool", [[1, 1, 8, 8]], {"kernel_shape": [2]}, "does not fit"),
    ("Conv", [[1, 1, 8, 8], [1, 1, 3, 3]], {"kernel_shape": [7, 7]}, "not that of the weights"),
    ("Conv", [[1, 1, 8, 8], [1, 1, 3, 3]], {"dilations": [-3, -3]}, "at least 1"),
    ("Conv", [[1, 1, 8, 8], [1, 1, 3, 3]], {"pads": [0, 0, 0, 0, 9]}, "5 numbers, and 4"),
    ("Conv", [[1, 1, 8, 8], [1, 1, 1, 1]], {"pads": [-1, 0, 1, 0]}, "at least 0"),
    ("Conv", [[1, 4, 8, 8], [6, 1, 3, 3]], {"group": 4}, "6 output channels do not make 4 groups"),
    ("Conv", [[1, 4, 8, 8], [4, 4, 3, 3]], {"group": 0}, "at least 1"),
    ("Conv", [[1, 4, 8, 8], [4, 1, 3, 3]], {"group": 4, "dilations": [1, 1, 5, 3, 50]}, "5 numbers, and 2"),
    ("ConvTranspose", [[1, 1, 8, 8], [1, 1, 3, 3]], {"kernel_shape": [7, 7]}, "not that of the weights"),
    ("ConvTranspose", [[1, 1, 8, 8], [1, 1, 3, 3]], {"output_padding": [1]}, "no number for each"),
    ("ConvTranspose", [[1, 1, 8, 8], [1, 1, 3, 3]], {"output_shape": [1, 1, 9, 9]}, "no number for each"),
    ("ConvTranspose", [[1, 3, 8, 8], [3, 1, 3, 3]], {"group": 2}, "3 input channels do not make 2 groups"),
    ("DeformConv", [[1, 1, 8, 8], [1, 1, 3, 3], [1, 98, 2, 2]], {"kernel_shape": [7, 7]}, "not that of the weights"),
    *(
        (op, [[5, 5, 1, 1]], {"kernel_shape": [5, 5], "strides": [2, 2]}, r"reaches over 5 .* 1 elements")
        for op in POOLS
    ),
    ("MaxPool", [[1, 1, 8, 8]], SQUARE | {"dilations": [1, 9], "pads": [0, 0, 0, 1]}, "over 10 .* with 1 of padding"),
    ("MaxPool", [[1, 1, 1, 8]], {"kernel_shape": [4, 1], "ceil_mode": 1, "strides": [2, 1]}, "does not fit into 1"),
    (
        "MaxPool",
        [[1, 1, 8, 8]],
        SQUARE | {"pads": [0, 0, 0, 2**30 + 1], "strides": [1, 2**20]},
        "more than kernels hold",
    ),
    (
        "AveragePool",
        [[1, 1, 8, 8]],
        {"kernel_shape": [1, 2**31 - 1], "dilations": [1, 2], "auto_pad": "SAME_LOWER"},
        "more than kernels hold",
    ),
    ("Conv", [[1, 1, 8, 2], [1, 1, 3, 3]], {}, "kernel 3, dilation 1.* does not fit into 2 elements with 0"),
    ("Conv", [[1, 4, 2, 2], [4, 1, 3, 3]], {"group": 4, "auto_pad": "VALID"}, "does not fit into 2"),
    ("DeformConv", [[1, 1, 2, 2], [1, 1, 3, 3], [1, 18, 1, 1]], {}, "does not fit into 2"),
    ("Gelu", [[3]], {"approximate": "x"}, "'none' or 'tanh'"),
    ("DepthToSpace", [[1, 4, 2, 2]], {"blocksize": 0}, "at least 1"),
    ("DepthToSpace", [[1, 4, 2, 2]], {"blocksize": 2, "mode": "x"}, "'DCR' or 'CRD'"),
    ("LRN", [[1, 4, 2, 2]], {"size": -3}, "at least 1"),
    ("ReduceSum", [[2, 3]], {"keepdims": 2}, "0 or 1"),
    ("Softmax", [[2, 3]], {"axis": 7}, "axis 7"),
]


@pytest.mark.parametrize(("op", "shapes", "attributes", "says"), WINDOWS, ids=str)
def test_bad_attributes_are_refused_by_name(
    op: str, shapes: list[list[int]], attributes: dict[str, Any], says: str, backend: str, backend_context: Any
) -> None:
    fed = {f"x{index}": np.ones(shape, np.float32) for index, shape in enumerate(shapes)}
    with pytest.raises(pf.InferenceError, match=f"'node'.*{says}"):
        pf.run(node_model(op, shapes, attributes), fed, backend=backend, ctx=backend_context)


WHOLE = {"RotaryEmbedding": 3, "SoftmaxCrossEntropyLoss": 1}  # which input holds whole numbers
HEADS = {"q_num_heads": 2, "kv_num_heads": 2}
QUERIES = [[1, 3, 8]] * 3
COMPOSITES: list[tuple[str, list[list[int]], dict[str, Any], str]] = [
    ("Attention", QUERIES, HEADS | {"is_causal": 50}, "is_causal is 0 or 1, not 50"),
    ("Attention", QUERIES, HEADS | {"softcap": -1.0}, "softcap is a number of at least 0, not -1"),
    ("Attention", QUERIES, HEADS | {"softcap": float("nan")}, "softcap .* not nan"),
    ("Attention", QUERIES, HEADS | {"q_num_heads": 0}, "q_num_heads is an integer of at least 1, not 0"),
    ("Attention", QUERIES, HEADS | {"kv_num_heads": -2}, "kv_num_heads .* not -2"),
    ("Attention", QUERIES, HEADS | {"qk_matmul_output_mode": 4}, "qk_matmul_output_mode .* not 4"),
    ("Attention", QUERIES, HEADS | {"softmax_precision": 7}, "softmax_precision .* not 7"),
    ("BatchNormalization", [[2, 3], *[[3]] * 4], {"training_mode": 5}, "training_mode is 0 or 1, not 5"),
    ("GlobalLpPool", [[1, 1, 2, 2]], {"p": 0}, "p is an integer of at least 1, not 0"),
    ("LpNormalization", [[2, 3]], {"p": 3}, "p is 1 or 2, not 3"),
    ("GroupNormalization", [[1, 4, 2], [4], [4]], {"num_groups": 0}, "num_groups .* not 0"),
    ("RotaryEmbedding", [[1, 3, 8], [9, 2], [9, 2], [1, 3]], {"num_heads": -2}, "num_heads .* not -2"),
    ("RotaryEmbedding", [[1, 2, 3, 4], [9, 2], [9, 2], [1, 3]], {"interleaved": 2}, "interleaved is 0 or 1, not 2"),
    ("SoftmaxCrossEntropyLoss", [[2, 3], [2]], {"reduction": "x"}, "reduction is 'none' or 'mean' or 'sum'"),
]


@pytest.mark.parametrize(("op", "shapes", "attributes", "says"), COMPOSITES, ids=str)
def test_bad_attributes_of_composites_are_refused_by_name(
    op: str, shapes: list[list[int]], attributes: dict[str, Any], says: str
) -> None:
    model = node_model(op, shapes, attributes, 24)
    if op in WHOLE:
        model.graph.input[WHOLE[op]].type.tensor_type.elem_type = onnx.TensorProto.INT64
    with pytest.raises(pf.ModelError, match=f"(?s)node.*its attribute {says}"):
        pf.load(model)


def test_the_attributes_of_composites_are_the_standards() -> None:
    """A misspelt attribute would never be checked."""
    histories: dict[str, set[str]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            histories.setdefault(schema.name, set()).update(schema.attributes)
    for op, attributes in SAID.items():
        if "::" not in op:
            assert set(attributes) <= histories[op], op


def test_an_empty_auto_pad_counts_as_none() -> None:
    x = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
    given = SQUARE | {"pads": [1, 1, 0, 0]}
    empty, unset = (
        pf.run(node_model("MaxPool", [[1, 1, 8, 8]], given | extra), {"x0": x})["y"] for extra in ({"auto_pad": ""}, {})
    )
    np.testing.assert_array_equal(empty, unset)
