"""Recognition of files that are not ONNX files, by their first bytes, with advice how to get an ONNX file."""

from __future__ import annotations

_TORCH = "export the network with torch.onnx.export(model, inputs, 'model.onnx')"
_SIGNS: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"version https://git-lfs", "a pointer of Git LFS", "fetch the file that it stands for: git lfs pull"),
    (0, b"PK\x03\x04", "a zip archive, as PyTorch writes its checkpoints", _TORCH),
    (0, b"\x80\x02", "a Python pickle, as PyTorch wrote its checkpoints", _TORCH),
    (0, b"\x80\x03", "a Python pickle", _TORCH),
    (0, b"\x80\x04", "a Python pickle", _TORCH),
    (0, b"\x80\x05", "a Python pickle", _TORCH),
    (0, b"\x89HDF\r\n", "an HDF5 file, as Keras writes its models", "convert it with tf2onnx"),
    (4, b"TFL3", "a TensorFlow Lite model", "convert it: python -m tf2onnx.convert --tflite FILE --output model.onnx"),
    (4, b"ORTM", "a model in onnxruntime's own format", "take the .onnx file that it was made of"),
    (0, b"GGUF", "a GGUF file", "export the network to ONNX"),
    (8, b'{"', "a safetensors file, which has weights and no network", "export the network to ONNX"),
    (0, b"\x1f\x8b", "compressed with gzip", "unpack it first"),
    (0, b"\x89PNG", "a PNG picture", "give the model's file"),
    (0, b"\xff\xd8\xff", "a JPEG picture", "give the model's file"),
)


def what_it_is(data: bytes) -> str:
    """Return a sentence about data that does not parse as ONNX: its likely format, and what to do."""
    for at, sign, what, then in _SIGNS:
        if data[at : at + len(sign)] == sign:
            return f"it is {what}: {then}"
    begin = data[:256].lstrip()
    if begin[:1] == b"<":
        return "it is a page of HTML or XML, as a failed download leaves: fetch the model itself"
    if begin and all(9 <= byte < 127 for byte in begin):
        return "it is text: ONNX files are binary; fetch or export the model again"
    return "it is truncated or of another format; copy or export it again"
