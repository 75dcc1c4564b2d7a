"""All public names of Unity's Sentis, and what stands for them here: `python tests/sentis_names.py` writes the page.

The types and their members are those of the source of com.unity.ai.inference 2.4, the functions those of 2.6. The
second text of a row is an expression, which a test evaluates.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from functional.sentis import SENTIS, snake_case

PAGE = Path(__file__).resolve().parents[1] / "docs" / "recipes" / "from-sentis.md"
BLOCK = re.compile(r"(?<=<!-- names -->\n).*?(?=<!-- end of names -->)", re.DOTALL)

TYPES: Mapping[str, Mapping[str, str]] = {
    "Worker": {
        "new Worker(model, backendType)": 'pf.Worker(model, "cpu")',
        "new Worker(model, DeviceType.GPU)": 'pf.Worker(model, "auto")',
        "backendType": "worker.backend_type",
        "SetInput(name, tensor)": 'worker.set_input("ink", tensor)',
        "SetInput(index, tensor)": "worker.set_input(0, tensor)",
        "Schedule(tensor)": "worker.schedule(tensor)",
        "Schedule()": "worker.schedule()",
        "ScheduleIterable(tensor)": "worker.schedule_iterable(tensor)",
        "PeekOutput()": "worker.peek_output()",
        "PeekOutput(name)": "worker.peek_output(model.output_names[0])",
        "PeekOutput(index)": "worker.peek_output(0)",
        "CopyOutput(index, ref tensor)": "worker.copy_output(0)",
        "Dispose()": "worker.release",
    },
    "CommandBufferWorkerExtensions": {
        "ScheduleWorker(worker, tensor)": "commands.schedule_worker(worker, tensor)",
        "ScheduleWorkerIterable(worker, tensor)": "commands.schedule_worker_iterable(worker, tensor)",
        "Graphics.ExecuteCommandBuffer(cb)": "commands.execute",
    },
    "Tensor, Tensor<T>": {
        "new Tensor<float>(shape, array)": "pf.Tensor(array)",
        "new Tensor<float>(shape)": "pf.Tensor.empty(shape)",
        "new Tensor<float>(shape, clearOnInit: true)": "pf.Tensor(np.zeros(shape, np.float32))",
        "new Tensor<float>(shape, tensorData)": "pf.Tensor.over(storage, shape, tensor.dtype)",
        "dataType": "tensor.dtype",
        "shape": "tensor.shape",
        "count": "tensor.shape.size",
        "backendType": "tensor.backend_type",
        "dataOnBackend": "tensor.data_on_backend",
        "AdoptTensorData(data)": "pf.Tensor.over(storage, shape, tensor.dtype)",
        "ReleaseTensorData()": "tensor.data_on_backend",
        "Reshape(shape)": "tensor.reshape((28, 28))",
        "Upload(array)": "tensor.upload(array)",
        "this[d1, d0]": "tensor[0, 0, 3, 4]",
        "this[d1, d0] = value": "tensor.__setitem__((0, 0, 3, 4), 1.0)",
        "ReadbackRequest()": "tensor.readback_request()",
        "IsReadbackRequestDone()": "tensor.is_readback_request_done()",
        "ReadbackAndClone()": "tensor.readback_and_clone()",
        "ReadbackAndCloneAsync()": "tensor.readback_and_clone_async",
        "DownloadToArray()": "tensor.download_to_array()",
        "DownloadToNativeArray()": "tensor.download_to_native_array(writable=True)",
        "AsReadOnlyNativeArray(), AsReadOnlySpan()": "tensor.download_to_native_array()",
        "CompleteAllPendingOperations()": "tensor.readback_request().result(wait=True)",
        "ToString()": "repr(tensor)",
        "Dispose()": "tensor.release",
    },
    "ITensorData, CPUTensorData, ComputeTensorData, TextureTensorData": {
        "CPUTensorData.Pin(tensor)": 'tensor.pin("cpu")',
        "ComputeTensorData.Pin(tensor)": 'ctx and tensor.pin("gpu_compute", ctx)',
        "TextureTensorData.Pin(tensor)": 'ctx and tensor.pin("gpu_pixel", ctx)',
        "ConvertToCPUTensorData(), ConvertToComputeTensorData()": 'tensor.to("cpu")',
        "new CPUTensorData(count)": "storage.like(shape, tensor.dtype)",
        "backendType": "storage.backend_type",
        "maxCapacity": "storage.max_capacity",
        "array, buffer, bufferAsTexture": "storage.memory",
        "rawPtr": "storage.address",
        "fence, reuse": "storage.fences",
        "Upload(array, count)": "storage.upload(array)",
        "Download(count)": "storage.download()",
        "DownloadAsync(count)": "storage.request(shape, tensor.dtype)",
        "ReadbackRequest(), IsReadbackRequestDone()": "storage.request(shape, tensor.dtype).poll()",
        "CompleteAllPendingOperations()": "[fence.wait() for fence in storage.fences]",
        "Dispose()": "storage.release",
    },
    "TensorShape": {
        "new TensorShape(1, 3, 4)": "pf.TensorShape((1, 3, 4))",
        "rank": "shape.rank",
        "length": "shape.size",
        "this[axis]": "shape[-1]",
        "Length(start, end)": "math.prod(shape[1:3])",
        "HasZeroDims()": "0 in shape",
        "ToArray()": "list(shape)",
        "Squeeze(axis), Reduce(axis, false)": "shape[:1] + shape[2:]",
        "Unsqueeze(axis)": "(*shape[:1], 1, *shape[1:])",
        "Flatten()": "pf.TensorShape([shape.size])",
        "Broadcast(other)": "np.broadcast_shapes(shape, (3, 1, 1))",
        "Reduce(axis, true)": "(*shape[:1], 1, *shape[2:])",
        "Ones(rank)": "pf.TensorShape([1] * 3)",
    },
    "DynamicTensorShape": {
        "new DynamicTensorShape(-1, 3)": "pf.DynamicTensorShape((None, 3))",
        "DynamicOfRank(rank)": "pf.DynamicTensorShape([None] * 3)",
        "Ones(rank)": "pf.DynamicTensorShape([1] * 3)",
        "isRankDynamic": "model.inputs[0].shape is None",
        "rank": "dynamic.rank",
        "IsStatic()": "dynamic.is_static",
        "ToTensorShape()": 'dynamic.with_dims({"n": 4}).to_shape()',
        "ToIntArray()": "list(dynamic)",
        "Get(axis)": "dynamic[0]",
        "Set(axis, dim)": "pf.DynamicTensorShape((4, *dynamic[1:]))",
        "SetDynamic(axis)": "pf.DynamicTensorShape((None, *dynamic[1:]))",
    },
    "Model, Input, Output, Layer, Constant": {
        "inputs": "model.inputs",
        "outputs": "model.outputs",
        "layers": "model.layers",
        "constants": "model.constants",
        "Input.name, Output.name": "model.inputs[0].name",
        "Input.dataType": "model.inputs[0].dtype",
        "Input.shape": "model.inputs[0].shape",
        "Input.index, Output.index": "model.output_names.index(model.outputs[0].name)",
        "Layer.opName": "model.layers[0].op",
        "Layer.inputs": "model.layers[0].inputs",
        "Layer.outputs": "model.layers[0].outputs",
        "ProducerName": "model.producer",
        "AddOutput(name, index)": 'model.keep_outputs(["probabilities", "edges"])',
        "ToString()": "pf.inspect(model)",
    },
    "ModelLoader, ModelWriter, ModelAsset, ModelQuantizer": {
        "ModelLoader.Load(path), Load(modelAsset)": "pf.load(path)",
        "ModelLoader.Load(stream)": "pf.load(path.open('rb'))",
        "ModelWriter.Save(path, model)": "pf.save(model, path)",
        "ModelWriter.Save(stream, model)": "pf.save(model, io.BytesIO())",
        "QuantizeWeights(QuantizationType.Float16, ref model)": 'pf.quantize(model, "float16")',
        "QuantizeWeights(QuantizationType.Uint8, ref model)": 'pf.quantize(model, "uint8")',
        "IONNXMetadataImportCallbackReceiver": "model.metadata",
    },
    "TextureConverter": {
        "ToTensor(texture, tensor, transform)": "converter.to_tensor(picture, canvas, how)",
        "ToTensor(texture, width, height, channels)": "converter.to_tensor(picture, size=(8, 6), channels=3)",
        "ToTensor(texture, transform)": "converter.to_tensor(picture, transform=how)",
        "RenderToTexture(tensor, texture, transform)": "converter.to_texture(canvas, picture, how)",
        "ToTexture(tensor, transform)": "converter.to_texture(canvas, transform=how)",
        "RenderToScreen(tensor, transform)": "converter.render_to_screen",
        "CommandBuffer.ToTensor(...)": "commands.to_tensor(picture, canvas)",
        "CommandBuffer.RenderToTexture(...)": "commands.to_texture(canvas, picture)",
        "CommandBuffer.RenderToScreen(...)": "commands.render_to_screen(canvas)",
    },
    "TextureTransform, TensorLayout, CoordOrigin, Channel, ChannelSwizzle": {
        "SetDimensions(width, height, channels)": "converter.to_tensor(picture, size=(8, 6), channels=3)",
        "SetTensorLayout(TensorLayout.NHWC)": 'pf.TextureTransform(layout="NHWC")',
        "SetTensorLayout(n, c, h, w)": 'pf.TextureTransform(layout="HWNC")',
        "SetCoordOrigin(CoordOrigin.BottomLeft)": 'pf.TextureTransform(coord_origin="bottom_left")',
        "SetChannelSwizzle(ChannelSwizzle.BGRA)": 'pf.TextureTransform(swizzle="bgra")',
        "SetChannelSwizzle(Channel.R, 2)": 'how.replace(swizzle="bga")',
        "SetBroadcastChannels(true)": "pf.TextureTransform(broadcast=True)",
        "SetChannelColorMask(true, true, true, false, color)": (
            'pf.TextureTransform(write_mask="a", masked_color=(1, 1, 1, 1))'
        ),
    },
    "FunctionalGraph, FunctionalTensor": {
        "new FunctionalGraph()": "pf.FunctionalGraph()",
        "AddInput(dataType, shape, name)": 'graph.add_input("float32", (2, "n"))',
        "AddInput(model, index), AddInputs(model)": "graph.add_inputs(model)",
        "AddOutput(output), Compile()": "graph.compile(f * 2)",
        "Compile(outputs)": "graph.compile(twice=f * 2, half=f / 2)",
        "FunctionalTensor operators": "(-f + 1) * f % 3 > 2",
        "FunctionalTensor[index, range]": "f[0, 1:3]",
        "FunctionalExtensions": "f.relu()",
    },
    "BackendType, DataType, DeviceType": {
        "BackendType.CPU": "pf.BackendType.CPU",
        "BackendType.GPUCompute": "pf.BackendType.GPU_COMPUTE",
        "BackendType.GPUPixel": "pf.BackendType.GPU_PIXEL",
        "DataType.Float": "pf.DataType.FLOAT32",
        "DataType.Int": "pf.DataType.INT32",
        "DataType.Short, DataType.Byte": "pf.DataType.INT16, pf.DataType.UINT8",
        "DeviceType.GPU": 'pf.Worker(model, "auto").backend_type',
    },
    "Tokenizer, ITokenizer, IEncoding": {
        "new Tokenizer(mapper, ...)": "pf.text.Tokenizer(tokenizer_json)",
        "Encode(text), GetIds()": 'tokenizer.encode("hello")',
        "Decode(ids)": 'tokenizer.decode(tokenizer.encode("hello"))',
    },
}
FROM_FILE = """
BpeMapper WordPieceMapper BertNormalizer PrependNormalizer AppendNormalizer ReplaceNormalizer RegexReplaceNormalizer
SequenceNormalizer UnicodeNormalizer BertPreTokenizer ByteLevelPreTokenizer RegexSplitPreTokenizer SequencePreTokenizer
ByteLevelPostProcessor RobertaPostProcessor TemplatePostProcessor ByteLevelDecoder ByteFallbackDecoder FuseDecoder
ReplaceDecoder StripDecoder WordPieceDecoder LongestFirstTruncator LeftPadding RightPadding
"""  # parts of a tokenizer, which tokenizer.json names


def page() -> str:
    """The generated part of the page."""
    return "\n".join([*_types(), *_functions(), ""])


def _types() -> Iterator[str]:
    for title, rows in TYPES.items():
        heading = re.sub(r"\w+<\w+>", r"`\g<0>`", title)  # Markdown takes <T> for a tag
        yield from (f"\n### {heading}\n", "| Sentis | perframe |", "|---|---|")
        yield from (f"| `{theirs}` | `{_shown(ours)}` |" for theirs, ours in rows.items())
    names = ", ".join(f"`{name}`" for name in FROM_FILE.split())
    yield f"\nThe file tokenizer.json describes the parts of a tokenizer, and `pf.text.Tokenizer` reads it: {names}."


def _shown(ours: str) -> str:
    return ours.removeprefix("ctx and ").replace("|", "\\|")


def _functions() -> Iterator[str]:
    same = sorted(theirs for theirs, ours in SENTIS.items() if ours == snake_case(theirs))
    other = sorted((theirs, ours) for theirs, ours in SENTIS.items() if ours != snake_case(theirs))
    yield f"\n### Functional\n\n`F` is `pf.functional`. These {len(same)} functions have the same names in snake_case:"
    yield f"\n{', '.join(f'`{name}`' for name in same)}.\n\nThe other {len(other)} have PyTorch's names:\n"
    yield from ("| Sentis | perframe |", "|---|---|", *(f"| `{theirs}` | `F.{ours}` |" for theirs, ours in other))


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda _: page(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
