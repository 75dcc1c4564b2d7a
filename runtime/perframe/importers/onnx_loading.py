"""ONNX files become models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

import onnx

from perframe.errors import InferenceError
from perframe.importers.onnx import Importer
from perframe.importers.onnx_file import read
from perframe.ir import Model, Names


def load_onnx(
    source: str | Path | bytes | IO[bytes] | onnx.ModelProto,
    progress: Callable[[str, float], None] = lambda _what, _done: None,
) -> Model:
    """Import an ONNX model. Raises ModelError; UnsupportedOperatorError lists all nodes that cannot be imported."""
    progress("reads the file", 0)
    file = read(source)
    try:
        importer = Importer(file.proto, file.name, Names(file.values), file.weights)
        model = importer.run(partial(progress, f"imports {len(file.proto.graph.node)} nodes"))
    except InferenceError as error:
        raise InferenceError(f"{file.name}: {error}") from None
    model.producer = f"{file.proto.producer_name} {file.proto.producer_version}".strip()
    model.opsets = dict(importer.opsets)
    return model
