"""Facts about models: costs, backends, blocks, statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import perframe as pf
from passes.graphs import graph, node, random
from perframe.inspection.page import BINS, repeated_blocks, shown_values, statistics_of, write_page
from perframe.ir import Layer


def test_layers_have_costs_and_backends() -> None:
    model = pf.load(
        graph([node("Conv", "x w", "c"), node("Relu", "c", "y")], {"x": ["n", 3, 9, 9]}, {"w": random(4, 3, 3, 3)})
    )
    facts = pf.inspect(model)
    (layer,) = facts.layers
    assert (layer.op, layer.epilogue, layer.parameters) == ("Conv", ["Relu"], 4 * 3 * 9)
    assert layer.multiply_adds == facts.multiply_adds == 7 * 7 * 4 * 3 * 9
    assert layer.bytes == 4 * (3 * 81 + 4 * 27 + 4 * 49)
    assert layer.backends == {"cpu": "", "gpu_compute": "", "gpu_pixel": ""}
    assert layer.shapes == [["n", 4, 7, 7]]
    assert facts.sizes == {"n": 1}
    assert pf.inspect(model, dims={"n": 2}).multiply_adds == 2 * facts.multiply_adds  # type: ignore[operator]


def test_open_sides_of_a_picture_do_not_count_as_1(tmp_path: Path) -> None:
    model = pf.load(graph([node("Conv", "x w", "y")], {"x": ["n", 3, "h", None]}, {"w": random(4, 3, 3, 3)}))
    facts = pf.inspect(model)
    assert facts.sizes == {"n": 1, "h": 64, "x:3": 64} and facts.multiply_adds == 62 * 62 * 4 * 3 * 9
    write_page(tmp_path / "page.html", model)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f'"multiply_adds":{facts.multiply_adds},"sizes":{{"n":1,"h":64,"x:3":64}}' in page


def test_a_layer_that_a_gpu_lacks_says_why() -> None:
    doubles = helper.make_graph(
        [helper.make_node("Erf", ["x"], ["y"], "erf")],
        "doubles",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [3])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [3])],
    )
    model = pf.load(helper.make_model(doubles, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    (layer,) = pf.inspect(model).layers
    assert layer.backends["cpu"] == "" and "float64" in layer.backends["gpu_pixel"]


def test_what_is_predicted_is_what_falls_back(shared: Path) -> None:
    """The backend itself gives the reasons."""
    for name in ("mnist-12", "blaze_face_short_range", "selfie_segmentation"):
        model = pf.load(shared / "models" / f"{name}.onnx")
        assert all(layer.backends["gpu_compute"] in ("", "?") or layer.on_host for layer in pf.inspect(model).layers), (
            name
        )


def test_origin_and_opsets_are_known() -> None:
    proto = graph([node("Relu", "x", "y")], {"x": [3]})
    proto.producer_name, proto.producer_version = "maker", "7"
    facts = pf.inspect(pf.load(proto))
    assert (facts.producer, facts.opsets) == ("maker 7", {"ai.onnx": 21})
    assert "  made by maker 7, opset ai.onnx 21\n  in  x  float32 (3)\n" in repr(facts)
    assert "1 layer, 0 constants" in facts._repr_html_()
    proto.producer_name = "\x1b[31mred"
    assert "\x1b" not in repr(pf.inspect(pf.load(proto)))


def layers(*names: str) -> list[Layer]:
    return [Layer(name.split("/")[-1].rstrip("0123456789"), name, ["a", "b"], [name]) for name in names]


def test_blocks_follow_names() -> None:
    names = [f"net/layer.{index}/part/{op}" for index in range(3) for op in ("Add", "Mul", "Exp", "Neg")]
    found = repeated_blocks(layers("net/Conv", *names, "net/Softmax"))
    assert [(block.title, block.first, block.length) for block in found] == [
        ("net/layer.0", 1, 4),
        ("net/layer.1", 5, 4),
        ("net/layer.2", 9, 4),
    ]


def test_blocks_follow_operators_where_names_say_nothing() -> None:
    found = repeated_blocks(
        layers("Neg0", *[f"{op}{index}" for index in range(4) for op in ("Add", "Mul", "Exp")], "Neg9")
    )
    assert [(block.first, block.length) for block in found] == [(1, 3), (4, 3), (7, 3), (10, 3)]
    assert repeated_blocks(layers("Add0", "Mul0", "Exp0", "Neg0")) == []


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int64", "bool"])
def test_statistics(dtype: str) -> None:
    values = np.array([[0, 1, 1], [0, 1, 0]]).astype(dtype)
    found = statistics_of(values)
    assert found is not None
    assert (found.smallest, found.largest, found.mean, found.zeros, found.others) == (0, 1, 0.5, 0.5, 0)
    assert len(found.counts) == BINS and sum(found.counts) == 6


def test_statistics_of_odd_constants() -> None:
    assert statistics_of(np.zeros((0, 3), np.float32)) is None
    assert statistics_of(np.array([np.nan, np.inf], np.float32)) is None
    assert statistics_of(np.array(["text"], object)) is None
    found = statistics_of(np.array([2.0, np.nan, 2.0], np.float32))
    assert found is not None and found.others == 1 and found.counts == (2,)
    assert shown_values(np.arange(100.0, dtype=np.float32)).endswith("7, …")


def test_models_with_bodies_are_inspected(shared: Path) -> None:
    facts = pf.inspect(pf.load(shared / "models" / "silero_vad.onnx"))
    branch = next(layer for layer in facts.layers if layer.op == "If")
    assert branch.backends["gpu_compute"].startswith("on the host") and "then_branch" in branch.attributes["bodies"]
