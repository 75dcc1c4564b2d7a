"""LiteRT files: whole models, quantization, signatures, other graphs, and files that are damaged."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends import evaluator
from perframe.passes import prepare

pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert, the peer of these tests")
pytest.importorskip("tflite", reason="needs the extra litert")

from importers.litert_files import Array, File, Interpreter, interpreted, packed, scales, schema
from importers.litert_models import F, branch, loop, network, quantized, real, whole

MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"


def run(data: bytes, *fed: Array, backend: str = "cpu", optimize: bool = True) -> list[Any]:
    model = pf.load(data, optimize=optimize)
    names = [value.name for value in model.inputs]
    return list(pf.run(model, dict(zip(names, fed, strict=True)), backend=backend).values())


def test_a_network_agrees_on_all_backends(backend: str) -> None:
    data, x = network()
    (made,) = run(data, x, backend=backend)
    np.testing.assert_allclose(made, interpreted(data, [x])[0], 1e-4, 1e-5)


def test_transpositions_meet_and_vanish() -> None:
    """Only the input is brought into the order that convolutions take, and on the CPU it is not."""
    data, _ = network()
    whole_model, model = pf.load(data, optimize=False), pf.load(data)
    assert sum(layer.op == "Transpose" for layer in whole_model.layers) == 4
    assert sum(layer.op == "Transpose" for layer in model.layers) == 1
    assert not any(layer.op == "Pad" for layer in model.layers)
    prepared = prepare(model, evaluator(), "cpu")
    assert not any(layer.op == "Transpose" for layer in prepared.layers)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_quantized_networks_agree(backend: str, dtype: str) -> None:
    """LiteRT rounds products of whole numbers in another way, so a number may differ by one, and by two at the end."""
    data, x = quantized(dtype, per_axis=dtype != "uint8")
    (made,) = run(data, x, backend=backend)
    (want,) = interpreted(data, [x])
    assert made.dtype == want.dtype == np.dtype(dtype)
    assert np.abs(made.astype(int) - want.astype(int)).max() <= 2
    assert np.ptp(want.astype(int)) > 10


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantized_networks_stay_quantized_on_the_cpu(dtype: str) -> None:
    data, _ = quantized(dtype, per_axis=dtype == "int8")
    ops = [layer.op for layer in prepare(pf.load(data), evaluator(), "cpu").layers]
    assert ops.count("QuantizedConv") == 2
    assert ops.count("QuantizedMatMul") == 1
    assert not {"QuantizeLinear", "DequantizeLinear", "Transpose"} & set(ops)


def test_weights_of_fewer_bits_are_dequantized() -> None:
    file = File()
    x = file.graph.input("x", (2, 6))
    w = file.graph.constant(whole(5, 6), scales(np.linspace(0.01, 0.02, 5), 0, 0))
    halves = file.graph.constant(real(5).astype(np.float16))
    bias = file.graph.op("DEQUANTIZE", [halves])
    data = file.data(file.graph.op("FULLY_CONNECTED", [x, w, bias], kind="FullyConnectedOptions"))
    steps = np.linspace(0.01, 0.02, 5).astype(np.float32)[:, None]
    want = real(2, 6) @ (whole(5, 6).astype(np.float32) * steps).T + real(5).astype(np.float16)
    np.testing.assert_allclose(run(data, real(2, 6))[0], want, 1e-5, 1e-5)


def test_four_bits_are_read_in_pairs() -> None:
    file = File()
    tensor = file.graph.tensor("w", (3,), "int8", scales(0.5, 0), file.buffer(bytes([0x7F, 0x08])))
    file.graph.tensors[tensor].type = 17  # INT4
    data = file.data(file.graph.op("DEQUANTIZE", [tensor]))
    np.testing.assert_array_equal(run(data)[0], np.float32([-0.5, 3.5, -4]))


def test_sparse_constants_are_filled() -> None:
    file = File()
    tensor = file.graph.tensor("w", (3, 4), F, None, file.buffer(np.float32([1, 2, 3]).tobytes()))
    sparsity = schema.SparsityParametersT()
    sparsity.traversalOrder, sparsity.blockMap = [0, 1], []
    rows, columns = schema.DimensionMetadataT(), schema.DimensionMetadataT()
    rows.format, rows.denseSize = 0, 3
    columns.format = 1
    columns.arraySegmentsType = columns.arrayIndicesType = schema.SparseIndexVector.Int32Vector
    columns.arraySegments, columns.arrayIndices = schema.Int32VectorT(), schema.Int32VectorT()
    columns.arraySegments.values, columns.arrayIndices.values = [0, 1, 1, 3], [2, 0, 3]
    sparsity.dimMetadata = [rows, columns]
    file.graph.tensors[tensor].sparsity = sparsity
    data = file.data(file.graph.op("DENSIFY", [tensor]))
    np.testing.assert_array_equal(run(data)[0], np.float32([[0, 0, 1, 0], [0, 0, 0, 0], [2, 0, 0, 3]]))


def test_signatures_name_inputs_and_outputs() -> None:
    file = File()
    x = file.graph.input("serving_default_x:0", (2, 3))
    y = file.graph.op("ABS", [x])
    file.signature = ({"picture": x}, {"size": y})
    model = pf.load(file.data(y))
    assert [value.name for value in model.inputs] == ["picture"]
    assert model.output_names == ["size"]


def two_signatures() -> tuple[File, bytes]:
    """A file whose first graph encodes (ABS) and whose second decodes (NEG)."""
    file = File()
    x = file.graph.input("a:0", (2, 3))
    y = file.graph.op("ABS", [x])
    other = file.subgraph()
    z = other.input("b:0", (4,))
    w = other.op("NEG", [z])
    other.outputs = [w]
    file.signatures = {"decode": (1, {"code": z}, {"text": w}), "encode": (0, {"text": x}, {"code": y})}
    return file, file.data(y)


def test_a_signature_chooses_a_graph(tmp_path: Path) -> None:
    data = two_signatures()[1]
    path = tmp_path / "codec.tflite"
    path.write_bytes(data)
    for key, given, made, shape in (("encode", "text", "code", (2, 3)), ("decode", "code", "text", (4,))):
        for source in (data, path, str(path)):
            model = pf.load(source, signature=key)
            assert [value.name for value in model.inputs] == [given] and model.output_names == [made]
        values = real(*shape)
        expected = np.abs(values) if key == "encode" else -values
        np.testing.assert_array_equal(pf.run(model, {given: values})[made], expected)
        runner = Interpreter(model_content=data).get_signature_runner(key)
        np.testing.assert_array_equal(runner(**{given: values})[made], expected)
    assert pf.load(data).output_names == ["code"]  # the first graph, by its own signature


def test_an_unknown_signature_lists_those_of_the_file() -> None:
    file, data = two_signatures()
    with pytest.raises(pf.ModelError, match=r"no signature 'serve': its signatures are 'decode', 'encode'"):
        pf.load(data, signature="serve")
    with pytest.raises(pf.ModelError, match=r"no signature 'serve': it has none"):
        plain = File()
        pf.load(plain.data(plain.graph.op("ABS", [plain.graph.input("x", (2,))])), signature="serve")
    file.signatures["decode"] = (7, {}, {})
    with pytest.raises(pf.ModelError, match="there is no subgraph 7"):
        pf.load(file.data(file.graph.outputs[0]), signature="decode")


def test_other_files_have_no_signatures(tmp_path: Path) -> None:
    pf.save(pf.load("painter"), tmp_path / "painter.perframe")
    pf.save(pf.load("painter"), tmp_path / "painter.onnx")
    for name in ("painter.perframe", "painter.onnx"):
        with pytest.raises(pf.InputError, match=f"{name} is not a LiteRT file"):
            pf.load(tmp_path / name, signature="serving_default")


def test_unknown_dims_stay_unknown() -> None:
    file = File()
    x = file.graph.input("x", (-1, 3))
    model = pf.load(file.data(file.graph.op("ABS", [x])))
    assert str(model.inputs[0].shape) == "(?, 3)"
    for rows in (1, 7):
        np.testing.assert_array_equal(pf.run(model, {"x": real(rows, 3)})["ABS_0_0"], np.abs(real(rows, 3)))


def test_an_output_may_be_an_input_or_come_twice() -> None:
    file = File()
    x = file.graph.input("x", (2, 3))
    y = file.graph.op("ABS", [x])
    data = file.data(y, x)
    made = run(data, real(2, 3))
    np.testing.assert_array_equal(made[0], np.abs(real(2, 3)))
    np.testing.assert_array_equal(made[1], real(2, 3))


@pytest.mark.parametrize("condition", [True, False])
def test_branches(backend: str, condition: bool) -> None:
    given = [np.array(condition), real(2, 3)]
    np.testing.assert_allclose(run(branch(), *given, backend=backend)[0], interpreted(branch(), given)[0], 1e-6)


@pytest.mark.parametrize("begin", [0, 9])
def test_loops(backend: str, begin: int) -> None:
    given = [np.array(begin, np.int32), real(2, 3)]
    made = run(loop(), *given, backend=backend)
    for got, want in zip(made, interpreted(loop(), given), strict=True):
        np.testing.assert_allclose(got, want, 1e-6)


def test_a_graph_that_contains_itself_is_an_error() -> None:
    file = File()
    x = file.graph.input("x", (2,))
    data = file.data(file.graph.op("CALL", [x], {"subgraph": 0}, kind="CallOptions"))
    with pytest.raises(pf.ModelError, match="contains itself"):
        pf.load(data)


def test_a_dilated_convolution_is_one_layer() -> None:
    file = File()
    graph = file.graph
    x = graph.input("x", (1, 9, 7, 3))
    blocks, pads = graph.constant(np.int32([2, 3])), graph.constant(np.int32([[2, 3], [3, 5]]))
    crops = graph.constant(np.int32([[0, 1], [0, 2]]))
    a = graph.op("SPACE_TO_BATCH_ND", [x, blocks, pads], kind="SpaceToBatchNDOptions")
    given = {"strideH": 1, "strideW": 1, "padding": 1}
    b = graph.op("CONV_2D", [a, graph.constant(real(4, 3, 3, 3)), graph.constant(real(4))], given, kind="Conv2DOptions")
    data = file.data(graph.op("BATCH_TO_SPACE_ND", [b, blocks, crops], kind="BatchToSpaceNDOptions"))
    assert [layer.op for layer in pf.load(data, optimize=False).layers] == ["Transpose", "Conv", "Transpose"]
    np.testing.assert_allclose(run(data, real(1, 9, 7, 3))[0], interpreted(data, [real(1, 9, 7, 3)])[0], 1e-4, 1e-4)


def test_unsupported_operators_are_listed_together() -> None:
    file = File()
    x = file.graph.input("x", (2, 3))
    for _ in range(2):
        x = file.graph.op("FlexErf", [x], shapes=[(2, 3)])
    x = file.graph.op("ABS", [x], shapes=[(2, 3)])
    x = file.graph.op("MyOwn", [x], shapes=[(2, 3)])
    x = file.graph.op("HASHTABLE_LOOKUP", [x], shapes=[(2, 3)])
    with pytest.raises(pf.UnsupportedOperatorError) as caught:
        pf.load(file.data(x))
    text = str(caught.value)
    assert "FlexErf × 2, MyOwn × 1, HASHTABLE_LOOKUP × 1" in text
    assert "needs TensorFlow itself" in text
    assert "(version 1)" in text
    assert len(caught.value.problems) == 4


def test_sources_may_be_paths_bytes_and_files(tmp_path: Path) -> None:
    data, _ = network()
    path = tmp_path / "a network"
    path.write_bytes(data)
    names = []
    for source in (path, str(path), data, bytearray(data), io.BytesIO(data)):
        model = pf.load(source)
        names.append(model.name)
        assert [value.name for value in model.inputs] == ["image"]
    assert names == ["a network", "a network", "bytes", "bytes", "file object"]


def test_a_buffer_may_lie_behind_the_flatbuffer() -> None:
    file = File()
    x = file.graph.input("x", (3,))
    y = file.graph.op("ADD", [x, file.graph.constant(np.float32([1, 2, 3]))], {}, kind="AddOptions")
    file.graph.outputs = [y]
    model = file.model()
    model.buffers[1].data, model.buffers[1].offset, model.buffers[1].size = None, 1 << 40, 12
    size = len(packed(model))
    model.buffers[1].offset = size
    data = packed(model)
    assert len(data) == size
    np.testing.assert_array_equal(
        run(data + np.float32([1, 2, 3]).tobytes(), real(3))[0], real(3) + np.float32([1, 2, 3])
    )
    with pytest.raises(pf.ModelError, match="truncated"):
        pf.load(data + b"1234")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensor: setattr(tensor, "shape", np.int32([4, 4])), r"'constant_1'.*\[4, 4\].*12 bytes"),
        (lambda tensor: setattr(tensor, "shape", np.int32([1 << 30, 1 << 30])), "too large"),
        (lambda tensor: setattr(tensor, "shape", np.int32([-3])), "negative"),
        (lambda tensor: setattr(tensor, "buffer", 77), "buffer 77"),
        (lambda tensor: setattr(tensor, "type", 13), "RESOURCE"),
        (lambda tensor: setattr(tensor, "quantization", scales(np.ones(7), 0, 0)), "7 scales"),
    ],
)
def test_tensors_that_do_not_fit_are_named(change: Any, words: str) -> None:
    file = File()
    x = file.graph.input("x", (3,))
    file.graph.outputs = [file.graph.op("ADD", [x, file.graph.constant(np.float32([1, 2, 3]))], {}, kind="AddOptions")]
    change(file.graph.tensors[1])
    with pytest.raises(pf.ModelError, match=words):
        pf.load(packed(file.model()))


def test_indices_outside_of_the_file_are_errors() -> None:
    for change in (
        lambda graph: setattr(graph.operators[0], "inputs", [0, 99]),
        lambda graph: setattr(graph.operators[0], "opcodeIndex", 5),
        lambda graph: setattr(graph, "outputs", [-7]),
        lambda graph: setattr(graph.operators[0], "inputs", [2]),
        lambda graph: setattr(graph, "inputs", [0, 0]),
    ):
        file = File()
        x = file.graph.input("x", (3,))
        file.graph.outputs = [file.graph.op("ABS", [x])]
        file.graph.tensor("nothing makes it", (3,))
        change(file.graph)
        with pytest.raises(pf.ModelError):
            pf.load(packed(file.model()))


def test_two_inputs_of_one_name_are_an_error() -> None:
    file = File()
    x, y = file.graph.input("x", (3,)), file.graph.input("x", (3,))
    with pytest.raises(pf.ModelError, match="two inputs are called 'x'"):
        pf.load(file.data(file.graph.op("ADD", [x, y], kind="AddOptions")))


@pytest.mark.slow
def test_values_within_may_have_one_name() -> None:
    file = File()
    x = file.graph.input("x", (3,))
    made = file.graph.op("NEG", [file.graph.op("SQUARE", [x])])
    for tensor in file.graph.tensors[1:]:
        tensor.name = "y"
    np.testing.assert_allclose(run(file.data(made), real(3))[0], -(real(3) ** 2), 1e-6)


@pytest.mark.parametrize("length", [1 << 20, (1 << 31) - 1, (1 << 32) - 1])
def test_a_vector_longer_than_the_file_is_an_error(length: int) -> None:
    """The vector of tensors is found by the first tensor's place in the file."""
    import tflite

    data, _ = network()
    model = tflite.Model.GetRootAs(data, 0)
    graph = model.Subgraphs(0)
    at = graph._tab.Vector(graph._tab.Offset(4)) - 4
    assert int.from_bytes(data[at : at + 4], "little") == graph.TensorsLength()
    with pytest.raises(pf.ModelError, match="longer than its"):
        pf.load(data[:at] + length.to_bytes(4, "little") + data[at + 4 :])


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(pf.ModelError, match="pipe"):
        pf.load(tmp_path / "pipe")


