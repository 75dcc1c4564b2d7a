"""perframe: neural networks inside a frame loop.

The names below are loaded when they are first used, so that `import perframe` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from perframe.safety import collection as _collection
from perframe.safety import notebooks as _notebooks

__version__ = "0.1.0"

_MODULE_OF = {
    "BackendType": "tensor",
    "CommandBuffer": "execution.command_buffer",
    "DataType": "tensor",
    "Tensor": "backends",
    "TensorShape": "tensor",
    "Readback": "tensor.readback",
    "DynamicTensorShape": "ir.sizes.partial",
    "Layer": "ir",
    "Model": "ir",
    "load": "importers.loading",
    "load_async": "importers.loading",
    "save": "exporters.saving",
    "to_glsl": "exporters.glsl.function",
    "FunctionalGraph": "functional.graph",
    "FunctionalTensor": "functional.tensor",
    "Worker": "execution.worker",
    "run": "execution.once",
    "compare": "inspection.comparison",
    "convert": "conversion.converting",
    "inspect": "inspection.facts",
    "profile": "profiling.profile",
    "process": "processing.processing",
    "quantize": "quantization.quantizing",
    "tune": "execution.tuning",
    "TextureConverter": "textures.converter",
    "TextureTransform": "textures.transform",
    "MemoryLimit": "tensor.memory",
    "App": "host",
    "attach": "host.guest",
    "Frame": "host",
    "Run": "host",
    "Script": "host",
    "next_frame": "host",
    "seconds": "host",
    "PerframeError": "errors",
    "ModelError": "errors",
    "ContextLostError": "errors",
    "ConversionError": "errors",
    "UnsupportedOperatorError": "errors",
    "InferenceError": "errors",
    "PassError": "errors",
    "InputError": "errors",
    "ReadbackPendingError": "errors",
    "ClosedError": "errors",
    "BackendError": "errors",
    "FallbackError": "errors",
    "FormulaError": "errors",
    "MemoryLimitError": "errors",
    "MissingExtraError": "errors",
    "MissingFileError": "errors",
    "MissingFolderError": "errors",
}

_MODULES = ("functional", "host", "jobs", "layers", "media", "profiling", "text", "vision")
_MOVED = {
    "ProgressBar": "host",
    "ProfileOverlay": "profiling",
    "PartialTensor": "ir.sizes.partial",
    "Value": "ir",
    "elementwise": "layers",
    "layer": "layers",
    "ReadbackPending": "errors",
}

__all__ = [*_MODULE_OF, *_MODULES, "__version__"]

if TYPE_CHECKING:
    from perframe import functional as functional
    from perframe import host as host
    from perframe import jobs as jobs
    from perframe import layers as layers
    from perframe import media as media
    from perframe import profiling as profiling
    from perframe import text as text
    from perframe import vision as vision
    from perframe.conversion.converting import convert as convert
    from perframe.errors import BackendError as BackendError
    from perframe.errors import ClosedError as ClosedError
    from perframe.errors import ContextLostError as ContextLostError
    from perframe.errors import ConversionError as ConversionError
    from perframe.errors import FallbackError as FallbackError
    from perframe.errors import FormulaError as FormulaError
    from perframe.errors import InferenceError as InferenceError
    from perframe.errors import InputError as InputError
    from perframe.errors import MemoryLimitError as MemoryLimitError
    from perframe.errors import MissingExtraError as MissingExtraError
    from perframe.errors import MissingFileError as MissingFileError
    from perframe.errors import MissingFolderError as MissingFolderError
    from perframe.errors import ModelError as ModelError
    from perframe.errors import PassError as PassError
    from perframe.errors import PerframeError as PerframeError
    from perframe.errors import ReadbackPendingError as ReadbackPendingError
    from perframe.errors import UnsupportedOperatorError as UnsupportedOperatorError
    from perframe.execution.command_buffer import CommandBuffer as CommandBuffer
    from perframe.execution.once import run as run
    from perframe.execution.tuning import tune as tune
    from perframe.execution.worker import Worker as Worker
    from perframe.exporters.glsl.function import to_glsl as to_glsl
    from perframe.exporters.saving import save as save
    from perframe.functional.graph import FunctionalGraph as FunctionalGraph
    from perframe.functional.tensor import FunctionalTensor as FunctionalTensor
    from perframe.host import App as App
    from perframe.host import Frame as Frame
    from perframe.host import Run as Run
    from perframe.host import Script as Script
    from perframe.host import attach as attach
    from perframe.host import next_frame as next_frame
    from perframe.host import seconds as seconds
    from perframe.importers.loading import load as load
    from perframe.importers.loading import load_async as load_async
    from perframe.inspection.comparison import compare as compare
    from perframe.inspection.facts import inspect as inspect
    from perframe.ir import Layer as Layer
    from perframe.ir import Model as Model
    from perframe.ir.sizes.partial import DynamicTensorShape as DynamicTensorShape
    from perframe.processing.processing import process as process
    from perframe.profiling.profile import profile as profile
    from perframe.quantization.quantizing import quantize as quantize
    from perframe.tensor import BackendType as BackendType
    from perframe.tensor import DataType as DataType
    from perframe.tensor import Tensor as Tensor
    from perframe.tensor import TensorShape as TensorShape
    from perframe.tensor.memory import MemoryLimit as MemoryLimit
    from perframe.tensor.readback import Readback as Readback
    from perframe.textures.converter import TextureConverter as TextureConverter
    from perframe.textures.transform import TextureTransform as TextureTransform


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"perframe.{name}")
    if name in _MOVED:
        return _moved(name)
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'perframe' has no attribute {name!r}{_meant(name)}")
    with _collection.uncollected():  # an import makes 10,000s of objects, none of them garbage
        value = getattr(import_module(f"perframe.{module}"), name)
    globals()[name] = value
    return value


def _meant(name: str) -> str:
    from perframe.safety.wording import did_you_mean  # imported late: only errors need it

    hint = "" if name.startswith("_") else did_you_mean(name, (*_MODULE_OF, *_MODULES))
    return f": {hint.rstrip()}" if hint else ""


def _moved(name: str) -> Any:
    """A name by its former place, with a warning that tells the new one."""
    import warnings

    place, now = f"perframe.{_MOVED[name]}", "ReadbackPendingError" if name == "ReadbackPending" else name
    warnings.warn(f"perframe.{name} is {place}.{now} now", DeprecationWarning, stacklevel=3)
    return getattr(import_module(place), now)


def _model_page(model: Any) -> str:
    """The graph of a model, scaled to a notebook's cell."""
    return _notebooks.framed(import_module("perframe.inspection.page").page_text(model))


_notebooks.pages["Model"] = _model_page


def __dir__() -> list[str]:
    return sorted(__all__)
