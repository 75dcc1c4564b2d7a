"""Detection: what a file or a folder is, by its content. Nothing in the file is run."""

from __future__ import annotations

import glob
import json
import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from perframe.conversion.archives import check_names, tar_names, zip_content, zip_entries
from perframe.conversion.bundles import TABLE_END, bundle_content
from perframe.conversion.checkpoints import holds_module, pickled_tensors, safetensors_content, torch_pickle
from perframe.conversion.estimators import estimator_pickle, is_estimator, is_packed
from perframe.conversion.messages import TEXT, VARINT, Field, fields
from perframe.conversion.options import KINDS, SourceFile
from perframe.errors import ConversionError, MissingFileError
from perframe.files.container import looks_like
from perframe.files.reading import HEAD, is_own
from perframe.importers.formats import is_litert, is_sentis, what_it_is
from perframe.importers.shipped import MODELS

MESSAGE = 1 << 20  # bytes at the beginning of a protobuf message that tell its kind
MAX_JSON = 512 << 20  # bytes
KERAS_ENTRIES = {"config.json", "metadata.json", "model.weights.h5"}
LEGACY_TAR = {"pickle", "storages", "tensors"}
MAX_GRAPH = 512 << 20  # bytes
_ALLOWED = re.compile(r"[\w\s+\-*/(),.<>=!&|~%]*", re.ASCII)
_ATTRIBUTE = re.compile(r"(?<!\d)\.|\.(?![\de])")
_CALL = re.compile(r"\b([a-z_]\w*)\s*\(")
_SYMBOL = re.compile(r"\bSymbol\('\w+'", re.ASCII)  # as SymPy writes a variable
_FUNCTIONS = {"floor", "ceiling", "sqrt", "abs", "exp", "log", "sin", "cos", "tan"}
_OPERATOR = re.compile(rb"[A-Za-z_>][A-Za-z0-9_>./\-]{0,200}")


def detect(path: str | Path) -> SourceFile:
    """Tell what a file or a folder is. Raises MissingFileError, or ConversionError if it cannot be converted."""
    path = Path(path)
    try:
        if path.is_dir():
            return _folder(path)
        if not path.is_file():
            bundled = f"; `perframe save {path} OUT` writes the bundled model" if str(path) in MODELS else ""
            raise MissingFileError(f"there is no file {str(path)!r:.300}{bundled}")
        return _file(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, (ConversionError, MissingFileError)):
            raise
        raise ConversionError(f"{str(path)!r:.300} cannot be read: {error}") from error


def _source(path: Path, kind: str, calls: Sequence[str] = ()) -> SourceFile:
    return SourceFile(path, KINDS[kind], tuple(calls))


def _folder(path: Path) -> SourceFile:
    if (path / "saved_model.pb").is_file():
        return _source(path, "saved_model")
    if (path / "saved_model.pbtxt").is_file():
        raise ConversionError(f"{path} is a SavedModel in text form: save it again in binary form")
    if (path / "model.json").is_file():
        return _file(path / "model.json")
    graphs = sorted(path.glob("*.meta"))
    if len(graphs) == 1:
        return _file(graphs[0])
    names = sorted(one.name for one in path.iterdir())
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    what = f"{len(graphs)} checkpoints: give one .meta file" if graphs else f"no model that can be converted: {shown}"
    raise ConversionError(f"{path} is a folder with {what}")


def _file(path: Path) -> SourceFile:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEAD + 512)
    if head.startswith(b"PK\x03\x04"):
        return _zip(path)
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        _check_hdf5(path, head, size)
        return _source(path, "hdf5")
    if is_own(head):
        return _source(path, "perframe")
    if is_litert(head):
        return _source(path, "litert")
    if is_sentis(head):
        return _source(path, "sentis")
    if looks_like(head):
        safetensors_content(path)
        return _source(path, "safetensors")
    if head[257:262] == b"ustar":
        return _tar(path)
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05":
        return _estimator(path) or _pickle(path)
    if is_packed(head) and (found := _estimator(path)) is not None:
        return found
    if head.lstrip()[:1] == b"{":
        return _json(path, size)
    return _message(path, size)