def test_every_cut_of_a_file_is_an_error() -> None:
    data, _ = network()
    for end in (*range(8, 400, 3), *range(400, len(data), 61)):
        with pytest.raises(pf.ModelError):
            pf.load(data[:end])


def test_ultraface_agrees_with_another_converter(tmp_path: Path) -> None:
    for package in ("tf2onnx", "tensorflow"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}")
    path = MODELS / "ultraface_rfb_320.tflite"
    if not path.is_file():
        pytest.skip("needs ../shared/models/ultraface_rfb_320.tflite")
    command = [sys.executable, "-m", "tf2onnx.convert", "--tflite", str(path), "--output", str(tmp_path / "m.onnx")]
    subprocess.run([*command, "--opset", "17"], check=True, capture_output=True)
    x = real(1, 240, 320, 3, low=-1, high=1)
    want, made = (pf.run(source, {"input_1": x}) for source in (tmp_path / "m.onnx", path))
    for name, value in want.items():
        assert np.abs(made[name] - value).max() <= 1e-4 * np.abs(value).max()


@pytest.mark.slow
def test_ultraface_agrees_with_its_export_to_onnx(backend: str) -> None:
    """The file has the boxes as the network makes them; the export decodes them, from the value of this name."""
    import onnx

    path = MODELS / "ultraface_rfb_320.tflite"
    if not path.is_file():
        pytest.skip("needs ../shared/models/ultraface_rfb_320.tflite")
    proto = onnx.load(MODELS / "ultraface_rfb_320.onnx")
    proto.graph.output.append(onnx.ValueInfoProto(name="460"))
    pixels = np.random.default_rng(5).integers(0, 256, (1, 240, 320, 3))
    x = ((pixels - 127) / 128).astype(np.float32)
    want = pf.run(proto, {"input": np.ascontiguousarray(x.transpose(0, 3, 1, 2))})
    model = pf.load(path)
    assert str(model.inputs[0]) == "input_1: float32 (?, 240, 320, 3)"
    made = pf.run(model, {"input_1": x}, backend=backend)
    for name, other in (("Identity", "460"), ("Identity_1", "scores")):
        assert np.abs(made[name] - want[other]).max() <= 1e-3 * np.abs(want[other]).max()
    left = {"cpu": 0, "gpu_compute": 9, "gpu_pixel": 9}[backend]  # the input, and eight heads before their reshapes
    assert sum(layer.op == "Transpose" for layer in prepare(model, evaluator(), backend).layers) == left
