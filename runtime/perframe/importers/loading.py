"""`load` turns a file into a model that is ready for a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from perframe.backends import evaluator
from perframe.errors import ModelError
from perframe.model import Model


def load(
    source: str | Path | bytes | IO[bytes] | Any,
    optimize: bool = True,
    dims: Mapping[str, int] | None = None,
    narrow_doubles: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> Model:
    """Import an ONNX or LiteRT model from a path, bytes, a file object or an `onnx.ModelProto`.

    The content of a file decides which format it has. LiteRT needs the extra `litert`.

    `dims` fixes named dims to sizes. `optimize=False` leaves the layers as they are in the file. `narrow_doubles=True`
    computes in float32 what the file computes in float64, which no GPU backend has kernels for; inputs and outputs keep
    their types, and a number beyond float32's range becomes infinite. `progress(what, done)` is called on the way, with
    the present step and the fraction of it that is done. Weights in other files are read from the model's
    own folder only, so the model must be given by its path. Raises ModelError for anything that is wrong with a file.
    MissingFileError, a FileNotFoundError too, says that there is no such file, and UnsupportedOperatorError lists every
    node that cannot be imported.
    """
    from perframe.importers.formats import is_litert, named_bytes
    from perframe.importers.onnx import load_onnx
    from perframe.passes.prepared import freeze

    report = progress or (lambda _what, _done: None)
    try:
        found = named_bytes(source, is_litert)
        if isinstance(found, tuple):
            from perframe.importers.litert.graph import load_litert

            data, name = found
            model = load_litert(data, name, report)
        else:
            model = load_onnx(found, report)
        if dims is not None:
            model.fix_dims(dims)
        if narrow_doubles:
            from perframe.passes import narrow_doubles as narrowing

            narrowing.run(model, evaluator())
        if optimize:
            from perframe.passes import optimize as run_passes

            run_passes(model, evaluator(), report)
        freeze(model)
    except RecursionError:
        raise ModelError("the model's graphs and functions lie too deep within each other") from None
    return model
