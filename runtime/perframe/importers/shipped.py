"""The models that ship with perframe. Their names stand for their files everywhere: `pf.load("painter")`."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from perframe.errors import MissingFileError
from perframe.resources import resource
from perframe.safety.wording import did_you_mean


class Shipped(NamedTuple):
    """A small model of the project's own: its name, its file within `assets`, what it does, and its first input's
    values.
    """

    name: str
    file: str
    purpose: str
    values: str = ""

    @property
    def path(self) -> Path:
        """Its file. Raises FileNotFoundError for an installation without it."""
        return resource("assets", *self.file.split("/"))


LICENSE = "Apache-2.0"
_SUFFIXES = (".onnx", ".perframe", ".sentis", ".tflite")  # of models
_MOST_FILES = 2000  # in a folder, of which a name is compared with theirs
_ALL = (
    Shipped("agents", "agents/agents.onnx", "steers creatures in a flock"),
    Shipped("depth", "depth/depth.onnx", "estimates the depth of a drawn scene", "RGB in 0..1"),
    Shipped("digits", "digits/digits.onnx", "recognizes a handwritten digit", "ink in 0..1"),
    Shipped("faces", "faces/faces.onnx", "finds drawn faces and six points of each", "RGB in -1..1"),
    Shipped("landmarks", "hands/landmarks.onnx", "finds the 21 joints of a drawn hand in a crop", "RGB in 0..1"),
    Shipped("languages", "languages/languages.perframe", "tells English, German, French and Spanish apart"),
    Shipped("life", "life/life.onnx", "grows cells into a butterfly, one step a run"),
    Shipped("neural", "neural/neural.onnx", "colors a marble, as a texture inside a shader"),
    Shipped("painter", "painter/painter.onnx", "repaints a picture in oil", "RGB in 0..1"),
    Shipped("palms", "hands/palms.onnx", "finds the palms of drawn hands in a picture", "RGB in 0..1"),
    Shipped("segment", "segment/segment.onnx", "separates drawn people from the background", "RGB in 0..1"),
    Shipped("talk", "talk/talk.onnx", "answers letter by letter, as a lighthouse keeper"),
    Shipped("upscale", "upscale/upscale.onnx", "doubles the width and height of a rendered frame", "RGB in 0..1"),
    Shipped("voice", "listen/voice.onnx", "hears whether somebody speaks", "16,000 samples a second in -1..1"),
)
MODELS = {model.name: model for model in _ALL}


def resolved(source: Any) -> Any:
    """Replace the name of a shipped model by its file, and return any other source unchanged.

    A file with that name in the current folder has priority. "~/" stands for the user's folder. Raises MissingFileError
    for an unknown name without a suffix.
    """
    if not isinstance(source, (str, Path)) or os.path.exists(source):
        return source
    name = str(source)
    if name in MODELS:
        return MODELS[name].path
    if name.startswith(("~/", f"~{os.sep}")):
        return Path(os.path.expanduser(name))
    if name and not Path(name).suffix and Path(name).name == name:
        raise MissingFileError(
            f"there is no model or file {name!r:.300}; {models_like(name)}models that ship with perframe: {known()}"
        )
    return source


def models_like(name: str) -> str:
    """The shipped models, and the model files in the folder of a missing one, whose names without suffixes resemble its
    name, as `did_you_mean` says it.
    """
    files = (file.name for file in islice(Path(name).parent.glob("*.*"), _MOST_FILES) if file.suffix in _SUFFIXES)
    return did_you_mean(Path(name).name, (*MODELS, *files), _without_suffix)


def _without_suffix(name: str) -> str:
    """A name without the suffix of a model file; ".onnx" alone is equal for all."""
    path = Path(name)
    return path.stem if path.suffix.lower() in _SUFFIXES else name


def known() -> str:
    """The names of all shipped models."""
    return ", ".join(MODELS)
