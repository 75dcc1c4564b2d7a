"""The work on each picture: a model runs on it, or a frame of a script."""

from __future__ import annotations

import importlib.util
import inspect
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from perframe.errors import BackendError, InputError, PerframeError
from perframe.execution.worker import Worker
from perframe.host import App, Clock, Script, Surface, open_surface
from perframe.host.surface import BlankSurface
from perframe.importers.loading import load
from perframe.ir import Model, Value
from perframe.media.picture import Picture, Pixels
from perframe.processing.settings import Settings, split_script
from perframe.tensor import DataType, Tensor
from perframe.textures.converter import TextureConverter
from perframe.textures.transform import TextureTransform

log = logging.getLogger("perframe")

Result = Pixels | Mapping[str, np.ndarray[Any, Any]]
"""A picture, H x W x 3 of uint8, or a model's outputs by name."""
_CHANNELS = (1, 3, 4)


class PictureStep(Protocol):
    """The work on the pictures of a chunk, in their order."""

    stretch: Fraction
    """The aspect of the last result's pixels, by that of its picture's pixels."""

    def __call__(self, picture: Picture) -> Result:
        """The result for a picture."""

    def release(self) -> None:
        """Free what it holds."""


class ModelStep:
    """Runs a model that takes one picture. Its first output becomes a picture again if it has the form of one."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self._worker = Worker(model, settings.backend, carry=settings.carry)  # refuses states that do not fit
        try:
            self._input = _picture_input(model, settings.carry)
        except InputError:
            self._worker.release()
            raise
        dims = [dim if isinstance(dim, int) else None for dim in self._input.shape or ()]
        self._rows_last = len(dims) >= 3 and dims[-1] not in _CHANNELS  # the channels come first
        self._dims = dims
        mean, std = (tuple(number / settings.scale for number in given) for given in (settings.mean, settings.std))
        how = TextureTransform(layout="NCHW" if self._rows_last else "NHWC", resample="antialias")
        self._how = how.replace(mean=_each(mean), std=_each(std))
        self._converter = TextureConverter()
        self._keeps_outputs = settings.suffix == ".npz"
        self.stretch = Fraction(1)
        self._must_draw = settings.is_video or (bool(settings.suffix) and not self._keeps_outputs)

    def begin(self) -> None:
        """Begin the states again."""
        self._worker.reset()

    def __call__(self, picture: Picture) -> Result:
        """Run the model."""
        height, width = picture.pixels.shape[:2]
        known = iter(self._dims[-2:] if self._rows_last else self._dims[-3:-1])
        rows, columns = (dim or own for dim, own in zip(known, (height, width), strict=True))
        self.stretch = Fraction(width * rows, height * columns)
        channels = self._dims[-3 if self._rows_last else -1] or 3
        shape = (channels, rows, columns) if self._rows_last else (rows, columns, channels)
        tensor = Tensor.empty((1,) * (len(self._dims) - 3) + shape, self._input.dtype)
        self._converter.to_tensor(picture.pixels, tensor, self._how)
        self._worker.schedule({self._input.name: tensor})
        outputs = {name: self._worker.peek_output(name) for name in self._worker.model.output_names}
        arrays = {name: value.download_to_array() for name, value in outputs.items() if isinstance(value, Tensor)}
        if not self._keeps_outputs:
            drawn = self._drawn(next(iter(arrays.values())))
            if drawn is not None:
                return drawn
            if self._must_draw:
                name, array = next(iter(arrays.items()))
                raise InputError(
                    f"{self._worker.model.name}: the output {name!r} of shape {array.shape} is not a picture: write to "
                    "a folder, which takes all outputs as .npz files, or draw it with a script"
                )
        return arrays

    def _drawn(self, array: np.ndarray[Any, Any]) -> Pixels | None:
        """An output as a picture; None if it has another form."""
        while array.ndim > 3 and array.shape[0] == 1:
            array = array[0]
        if array.ndim != 3 or array.dtype not in (np.float32, np.float16, np.uint8):
            return None
        channels, *size = array.shape if self._rows_last else (array.shape[2], *array.shape[:2])
        if channels not in _CHANNELS or min(size) < 2:
            return None
        drawn = np.zeros((*size, 3), np.uint8)
        values = array.astype(np.float32) if array.dtype == np.float16 else array
        self._converter.to_texture(Tensor(values[None]), drawn, self._how.replace(broadcast=True))
        return drawn

    def release(self) -> None:
        """Release the worker."""
        self._worker.release()
        self._converter.release()


def _each(numbers: tuple[float, ...]) -> Any:
    return numbers[0] if len(numbers) == 1 else numbers


def _picture_input(model: Model, carry: Mapping[str, str]) -> Value:
    """The model's only input, states apart. Raises InputError if it has not the form of one picture."""
    inputs = [given for given in model.inputs if given.name not in carry.values()]
    shown = ", ".join(f"{given.name} {given.shape}" for given in inputs)
    if len(inputs) != 1:
        raise InputError(
            f"{model.name} has {len(inputs)} inputs ({shown}): give them to it in a script, or name those that are "
            "states with carry (--carry OUTPUT=INPUT)"
        )
    (given,) = inputs
    dims = list(given.shape or ())
    is_last = len(dims) >= 3 and dims[-1] in _CHANNELS
    channels = [dim for dim in dims[-1 if is_last else -3 :][:1] if dim in _CHANNELS or not isinstance(dim, int)]
    is_one = all(dim == 1 or not isinstance(dim, int) for dim in dims[:-3])
    if len(dims) < 3 or not channels or not is_one or given.dtype not in (DataType.FLOAT32, DataType.UINT8):
        raise InputError(
            f"{model.name}: the input {shown} of {given.dtype} is not one picture of float32 or uint8, (1, channels, "
            "height, width) or (1, height, width, channels) with 1, 3 or 4 channels: prepare it in a script"
        )
    return given


