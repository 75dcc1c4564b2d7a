"""Arguments of a conversion: kinds of files, inputs and open dims as a command line writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perframe.errors import InputError

OLDEST_OPSET, NEWEST_OPSET = 15, 26
MAX_VALUES = 1 << 31  # in an input
DTYPES = ("float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
_INPUT = re.compile(r"(?P<name>.+?)(:(?P<shape>scalar|(\d+|\?|-1)(x(\d+|\?|-1))*)(:(?P<dtype>[a-z]+\d*))?)?")
_DYNAMIC = re.compile(r"(?P<input>.+):(?P<axis>-?\d+)=(?P<name>[A-Za-z_]\w*)")
TORCH, TENSORFLOW, SKLEARN = "torch", "tensorflow", "sklearn"


@dataclass(frozen=True)
class InputShape:
    """An input of a network: its name, its shape with -1 for an open dim, and its dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class OpenDim:
    """A dim of an input that stays open, and its name."""

    input: str
    axis: int
    name: str


def parse_input(text: str) -> InputShape:
    """Parse "name:1x3x224x224" or "name:1x16:int64"; "?" is an open dim, and "scalar" a shape without dims.

    Raises InputError.
    """
    found = _INPUT.fullmatch(text)
    if found is None or found["shape"] is None:
        raise InputError(
            f"--input takes NAME:SHAPE or NAME:SHAPE:DTYPE, such as image:1x3x224x224; {text!r} is not that"
        )
    sizes = [] if found["shape"] == "scalar" else found["shape"].split("x")
    return checked_input(found["name"], [-1 if size in ("?", "-1") else int(size) for size in sizes], found["dtype"])


def checked_input(name: str, shape: Sequence[int], dtype: str | None = None) -> InputShape:
    """An input with a checked shape and dtype. Raises InputError."""
    dtype = dtype or "float32"
    if dtype not in DTYPES:
        raise InputError(f"input {name!r}: {dtype!r} is not one of {', '.join(DTYPES)}")
    if not all(type(size) is int and size >= -1 for size in shape):
        raise InputError(f"input {name!r}: {tuple(shape)} is not a shape: give integers, and -1 for an open dim")
    if math.prod(abs(size) for size in shape) > MAX_VALUES or len(shape) > 32:
        raise InputError(f"input {name!r}: {tuple(shape)} has more than {MAX_VALUES:,} values, or more than 32 dims")
    return InputShape(name, tuple(shape), dtype)


def parse_dynamic(text: str) -> OpenDim:
    """Parse "name:axis=dim", such as "image:0=batch". Raises InputError."""
    found = _DYNAMIC.fullmatch(text)
    if found is None:
        raise InputError(f"--dynamic takes NAME:AXIS=DIM, such as image:0=batch; {text!r} is not that")
    return OpenDim(found["input"], int(found["axis"]), found["name"])


def inputs_of(given: Sequence[str] | Mapping[str, Sequence[int] | InputShape]) -> list[InputShape]:
    """Inputs from texts, or from shapes by name. Raises InputError."""
    if isinstance(given, Mapping):
        found = [
            checked_input(shape.name, shape.shape, shape.dtype)
            if isinstance(shape, InputShape)
            else checked_input(name, shape)
            for name, shape in given.items()
        ]
    else:
        found = [parse_input(text) for text in given]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the input {name!r} is given twice")
    return found


def dims_of(given: Sequence[str] | Mapping[str, Mapping[int, str]]) -> list[OpenDim]:
    """Open dims from texts, or from names by input and axis. Raises InputError."""
    if isinstance(given, Mapping):
        return [parse_dynamic(f"{name}:{axis}={dim}") for name, axes in given.items() for axis, dim in axes.items()]
    return [parse_dynamic(text) for text in given]


def check_opset(opset: int) -> None:
    """Raise InputError unless the exporters may write this opset."""
    if type(opset) is not int or not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        raise InputError(f"opset must be {OLDEST_OPSET} to {NEWEST_OPSET}, and is {opset}")


@dataclass(frozen=True)
class FileKind:
    """A kind of file: its name, words for a person, and the framework that reads it ("" for perframe itself).

    `modules` are the packages, beside the framework's own, without which such a file cannot be read.
    """

    name: str
    words: str
    framework: str = ""
    modules: tuple[str, ...] = ()


KINDS = {
    kind.name: kind
    for kind in (
        FileKind("exported_program", "a PyTorch program of torch.export", TORCH),
        FileKind("torchscript", "a TorchScript file", TORCH),
        FileKind("module", "a pickled PyTorch module", TORCH),
        FileKind("checkpoint", "a PyTorch checkpoint, which has weights and no network", TORCH),
        FileKind("safetensors", "a safetensors file, which has weights and no network", TORCH, ("safetensors",)),
        FileKind("saved_model", "a TensorFlow SavedModel", TENSORFLOW),
        FileKind("graph", "a frozen TensorFlow graph", TENSORFLOW),
        FileKind("meta_graph", "a TensorFlow 1 graph with weights in a checkpoint beside it", TENSORFLOW),
        FileKind("tf_checkpoint", "a TensorFlow checkpoint, which has weights and no network", TENSORFLOW),
        FileKind("keras", "a Keras model", TENSORFLOW),
        FileKind("hdf5", "a Keras model in HDF5", TENSORFLOW, ("h5py",)),
        FileKind("tfjs_graph", "a TensorFlow.js graph model", TENSORFLOW),
        FileKind("tfjs_layers", "a TensorFlow.js layers model", TENSORFLOW, ("h5py",)),
        FileKind("estimator", "a pickled estimator of scikit-learn", SKLEARN),
        FileKind("litert", "a LiteRT (TensorFlow Lite) model"),
        FileKind("sentis", "a .sentis model of Unity"),
        FileKind("onnx", "an ONNX model"),
        FileKind("perframe", "a model of perframe.save"),
    )
}
WEIGHTS = ("checkpoint", "safetensors", "tf_checkpoint")  # the kinds that have no network


@dataclass(frozen=True)
class SourceFile:
    """A file or a folder, and its kind. `calls` are the Python objects that a pickle names, as "module.name"."""

    path: Path
    kind: FileKind
    calls: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.path} is {self.kind.words}"
