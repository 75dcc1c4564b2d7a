"""`save` keeps a model in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from perframe.errors import InputError
from perframe.files.encryption import Key, check_key, encrypted
from perframe.files.model_file import buffers
from perframe.files.tensors import Buffer
from perframe.files.writing import write
from perframe.ir import Model

SUFFIXES = (".perframe", ".onnx", ".sentis")  # of files that can be loaded again
GLSL = ".glsl"


def check_name(name: str) -> None:
    """Raise InputError if the suffix of a file's name is that of another kind of file."""
    suffix = Path(name).suffix
    if suffix.lower() not in ("", *SUFFIXES, GLSL):
        raise InputError(
            f"a model is not saved as {suffix}: give {name!r} the suffix .perframe, .onnx or .sentis; .glsl gives a "
            "function for shaders"
        )


def save(model: Model, target: str | Path | IO[bytes], key: Key | None = None) -> None:
    """Save a model in its current state, optimized or not, to a path or a file object.

    A name that ends with ".onnx" gives an ONNX file; weights beyond 2 GB lie in a file beside it. A name that ends with
    ".sentis" gives a file for Unity (experimental). A name that ends with ".glsl" gives the text of `to_glsl`, whose
    function has the file's name. A name that ends with ".perframe", or has no suffix, gives a file of perframe's own.
    `key` encrypts such a file: a passphrase (str), or 32 bytes. A file at the path is replaced when the new one is
    whole.

    Raises ModelError for a model that cannot be saved or a path that cannot be written, InputError for a wrong model,
    key or target, and MissingExtraError if `key` is given and the extra `encryption` is not installed.
    """
    if not isinstance(model, Model):
        raise InputError(f"save takes a Model, and got {type(model).__name__}: save(pf.load(...), {str(target)!r})")
    if isinstance(target, (str, Path)):
        path = Path(target)
        name = path.name
        check_name(name)
    elif hasattr(target, "write"):
        path, name = None, str(getattr(target, "name", ""))
    else:
        raise InputError(f"cannot save a model to {type(target).__name__}: give a path or a file object")
    if model.check_file is not None:
        model.check_file()
    if key is not None:
        check_key(key)
    files: Mapping[str, Iterable[Buffer]]  # by their names; the first one is the model's
    if name.lower().endswith(".onnx"):
        from perframe.exporters.onnx import to_onnx

        if key is not None:
            raise InputError("an ONNX file cannot be encrypted: save the model under a name that ends with .perframe")
        beside = "" if path is None else f"{name}.data"
        proto, data = to_onnx(model, beside)
        files = {name: [proto.SerializeToString()]} | ({beside: data} if data else {})
    elif name.lower().endswith(".sentis"):
        from perframe.exporters.sentis.graph import to_sentis

        if key is not None:
            raise InputError("a .sentis file cannot be encrypted: give the model a name that ends with .perframe")
        files = {name: to_sentis(model)}
    elif name.lower().endswith(GLSL):
        from perframe.exporters.glsl.function import to_glsl
        from perframe.exporters.glsl.words import identifier

        if key is not None:
            raise InputError("a .glsl file cannot be encrypted: give the model a name that ends with .perframe")
        files = {name: [to_glsl(model, identifier(Path(name).stem)).encode()]}
    else:
        files = {name: buffers(model) if key is None else encrypted(buffers(model), key)}
    if path is not None:
        write({path.with_name(other): made for other, made in reversed([*files.items()])})
    else:
        assert not isinstance(target, (str, Path))
        for buffer in files[name]:
            target.write(buffer)
