"""A model as one safetensors file, with the graph as JSON under `__metadata__`."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from perframe.errors import InferenceError, ModelError, UnsupportedOperatorError
from perframe.files import container
from perframe.files.checks import check
from perframe.files.container import TensorEntry
from perframe.files.graph import GraphReader, checked_metadata, described, metadata_of, read_dtype
from perframe.files.packing import packed, unpacked
from perframe.files.tensors import Buffer, checksum, decoded, encoded, stored_bytes, stored_form
from perframe.ir import Model, Names
from perframe.ir.declaration import MAX_RANK
from perframe.tensor import DataType
from perframe.tensor.background import take_turns
from perframe.tensor.checks import too_large

Array = NDArray[Any]
PLAIN, PACKED = "1", "2"  # versions of the format: the graph as text, and packed


Place = Callable[[Array], tuple[int, int] | None]
Outside = Callable[[tuple[int, int], DataType, tuple[int, ...]], Array]


def buffers(model: Model, outside: Place | None = None) -> Iterator[Buffer]:
    """Yield the bytes of a file, buffer by buffer. Raises ModelError before the first one.

    Each tensor begins at a multiple of the largest power of two, up to 64, that divides its size: the order is that of
    these powers. So the weights that count lie on lines of the cache, and nothing is between the tensors. An array that
    `outside` finds in another file, by the file's index and a byte in it, is left there. Then the graph is not packed
    either: speed matters more than size.
    """
    model.verify()
    arrays: dict[str, Array] = {}
    keys: dict[int, str] = {}
    names = Names([container.METADATA])

    def key_of(name: str, array: Array) -> str:
        if id(array) not in keys:
            keys[id(array)] = names.free(name)
            arrays[keys[id(array)]] = array
        return keys[id(array)]

    graph = described(model, key_of)
    places = {key: outside and outside(array) for key, array in arrays.items()}
    data = {key: encoded(array, f"tensor {key!r}") for key, array in arrays.items() if places[key] is None}
    order = sorted(data, key=lambda key: -math.gcd(len(data[key]), container.ALIGNMENT))
    entries: dict[str, TensorEntry] = {}
    tensors: dict[str, list[Any]] = {
        key: [DataType.of(arrays[key].dtype).value, list(arrays[key].shape), list(place)]
        for key, place in places.items()
        if place is not None
    }
    at = 0
    for key in order:
        array, size = arrays[key], len(data[key])
        dtype = DataType.of(array.dtype)
        entries[key] = TensorEntry(*stored_form(dtype, array.shape, size), at, at + size)
        tensors[key] = [dtype.value, list(array.shape), checksum(data[key])]
        at += size
    origin = {"producer": model.producer, "opsets": model.opsets, "metadata": checked_metadata(model)}
    whole = {"optimized": model.optimized, **origin, "model": graph, "tensors": tensors}
    text = json.dumps(whole, separators=(",", ":"), allow_nan=False)
    small = packed(text) if outside is None else None
    version, said = (PLAIN, text) if small is None else (PACKED, small)
    metadata = {"perframe": version, "checksum": f"{zlib.crc32(said.encode()):08x}", "graph": said}
    yield container.composed(metadata, entries)
    yield from (data[key] for key in order)


def read(
    data: memoryview,
    file: str,
    outside: Outside | None = None,
    settle: Callable[[], None] = lambda: None,
) -> Model:
    """Return the model in a file's bytes, by the file's name. Its constants are read-only views of the bytes, or what
    `outside` reads of other files; `settle` waits until these are filled. Raises ModelError.
    """
    try:
        metadata, entries, body = container.parsed(data)
        graph = _graph(metadata)
        builder = GraphReader(_arrays(graph.get("tensors"), entries, body, outside))
        model = builder.model(graph.get("model"))
        if builder.problems:
            raise UnsupportedOperatorError(file, builder.problems)
        model.name = file  # as messages call it
        settle()  # shape rules may read their numbers
        check(model)
        model.metadata = metadata_of(graph)
    except UnsupportedOperatorError:
        raise
    except ModelError as error:
        said = str(error).removeprefix(f"{file}: ")
        raise (InferenceError if isinstance(error, InferenceError) else ModelError)(f"{file}: {said}") from None
    model.optimized = graph.get("optimized") is True
    producer, opsets = graph.get("producer"), graph.get("opsets")
    model.producer = producer if isinstance(producer, str) else ""
    if isinstance(opsets, dict):
        model.opsets = {name: version for name, version in opsets.items() if type(version) is int}
    return model


def _graph(metadata: Mapping[str, str]) -> dict[str, Any]:
    version, text = metadata.get("perframe", ""), metadata.get("graph", "")
    if version not in (PLAIN, PACKED):
        raise ModelError(
            f"it is of version {version!r:.80} of the format, and this perframe reads versions {PLAIN} and {PACKED}: "
            "save it again with this perframe, or install the one that wrote it"
        )
    if metadata.get("checksum") != f"{zlib.crc32(text.encode('utf-8', 'replace')):08x}":
        raise ModelError("its graph is damaged: the checksum differs; copy or save the file again")
    return container.parsed_json(unpacked(text, "its graph") if version == PACKED else text, "its graph")


def _arrays(
    tensors: Any, entries: Mapping[str, TensorEntry], body: memoryview, outside: Outside | None
) -> dict[str, Array]:
    read: dict[str, Array] = {}
    for key, said in tensors.items() if isinstance(tensors, dict) else ():
        match said:
            case [str(name), list(shape), [int(file), int(at)]] if outside is not None:
                read[key] = outside((file, at), read_dtype(name, f"tensor {key!r:.200}"), tuple(shape))
    if not isinstance(tensors, dict) or tensors.keys() - read.keys() != entries.keys():
        raise ModelError("its graph and its header list different tensors")
    return read | {key: _array(key, tensors[key], entry, body) for key, entry in entries.items()}


def _array(key: str, said: Any, entry: TensorEntry, body: memoryview) -> Array:
    """Return a tensor. Its size is compared with the file, and its checksum with the bytes. Raises ModelError."""
    take_turns()
    where = f"tensor {key!r:.200}"
    match said:
        case [str(name), list(shape), int(wanted)] if all([type(dim) is int and dim >= 0 for dim in shape]):
            dtype = read_dtype(name, where)
        case _:
            raise ModelError(f"{where} has no dtype, shape and checksum: {said!r:.200}")
    if len(shape) > MAX_RANK:
        raise ModelError(f"{where} has {len(shape)} dims, and at most {MAX_RANK} are possible")
    if reason := too_large(shape, dtype):
        raise ModelError(f"{where} is too large: {reason}")
    size = entry.end - entry.begin
    if stored_bytes(dtype, shape) not in (size, None) or (entry.dtype, entry.shape) != stored_form(dtype, shape, size):
        raise ModelError(f"{where} is {dtype} of shape {tuple(shape)} in the graph, not in the header")
    data = body[entry.begin : entry.end]
    if checksum(data) != wanted:
        raise ModelError(f"{where} is damaged: the checksum differs; copy or save the file again")
    return decoded(data, dtype, shape, where)
