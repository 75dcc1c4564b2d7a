"""The kinds of files that can be converted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

TORCH, TENSORFLOW = "torch", "tensorflow"


@dataclass(frozen=True)
class Kind:
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
        Kind("exported_program", "a PyTorch program of torch.export", TORCH),
        Kind("torchscript", "a TorchScript file", TORCH),
        Kind("module", "a pickled PyTorch module", TORCH),
        Kind("checkpoint", "a PyTorch checkpoint, which has weights and no network", TORCH),
        Kind("safetensors", "a safetensors file, which has weights and no network", TORCH, ("safetensors",)),
        Kind("saved_model", "a TensorFlow SavedModel", TENSORFLOW),
        Kind("graph", "a frozen TensorFlow graph", TENSORFLOW),
        Kind("meta_graph", "a TensorFlow 1 graph with weights in a checkpoint beside it", TENSORFLOW),
        Kind("keras", "a Keras model", TENSORFLOW),
        Kind("hdf5", "a Keras model in HDF5", TENSORFLOW, ("h5py",)),
        Kind("tfjs_graph", "a TensorFlow.js graph model", TENSORFLOW),
        Kind("tfjs_layers", "a TensorFlow.js layers model", TENSORFLOW, ("h5py",)),
        Kind("litert", "a LiteRT (TensorFlow Lite) model"),
        Kind("onnx", "an ONNX model"),
        Kind("perframe", "a model of perframe.save"),
    )
}

WEIGHTS = ("checkpoint", "safetensors")  # the kinds that have no network


@dataclass(frozen=True)
class Source:
    """A file or a folder, and what it is. `calls` are the Python objects that a pickle names, as "module.name"."""

    path: Path
    kind: Kind
    calls: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.path} is {self.kind.words}"
