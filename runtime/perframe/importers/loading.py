"""`load` turns a file into a model that is ready for a worker."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from perframe.backends import evaluator
from perframe.errors import InputError, ModelError
from perframe.importers.shipped import resolved
from perframe.ir import Model
from perframe.passes.clean import remove_unused
from perframe.safety.collection import free_dropped, uncollected, watch
from perframe.tensor.background import Background, Work, is_beside_frames

_NO_SIGNATURES = "{} is not a LiteRT file, and has no signature {!r}: outputs=[...] chooses outputs"


@uncollected()
def load(
    source: str | Path | bytes | IO[bytes] | Any,
    optimize: bool = True,
    dims: Mapping[str, int] | None = None,
    outputs: Sequence[str] | None = None,
    narrow_doubles: bool = False,
    progress: Callable[[str, float], None] | None = None,
    stop_after: int | None = None,
    key: str | bytes | None = None,
    signature: str | None = None,
) -> Model:
    """Load a model from a path, bytes, a file object or an `onnx.ModelProto`.

    The content of a file decides its format: ONNX, LiteRT (with the extra `litert`), Unity's .sentis, or that of
    `perframe.save`. The name of a model that ships with perframe, such as "painter", stands for its file: `perframe
    models` lists them.

    - `optimize=False` keeps the layers of the file, on each backend (the page "Optimizer" lists exceptions).
    - `dims` fixes open dims to sizes, by name; INPUT:AXIS names one without a name.
    - `outputs` chooses the outputs by name, from all values that layers make. Layers that they do not need are dropped.
    - `narrow_doubles=True` computes in float32 what the file computes in float64, for which GPU backends have no
      kernels. Inputs and outputs keep their types. Numbers beyond float32's range become infinite.
    - `progress(what, done)` is called during loading, with the current step and its fraction done.
    - `stop_after` limits the number of changes by passes, to find a faulty pass.
    - `key`, a passphrase or 32 bytes, decrypts a file of `perframe.save`.
    - `signature` chooses what a LiteRT file computes, by name, if it has several signatures. By default it is its first
      graph.

    Weights in other files are read only from the model's own folder, so such a model must be given by its path.

    The next load of an unchanged ONNX file reads the optimized model from the cache folder (the page "Saving").

    A model that was dropped may keep its memory for a while. A load first frees such models, if their weights take more
    than 64 MB and Python's collector is on.

    Raises ModelError for anything that is wrong with a file; MissingFileError, which is also a FileNotFoundError, if it
    does not exist; and UnsupportedOperatorError, which lists every node that cannot be imported.
    """
    if not is_beside_frames():
        free_dropped()
    report, source = progress or (lambda _what, _done: None), resolved(source)
    given = source, optimize, dims, outputs, narrow_doubles, report, stop_after, key, signature
    may_be_kept = optimize and stop_after is None and key is None and signature is None and _is_onnx_path(source)
    model = _kept_or_loaded(*given) if may_be_kept else _loaded(*given)
    watch(model, sum([array.nbytes for array in model.constants.values()]))
    return model


def _kept_or_loaded(
    source: str | Path,
    optimize: bool,
    dims: Mapping[str, int] | None,
    outputs: Sequence[str] | None,
    narrow_doubles: bool,
    *others: Any,
) -> Model:
    """Return the model as an earlier load kept it, or load it and keep it."""
    from perframe.importers.kept import kept  # late: other files do not need it
    from perframe.importers.reads import noted

    place = kept(source, dims, outputs, narrow_doubles)
    found = None if place is None else place.read(Path(source).name)
    if found is not None:
        return found
    with noted() as reads:
        model = _loaded(source, optimize, dims, outputs, narrow_doubles, *others)
    if place is not None:
        place.write(model, reads)
    return model


def _is_onnx_path(source: Any) -> bool:
    return isinstance(source, (str, Path)) and str(source).lower().endswith(".onnx")


def _loaded(
    source: Any,
    optimize: bool,
    dims: Mapping[str, int] | None,
    outputs: Sequence[str] | None,
    narrow_doubles: bool,
    report: Callable[[str, float], None],
    stop_after: int | None,
    key: str | bytes | None,
    signature: str | None,
) -> Model:
    from perframe.passes.prepared import freeze

    try:
        model = _imported(source, report, key, signature)
        if dims is not None:
            model.fix_dims(dims)
        if outputs is not None:
            model.keep_outputs(outputs)
            remove_unused.run(model, evaluator())
        if narrow_doubles:
            from perframe.passes.clean import narrow_doubles as narrowing

            narrowing.run(model, evaluator())
        done = model.optimized and not dims and outputs is None and not narrow_doubles and stop_after is None
        if optimize and not done:
            from perframe.passes import optimize as run_passes

            run_passes(model, evaluator(), report, stop_after)
        if not optimize:
            _keep_as_filed(model)
        freeze(model)
        model.inference.forget(but=model.layers)
    except RecursionError:
        raise ModelError("the model's graphs and functions are nested too deeply") from None
    return model


def load_async(
    source: str | Path | bytes | IO[bytes] | Any,
    optimize: bool = True,
    dims: Mapping[str, int] | None = None,
    outputs: Sequence[str] | None = None,
    narrow_doubles: bool = False,
    progress: Callable[[str, float], None] | None = None,
    stop_after: int | None = None,
    key: str | bytes | None = None,
    signature: str | None = None,
) -> Background[Model]:
    """Begin to load a model beside the frames: `model = await pf.load_async("m.onnx")` in a coroutine of a script, or
    of any program with asyncio.

    The options are those of `load`, and so are the errors, which `await` raises. A thread loads: it keeps Python's
    lock (the GIL) for a millisecond at a time, and within a frame it pauses six. The result also has `done`, `progress`
    (a fraction of the current step), `doing` (the step), `result()` and `cancel()`. `progress(what, done)` is called by
    the coroutine that awaits. Canceling that coroutine cancels the loading. Do not change `source` before the end.
    """

    def begin(work: Work) -> Model:
        return load(source, optimize, dims, outputs, narrow_doubles, work.report, stop_after, key, signature)

    return Background(begin, "load_async", progress)


def _keep_as_filed(model: Model) -> None:
    """Let no backend fuse layers of the model or of its bodies."""
    model.preparations = 0
    for layer in model.layers:
        for body in layer.inner_models.values():
            _keep_as_filed(body)


def _imported(
    source: Any, report: Callable[[str, float], None], key: str | bytes | None, signature: str | None
) -> Model:
    """Return the model as it is in the file. The file's first bytes tell its format."""
    from perframe.files.reading import read_bytes, read_file

    found: Model | None = None
    if isinstance(source, (str, Path)):
        found = read_file(Path(source), key)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        found = read_bytes(memoryview(source).toreadonly(), "bytes", key)
    elif hasattr(source, "read"):
        source = _whole(source)
        found = read_bytes(source.getbuffer().toreadonly(), source.name, key)
    if found is None:
        return _of_other_programs(source, report, signature)
    if signature is not None:
        raise InputError(_NO_SIGNATURES.format(found.name, signature))
    return found


def _of_other_programs(source: Any, report: Callable[[str, float], None], signature: str | None) -> Model:
    from perframe.importers.formats import is_litert, is_sentis, named_bytes

    found: Any = named_bytes(source, lambda head: is_litert(head) or is_sentis(head))
    data, name = found if isinstance(found, tuple) else (b"", "")
    if is_litert(data):
        from perframe.importers.litert.graph import load_litert

        return load_litert(data, name, report, signature)
    if data:
        from perframe.importers.sentis.graph import load_sentis

        model = load_sentis(data, name, report)
    else:
        from perframe.importers.onnx import load_onnx

        model = load_onnx(found, report)
    if signature is not None:
        raise InputError(_NO_SIGNATURES.format(model.name, signature))
    return model


class _Whole(io.BytesIO):
    """A file object's bytes, with the name that messages give to it."""

    name = "file object"


def _whole(file: Any) -> _Whole:
    """Read a file object. Raises ModelError if it gives text."""
    name, data = str(getattr(file, "name", _Whole.name)), file.read()
    if not isinstance(data, bytes):
        raise ModelError(f"{name}: read() gave {type(data).__name__} and not bytes: open the file with mode 'rb'")
    whole = _Whole(data)
    whole.name = name
    return whole
