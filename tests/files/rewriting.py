"""Model files taken apart and put together again, with checksums that fit, so that what they say is what is tested."""

from __future__ import annotations

import base64
import io
import json
import zlib
from dataclasses import dataclass
from typing import Any

import perframe as pf
from perframe.files.model_file import PLAIN
from perframe.files.packing import unpacked
from perframe.files.tensors import checksum


def saved(model: pf.Model, key: str | bytes | None = None, name: str = "") -> bytes:
    """The bytes of a saved model; with a name that ends with .onnx, those of an ONNX file."""
    file = io.BytesIO()
    file.name = name  # type: ignore[attr-defined]
    pf.save(model, file, key)
    return file.getvalue()


@dataclass
class Parts:
    """A file's metadata, its other entries, its graph, and the bytes of its tensors."""

    metadata: dict[str, Any]
    entries: dict[str, Any]
    graph: dict[str, Any]
    body: bytearray

    @classmethod
    def of(cls, data: bytes) -> Parts:
        length = int.from_bytes(data[:8], "little")
        entries = json.loads(data[8 : 8 + length])
        metadata = entries.pop("__metadata__")
        text = metadata["graph"] if metadata["perframe"] == PLAIN else unpacked(metadata["graph"], "the graph")
        return cls(metadata, entries, json.loads(text), bytearray(data[8 + length :]))

    @property
    def layers(self) -> Any:
        """The layers of the model."""
        return self.graph["model"]["layers"]

    def sealed(self) -> bytes:
        """The file, with the checksums of what it holds now."""
        tensors = self.graph.get("tensors")
        for name, said in tensors.items() if isinstance(tensors, dict) else ():
            entry = self.entries.get(name)
            try:
                begin, end = entry["data_offsets"]
                said[2] = checksum(bytes(self.body[begin:end]))
            except (TypeError, LookupError, ValueError):  # damaged on purpose
                continue
        text = json.dumps(self.graph)
        if self.metadata["perframe"] != PLAIN:
            text = base64.b64encode(zlib.compress(text.encode())).decode()
        return self.with_graph(text)

    def with_graph(self, text: str) -> bytes:
        """The file with this text for its graph, and the text's checksum."""
        metadata = self.metadata | {"graph": text, "checksum": f"{zlib.crc32(text.encode()):08x}"}
        header = json.dumps({"__metadata__": metadata, **self.entries}, separators=(",", ":")).encode()
        return len(header).to_bytes(8, "little") + header + self.body