class FilmClock(Clock):
    """A clock whose time is that of the present picture."""

    def __init__(self, begin_time: float) -> None:
        self.begin_time = begin_time
        self.time = begin_time

    def now(self) -> float:
        """Seconds from the first picture of the chunk."""
        return self.time - self.begin_time


class FilmSource:
    """The source of a script: the picture of this frame. See `perframe.media.Source`."""

    is_live = is_still = ended = False

    def __init__(self, name: str, rate: Fraction) -> None:
        self.name, self.rate = name, rate
        self.picture: Picture | None = None

    def picture_at(self, time: float, wait: bool = False) -> Picture | None:
        """The picture of this frame; None after it was taken."""
        picture, self.picture = self.picture, None
        return picture

    def release(self) -> None:
        """Do nothing: the pictures are closed after the last one."""


class ScriptStep:
    """Runs a frame of a script for each picture, in an app off screen. What the script draws is the result."""

    def __init__(self, model: Model | None, settings: Settings, source: FilmSource, first: Picture) -> None:
        path, name = split_script(settings.script or "")
        self._where = Path(path).name
        self._source = source
        self._has_drawn: bool | None = None  # before the first picture
        height, width = first.pixels.shape[:2]
        self._clock = FilmClock(first.time)
        shown = settings.size or (width, height)
        is_alike = shown[0] * height == shown[1] * width
        self.stretch = Fraction(1) if is_alike else 1 / first.aspect  # a surface of another form has square pixels
        with ExitStack() as stack:
            self._surface = _offscreen(shown)
            stack.callback(self._surface.release)
            self._app = App(surface=self._surface, clock=self._clock, stop_on_error=True)
            self._app.frame_state.waits = True
            stack.callback(self._app.release)
            self._guarded(None, self._start, load_script(Path(path), name), model, settings)
            self._stack = stack.pop_all()

    def _start(self, kind: Any, model: Model | None, settings: Settings) -> None:
        self._app.add(_made(kind, {"model": model, "source": self._source, "backend": settings.backend}))

    def __call__(self, picture: Picture) -> Result:
        """Run a frame."""
        self._source.picture, self._clock.time = picture, picture.time
        self._guarded(picture, self._app.loop_once)
        drawn = np.asarray(self._surface.read_pixels())
        self._has_drawn = bool(self._has_drawn or drawn.any())
        return drawn

    def _guarded(self, picture: Picture | None, call: Any, *arguments: Any) -> None:
        place = "its beginning" if picture is None else f"picture {picture.index}"
        with _failures_of_scripts(self._where, place), self._app.frame_state.entered():
            call(*arguments)

    def release(self) -> None:
        """End the script and its app."""
        if self._has_drawn is False:
            log.warning("%s drew nothing in a whole chunk: the result is black there", self._where)
        with _failures_of_scripts(self._where, "its end"), self._app.frame_state.entered():
            self._stack.close()


