"""The kinds of files that can be converted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

TORCH, TENSORFLOW = "torch", "tensorflow"


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
        FileKind("keras", "a Keras model", TENSORFLOW),
        FileKind("hdf5", "a Keras model in HDF5", TENSORFLOW, ("h5py",)),
        FileKind("tfjs_graph", "a TensorFlow.js graph model", TENSORFLOW),
        FileKind("tfjs_layers", "a TensorFlow.js layers model", TENSORFLOW, ("h5py",)),
        FileKind("litert", "a LiteRT (TensorFlow Lite) model"),
        FileKind("onnx", "an ONNX model"),
        FileKind("perframe", "a model of perframe.save"),
    )
}

WEIGHTS = ("checkpoint", "safetensors")  # the kinds that have no network


@dataclass(frozen=True)
class SourceFile:
    """A file or a folder, and its kind. `calls` are the Python objects that a pickle names, as "module.name"."""

    path: Path
    kind: FileKind
    calls: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.path} is {self.kind.words}"