# --- archives ---
def _zip(path: Path) -> SourceFile:
    names = set(zip_entries(path))
    inner = {name.partition("/")[2] for name in names}  # PyTorch puts all entries into one folder
    if names >= KERAS_ENTRIES:
        return _source(path, "keras")
    if {"serialized_exported_program.json", "archive_format"} & (names | inner):
        if any("data/aotinductor/" in name for name in names):
            raise ConversionError(f"{path} has machine code of AOTInductor, which would be run: save the program alone")
        graphs = [name for name in names if name.endswith(".json") and "config" not in name.rpartition("/")[2]]
        check_formulas(path, sorted(graphs))
        return _source(path, "exported_program")
    if "constants.pkl" in inner and any(name.startswith("code/") for name in inner):
        return _source(path, "torchscript")
    pickle = next((name for name in names if name == "data.pkl" or name.endswith("/data.pkl")), None)
    if pickle is not None:
        return _pickle(path, pickle)
    kind = "a zip archive that holds no model"
    if any(name.endswith(".npy") for name in names):
        kind = "an archive of NumPy arrays, which has no network"
    elif any(name.endswith(("saved_model.pb", "model.json", ".onnx", ".tflite", ".sentis")) for name in names):
        kind = "a zip archive with a model in it: unpack it, and give the model"
    shown = ", ".join(sorted(names)[:6])
    raise ConversionError(f"{path} is {kind} (it has {shown or 'no entries'})")


def _pickle(path: Path, entry: str = "") -> SourceFile:
    found = torch_pickle(path, entry)
    if holds_module(found.value):
        return _source(path, "module", found.names)
    if pickled_tensors(found.value, path):
        return _source(path, "checkpoint", found.names)
    raise ConversionError(
        f"{path} is a PyTorch file without a network or named weights: save the network's state_dict, or export it "
        "with torch.export"
    )


def _estimator(path: Path) -> SourceFile | None:
    found = estimator_pickle(path)
    return _source(path, "estimator", found.names) if found is not None and is_estimator(found) else None


def _tar(path: Path) -> SourceFile:
    names = tar_names(path)
    if set(names) >= LEGACY_TAR:
        raise ConversionError(
            f"{path} is a tar archive as PyTorch wrote before 2017, which only a full unpickling reads: load it with "
            "torch.load in your program, and save its state_dict"
        )
    raise ConversionError(f"{path} is a tar archive (it has {', '.join(names[:6])}): unpack it, and give the model")


# --- other formats ---
def _check_hdf5(path: Path, head: bytes, size: int) -> None:
    """Compare the end of the file in the superblock with the file. Raises ConversionError if it is cut.

    https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html documents the superblock.
    """
    version = head[8] if len(head) > 8 else 255
    at, widths_at = (40, 13) if version in (0, 1) else (28, 9) if version in (2, 3) else (0, 0)
    if version == 1:
        at += 4
    if not at or len(head) < at + 8 or head[widths_at] != 8:
        raise ConversionError(f"{path} is a damaged HDF5 file: its superblock is unknown. Copy it again")
    (end,) = struct.unpack_from("<Q", head, at)
    if end > size:
        raise ConversionError(
            f"{path} is a truncated HDF5 file: it should have {end:,} bytes, and has {size:,}. Copy it again"
        )


def _json(path: Path, size: int) -> SourceFile:
    if size > MAX_JSON:
        raise ConversionError(f"{path} is text of {size:,} bytes, and a model.json has at most {MAX_JSON:,}")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConversionError(f"{path}: {what_it_is(path.read_bytes()[:256])} ({error!s:.200})") from error
    topology = found.get("modelTopology") if isinstance(found, dict) else None
    manifest = found.get("weightsManifest") if isinstance(found, dict) else None
    if not isinstance(topology, dict) or not isinstance(manifest, list):
        raise ConversionError(f"{path} is JSON, not the model.json of a TensorFlow.js model")
    _check_weights(path, manifest)
    return _source(path, "tfjs_graph" if "node" in topology else "tfjs_layers")


def _check_weights(path: Path, manifest: list[Any]) -> None:
    """Raise ConversionError unless all files of weights lie beside the model.json."""
    files: list[Any] = []
    for group in manifest:
        if not isinstance(group, dict) or not isinstance(group.get("paths"), list):
            raise ConversionError(f"{path}: its weightsManifest does not name files of weights")
        files += group["paths"]
    if not all(isinstance(name, str) for name in files):
        raise ConversionError(f"{path}: its weightsManifest has names that are not text")
    check_names(files, path)
    folder = path.parent.resolve()
    for name in files:
        file = (folder / name).resolve()
        if not file.is_relative_to(folder):
            raise ConversionError(f"{path}: its weights {name!r:.200} lie outside its folder: do not trust this file")
        if not file.is_file():
            raise ConversionError(f"{path}: its weights {name!r:.200} are missing: put them beside it")