@contextmanager
def _failures_of_scripts(name: str, place: str) -> Iterator[None]:
    """Make an InputError of all that a script raises. One that calls sys.exit(0) has not made its result either."""
    try:
        yield
    except (PerframeError, KeyboardInterrupt):
        raise
    except SystemExit as error:
        raise InputError(f"{name} called sys.exit({error.code!r}) at {place}: its result is not whole") from error
    except BaseException as error:  # a CancelledError is no Exception
        notes = " ".join(getattr(error, "__notes__", ()))
        raise InputError(f"{name} failed at {place}: {type(error).__name__}: {error} {notes}".rstrip()) from error


def _offscreen(size: tuple[int, int]) -> Surface:
    try:
        return open_surface(size, "", headless=True)
    except BackendError:  # a script that presents arrays needs no GL
        return BlankSurface(size)


def load_script(path: Path, name: str = "") -> Any:
    """The script of a file: the class of this name, or its only Script, or its function `update`.

    Raises InputError if there is none, or if the file cannot be read or run.
    """
    # files of one name in two folders may be scripts of two films at once
    module_name = f"perframe_process_{path.stem}_{crc32(os.fsencode(path.resolve())):08x}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"there is no script {str(path)!r}: a Python file with a class derived from perframe.Script")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # like `python script.py`
    try:
        spec.loader.exec_module(module)
    except (PerframeError, KeyboardInterrupt):
        raise
    except BaseException as error:  # also sys.exit()
        raise InputError(f"the script {str(path)!r} cannot be run: {type(error).__name__}: {error}") from error
    if name:
        if not hasattr(module, name):
            raise InputError(f"{path.name} has no {name}")
        return getattr(module, name)
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Script) and value.__module__ == module_name
    ]
    if len(own) == 1:
        return own[0]
    if own:
        names = ", ".join(kind.__name__ for kind in own)
        raise InputError(f"{path.name} has several scripts, {names}: name one, as {path.name}:{own[0].__name__}")
    if callable(getattr(module, "update", None)):
        return module.update
    raise InputError(f"{path.name} has no class derived from perframe.Script and no function `update`")


def _made(kind: Any, given: Mapping[str, Any]) -> Any:
    """An object of a script's class, with those of `model`, `source` and `backend` that are its parameters."""
    parameters = inspect.signature(kind).parameters if isinstance(kind, type) else {}
    wanted = {}
    for parameter in parameters.values():
        if parameter.name in given:
            if given[parameter.name] is None and parameter.default is parameter.empty:
                raise InputError(f"{kind.__name__} takes a {parameter.name}, and none was given")
            wanted[parameter.name] = given[parameter.name]
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise InputError(
                f"{kind.__name__} has the parameter {parameter.name}; without a default it may have {', '.join(given)}"
            )
    if given["model"] is not None and "model" not in parameters:
        raise InputError(
            f"{kind.__name__} has no parameter `model`, so the model would not run: let the __init__ of a "
            "perframe.Script take it, or give no model"
        )
    if not isinstance(kind, type):
        return kind
    return kind(**{name: value for name, value in wanted.items() if value is not None})


def loaded(settings: Settings) -> Model | None:
    """The model of the settings."""
    return None if settings.model is None else load(settings.model, dims=settings.dims)
