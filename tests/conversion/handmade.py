"""Files of other formats, written byte by byte, so that their detection is tested without their frameworks."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from importers.sentis_files import network

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C


# --- pickles, instruction by instruction ---


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def name(module: str, function: str) -> bytes:
    return f"c{module}\n{function}\n".encode()


def sizes(*values: int) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(*shape: int, storage: str = "FloatStorage") -> bytes:
    """torch._utils._rebuild_tensor_v2(storage, 0, shape, strides, False, OrderedDict())"""
    where = b"(" + text("storage") + name("torch", storage) + text("0") + text("cpu") + number(1) + b"tQ"
    rest = sizes(*shape) + b"\x89" + name("collections", "OrderedDict") + b")R"
    return name("torch._utils", "_rebuild_tensor_v2") + b"(" + where + number(0) + sizes(*shape) + rest + b"tR"


def mapping(items: Mapping[str, bytes]) -> bytes:
    return b"}(" + b"".join(text(key) + value for key, value in items.items()) + b"u"


def whole(content: bytes) -> bytes:
    return b"\x80\x02" + content + b"."


WEIGHTS = mapping({"conv.weight": tensor(4, 3, 3, 3), "conv.bias": tensor(4, storage="HalfStorage")})
MODULE = name("shapes", "Net") + b")\x81" + mapping({"training": b"\x89", "_modules": mapping({})}) + b"b"
LONG = b"\x8a" + bytes([len(LEGACY_MAGIC.to_bytes(10, "little"))]) + LEGACY_MAGIC.to_bytes(10, "little")


def legacy(content: bytes) -> bytes:
    """A file of torch.save as it was before zip archives."""
    return whole(LONG) + whole(number(1001)) + whole(mapping({})) + whole(content) + whole(b"]")


# --- archives ---


def zipped(entries: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for entry, content in entries.items():
            archive.writestr(zipfile.ZipInfo(entry), content, compression)
    return made.getvalue()


def tarred(entries: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for entry, content in entries.items():
            header = tarfile.TarInfo(entry)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return made.getvalue()


def torch_archive(content: bytes, **more: bytes) -> bytes:
    return zipped({"m/data.pkl": whole(content), "m/version": b"3\n", "m/data/0": bytes(16), **more})


def program(formula: str = "Symbol('s40', positive=True, integer=True)", **more: bytes) -> bytes:
    graph = json.dumps({"graph": {"sizes": [{"as_expr": {"expr_str": formula}}, {"as_int": 3}]}}).encode()
    return zipped({"m/archive_format": b"pt2", "m/models/model.json": graph, "m/data/weights/weight_0": b"1234"} | more)


# --- protobuf messages, and others ---


def varint(value: int) -> bytes:
    made = b""
    while value > 127:
        made, value = made + bytes([value & 127 | 128]), value >> 7
    return made + bytes([value])


def part(number: int, content: bytes | int) -> bytes:
    """A field of a message: a number, or bytes."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


# --- indexes of TensorFlow's checkpoints ---


def bundle(entries: Mapping[str, bytes], end: bytes = bytes.fromhex("57fb808b247547db")) -> bytes:
    """The index of a checkpoint: a table of two blocks, in which keys begin as the last one does."""

    def block(pairs: Mapping[bytes, bytes]) -> bytes:
        made, last = b"", b""
        for key, value in pairs.items():
            shared = next((at for at, (a, b) in enumerate(zip(key, last, strict=False)) if a != b), 0)
            made += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
            last = key
        return made + bytes(4) + (1).to_bytes(4, "little")

    data = block({key.encode(): value for key, value in entries.items()})
    index = block({b"~": varint(0) + varint(len(data))})
    place = varint(len(data) + 5) + varint(len(index))
    return data + bytes(5) + index + bytes(5) + (varint(0) + varint(0) + place).ljust(40, b"\0") + end


def weight(*shape: int, dtype: int = 1) -> bytes:
    """The entry of a tensor."""
    return part(1, dtype) + part(2, b"".join(part(2, part(1, size)) for size in shape)) + part(5, 4)


BUNDLE = bundle({"": part(1, 1), "_GRAPH": weight(dtype=7), "net/a": weight(3, 4), "net/b": weight(dtype=9)})


NODE = part(1, b"x") + part(2, b"Placeholder")
GRAPH = part(1, NODE) + part(1, part(1, b"y") + part(2, b"Relu") + part(3, b"x")) + part(4, part(1, 27))
META_GRAPH = part(1, part(5, b"2.21.0")) + part(2, GRAPH) + part(3, part(1, b"save/Const:0"))
SAVED_MODEL = part(1, 1) + part(2, META_GRAPH)
ONNX = part(1, 8) + part(2, b"maker") + part(7, part(2, b"graph")) + part(8, part(2, 18))
TFJS = {"modelTopology": {"node": []}, "weightsManifest": [{"paths": ["a.bin"], "weights": []}]}
HDF5 = b"\x89HDF\r\n\x1a\n" + bytes([2, 8, 8, 0]) + struct.pack("<QQQQ", 0, (1 << 64) - 1, 2044, 48) + bytes(2000)
KERAS = {"metadata.json": b"{}", "config.json": b"{}", "model.weights.h5": HDF5}


def safetensors() -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(24)


ESTIMATOR = name("sklearn.linear_model._base", "LinearRegression") + b")\x81" + mapping({"coef_": number(3)}) + b"b"
FILES: dict[str, tuple[str, bytes]] = {  # by the kind that they are: their names, and their content
    "exported_program": ("m.pt2", program()),
    "torchscript": ("m.pt", torch_archive(MODULE, **{"m/constants.pkl": b"", "m/code/__torch__.py": b""})),
    "module": ("m.pth", torch_archive(MODULE)),
    "checkpoint": ("m.pth.tar", torch_archive(mapping({"epoch": number(3), "state_dict": WEIGHTS}))),
    "safetensors": ("m.safetensors", safetensors()),
    "graph": ("m.pb", GRAPH),
    "keras": ("m.keras", zipped(KERAS, zipfile.ZIP_DEFLATED)),
    "hdf5": ("m.h5", HDF5),
    "estimator": ("m.joblib", whole(ESTIMATOR)),
    "litert": ("m.tflite", bytes(4) + b"TFL3" + bytes(60)),
    "onnx": ("m.onnx", ONNX),
    "sentis": ("m.sentis", network()[0]),
    "tf_checkpoint": ("w.index", BUNDLE),
    "saved_model": ("saved_model.pb", SAVED_MODEL),
    "meta_graph": ("m.ckpt.meta", META_GRAPH),
    "tfjs_graph": ("model.json", json.dumps(TFJS).encode()),
}
BESIDE = {"m.ckpt.index": b"", "a.bin": b"", "w.data-00000-of-00001": b""}


def written(folder: Path, kind: str, content: bytes | None = None) -> Path:
    """A file of a kind, with what belongs beside it."""
    for other in BESIDE:
        (folder / other).write_bytes(BESIDE[other])
    path = folder / FILES[kind][0]
    path.write_bytes(FILES[kind][1] if content is None else content)
    return path