def _message(path: Path, size: int) -> SourceFile:
    with path.open("rb") as file:
        begin = file.read(MESSAGE)
        file.seek(max(0, size - len(TABLE_END)))
        end = file.read()
    kind = kind_of_message(begin, size)
    if kind == "saved_model":
        if path.name != "saved_model.pb":
            raise ConversionError(f"{path} is the graph of a SavedModel: call it saved_model.pb, beside its variables")
        return _source(path.parent, "saved_model")
    if kind == "meta_graph":
        _check_checkpoint(path)
    if kind is not None:
        return _source(path, kind)
    if end == TABLE_END or ".data-0" in path.name:
        return _weights(path)
    if b"node {" in begin[:4096]:
        raise ConversionError(f"{path} is a TensorFlow graph in text form: save it again in binary form")
    raise ConversionError(f"{path} cannot be converted: {what_it_is(begin)}")


def _weights(path: Path) -> SourceFile:
    """The checkpoint of which this file is the index, or a part of the data: its path is the name without suffixes."""
    prefix = path.with_name(path.name.removesuffix(".index").partition(".data-0")[0])
    if not Path(f"{prefix}.index").is_file() or not list(path.parent.glob(f"{glob.escape(prefix.name)}.data-0*")):
        raise ConversionError(
            f"{path} is a part of a TensorFlow checkpoint: put {prefix.name}.index and its .data files beside it"
        )
    bundle_content(prefix)
    return _source(prefix, "tf_checkpoint")


def _check_checkpoint(path: Path) -> None:
    if path.suffix != ".meta":
        raise ConversionError(f"{path} is a TensorFlow 1 graph: its name must end with .meta, as its weights' names do")
    if not path.with_suffix(".index").is_file() and not path.with_suffix("").is_file():
        raise ConversionError(
            f"{path} is a TensorFlow 1 graph, and its weights are missing: put {path.with_suffix('.index').name} and "
            f"{path.stem}.data-00000-of-00001 beside it"
        )


def check_formulas(path: Path, entries: list[str]) -> None:
    """Raise ConversionError if a size in these graphs is more than a formula.

    PyTorch hands the texts of sizes to SymPy, which evaluates them as Python: such a text could call anything.
    """
    for entry in entries:
        try:
            graph = json.loads(zip_content(path, entry, MAX_GRAPH))
            texts = [*_formulas(graph)]
        except (ValueError, RecursionError) as error:
            if isinstance(error, ConversionError):
                raise
            raise ConversionError(f"{path}: its graph {entry!r} is damaged: {error!s:.200}: copy it again") from error
        for text in texts:
            plain = _SYMBOL.sub("Symbol(", text)
            called = set(_CALL.findall(plain)) - _FUNCTIONS
            if called or "__" in text or _ATTRIBUTE.search(plain) or not _ALLOWED.fullmatch(plain):
                raise ConversionError(
                    f"{path}: the size {text!r:.200} in its graph is not a formula, and PyTorch would run it: do not "
                    "trust this file"
                )


def _formulas(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        for name, value in found.items():
            if name == "expr_str" and isinstance(value, str):
                yield value
            else:
                yield from _formulas(value)
    elif isinstance(found, list):
        for value in found:
            yield from _formulas(value)


def kind_of_message(data: bytes, size: int) -> str | None:
    """ "onnx", "saved_model", "graph" or "meta_graph" for a message of that format; None for any other data."""
    try:
        found = [*fields(data, size)]
    except ValueError:
        return None
    wires = {(field.number, field.wire) for field in found}
    numbers = {field.number for field in found}
    if (7, TEXT) in wires and wires & {(1, VARINT), (8, TEXT)}:
        return "onnx"
    if (1, VARINT) in wires and (2, TEXT) in wires and numbers <= {1, 2}:
        return "saved_model"
    if _is_graph(found):
        return "graph"
    graph = next((field.content for field in found if (field.number, field.wire) == (2, TEXT)), None)
    if graph is not None and numbers <= {1, 2, 3, 4, 5, 6, 7}:
        try:
            inner = [*fields(graph, size)]
        except ValueError:
            return None
        return "meta_graph" if _is_graph(inner) else None
    return None


def _is_graph(found: list[Field]) -> bool:
    """Whether these fields are those of a GraphDef: nodes, and versions or a library behind them."""
    nodes = [field.content for field in found if (field.number, field.wire) == (1, TEXT)]
    return bool(nodes) and {field.number for field in found} <= {1, 2, 3, 4} and _is_node(nodes[0])


def _is_node(data: bytes) -> bool:
    """Whether a message is a NodeDef: a name and an operator."""
    try:
        texts = {field.number: field.content for field in fields(data, len(data)) if field.wire == TEXT}
    except ValueError:
        return False
    return bool(texts.get(1)) and _OPERATOR.fullmatch(texts.get(2, b"")) is not None
