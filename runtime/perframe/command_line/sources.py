"""The models and inputs that a command line names: files, pictures, numbers, seeded random values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import typer

from perframe.errors import InputError, MissingFileError
from perframe.importers.shipped import MODELS, known, models_like
from perframe.inspection.chosen_sizes import ChosenSizes, choose_sizes, listed_sizes, nearest_sizes, sizes_of
from perframe.ir.dims import check_dims, shape_with
from perframe.media.picture import PICTURES, on_white, open_picture, upright_of
from perframe.safety.names import shown
from perframe.tensor import Array, DataType

if TYPE_CHECKING:
    from perframe.ir import Model

LIKELY_SIZES = {"batch": 1, "seq": 128, "len": 128, "height": 224, "width": 224}  # by a part of a dim's name
INDEX_KEEPERS = {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"}
SUFFIXES = (".onnx", ".perframe", ".sentis")  # of models
FILES = (".npy", *PICTURES)


def model_folders() -> list[Path]:
    """The folders of models that have names: those in PERFRAME_MODELS, then `shared/models` beside the checkout."""
    named = os.environ.get("PERFRAME_MODELS", "")
    beside_checkout = Path(__file__).resolve().parents[4] / "shared" / "models"
    return [*(Path(folder) for folder in named.split(os.pathsep) if folder), beside_checkout]


def named_model(name: str, seed: int = 0) -> Path | bytes:
    """Find a model by name: a path, a model that ships with perframe, the name of a file in a model folder, or
    "light_NAME" for a model of the onnx package with seeded random weights.

    Raises MissingFileError.
    """
    if name and os.path.exists(name):
        return Path(name)  # of a folder, loading says which files it has
    if name.startswith("light_"):
        from perframe.importers.light import light_model

        return light_model(name, seed)
    looked = [folder / file for folder in model_folders() for file in _files(name)]
    for path in looked:
        if path.is_file():
            return path
    if name in MODELS:
        return MODELS[name].path
    raise MissingFileError(
        f"there is no model or file {name!r:.300}; {models_like(name)}models that ship with perframe: {known()}. "
        "PERFRAME_MODELS names folders with other models"
    )


def _files(name: str) -> list[str]:
    """The names of files that a model's name may stand for."""
    return [name] if name.endswith(SUFFIXES) else [name + suffix for suffix in SUFFIXES]


def loaded_model(
    name: str,
    seed: int = 0,
    optimize: bool = True,
    dims: Mapping[str, int] | None = None,
    stop_after: int | None = None,
    signature: str | None = None,
) -> Model:
    """Find a model by name and load it, with a bar on a terminal. Raises ModelError."""
    from perframe.command_line.options import given_key
    from perframe.command_line.terminal import progress_bar
    from perframe.importers.loading import load

    source = named_model(name, seed)
    with progress_bar() as progress:
        model = load(
            source, optimize, dims, progress=progress, stop_after=stop_after, key=given_key(), signature=signature
        )
    if isinstance(source, bytes):
        model.name = name
    return model


def parse_dims(text: str) -> dict[str, int]:
    """Parse dims such as "batch=1,height=240" into a dict. Raises InputError."""
    dims = {}
    for item in filter(None, text.split(",")):
        name, _, value = item.partition("=")
        if not name or not value.isdigit():
            raise InputError(f"--dims takes NAME=NUMBER,...; {item!r} is not that")
        dims[name] = int(value)
    return dims


def parse_carry(text: str) -> dict[str, str]:
    """Parse states such as "next=state,next_memory=memory" into a dict. Raises InputError."""
    carry = {}
    for item in filter(None, text.split(",")):
        output, _, name = item.partition("=")
        if not output or not name:
            raise InputError(f"--carry takes OUTPUT=INPUT,...; {item!r} is not that")
        carry[output] = name
    return carry


def input_arrays(
    inputs: Sequence[ModelInput],
    given: Sequence[str] = (),
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    normalization: Normalization | None = None,
) -> dict[str, Array]:
    """Return an array for each input of a model. `given` has items NAME=VALUE, or a VALUE alone if the model has one
    input; every other input is random.

    A VALUE is a .npy file, a picture, a number that fills the input, "random", or "random:2x3" with a shape. A picture
    is resized if the input's height and width are known; its values are 0 to 1 for floats, which `normalization` may
    change, and 0 to 255 for integers.
    Unknown dims are 1 unless `dims` names them. Raises InputError.
    """
    values = _by_name(inputs, given)
    random = np.random.default_rng(seed)
    return {
        wanted.name: _array(values.get(wanted.name, "random"), wanted, dims or {}, random, normalization)
        for wanted in inputs  # one stream of random values, in order
    }


def likely_dims(inputs: Sequence[ModelInput]) -> dict[str, int]:
    """A size for each named dim of a model's inputs, by its name: a picture, a text or one."""
    sizes = {}
    for wanted in inputs:
        for dim in wanted.shape or ():
            if isinstance(dim, str):
                sizes[dim] = next((size for part, size in LIKELY_SIZES.items() if part in dim.lower()), 1)
    return sizes


def model_inputs(
    model: Model,
    given: Sequence[str] = (),
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    normalization: Normalization | None = None,
    likely: bool = False,
    side: int = 64,
) -> tuple[dict[str, Array], ChosenSizes]:
    """Arrays for a model's inputs, as `input_arrays` makes them, and the sizes that were chosen for open dims.

    With `likely`, random inputs are those of `likely_arrays`. An open side of a picture is `side` pixels if that fits.
    The sizes are printed on stderr. Raises InputError.
    """
    dims = dims or {}
    check_dims(model.name, model.inputs, dims)
    values = _by_name(model.inputs, given)
    shaped = [name for name, value in values.items() if value.startswith("random:") or _is_file(value)]
    first = input_arrays(
        [one for one in model.inputs if one.name in shaped],
        given=[f"{name}={values[name]}" for name in shaped],
        dims=dims,
        seed=seed,
        normalization=normalization,
    )
    known = {**sizes_of(model, {name: array.shape for name, array in first.items()}), **dims}
    chosen = choose_sizes(model, known, side)
    if not chosen.fits and (nearest := nearest_sizes(model, known)):
        wrong = listed_sizes({name: known[name] for name in nearest}, nearest)
        raise InputError(f"the layers of {model.name} do not fit with {wrong}")
    if chosen:
        line = f"open dims: {chosen}"
        line = line if len(line) <= 80 else line.replace(" (change", "\n  (change")
        typer.echo(shown(line, lines=True), err=True)
    sizes = {**known, **chosen.sizes}
    files = {name: array for name, array in first.items() if _is_file(values[name])}
    listed = [f"{name}={value}" for name, value in values.items() if name not in files]
    arrays = input_arrays([one for one in model.inputs if one.name not in files], listed, sizes, seed, normalization)
    if likely:
        random = likely_arrays(model, sizes, seed)
        arrays |= {name: random[name] for name in random if name not in values}
    return {one.name: (files if one.name in files else arrays)[one.name] for one in model.inputs}, chosen


def _is_file(value: str) -> bool:
    return Path(value).suffix.lower() in FILES


def likely_arrays(model: Model, dims: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    """An array for each input of a model: ones for masks, indices that a table has, else random values.

    A table is the constant of a Gather that reads the input. Unknown dims are 1 unless `dims` names them.
    """
    arrays = input_arrays(model.inputs, (), dims, seed)
    random = np.random.default_rng(seed)
    for name, array in arrays.items():
        if "mask" in name.lower():
            arrays[name] = np.ones_like(array)
        elif array.dtype.kind in "iu":
            arrays[name] = random.integers(0, _table_length(model, name), array.shape, array.dtype)
    return arrays


def _table_length(model: Model, name: str) -> int:
    """The length of the shortest table in which an input's values are indices; 2 if they are none."""
    lengths, same = list[int](), {value for value in model.inputs if value.name == name}
    for layer in model.layers:
        if layer.op in INDEX_KEEPERS and layer.input(0) in same:
            same.update(layer.results)
        if layer.op == "Gather" and layer.indices in same and layer.x.constant is not None:
            lengths.append(layer.x.constant.shape[layer.axis])
    return min(lengths, default=2)


def random_array(random: np.random.Generator, shape: Sequence[int], dtype: DataType) -> Array:
    """Random values: normal for floats, and 0 and 1 for all other numbers, because they are safe as indices too."""
    if dtype is DataType.STRING:
        return np.full(shape, "a", object)
    values = random.standard_normal(shape) if dtype.is_float else random.integers(0, 2, shape)
    return np.asarray(values, dtype.numpy)


def random_inputs(inputs: Sequence[ModelInput], given: Sequence[str]) -> list[str]:
    """The names of the inputs that no item of `given` sets."""
    values = _by_name(inputs, given)
    return [wanted.name for wanted in inputs if wanted.name not in values]


def _by_name(inputs: Sequence[ModelInput], given: Sequence[str]) -> dict[str, str]:
    names = [wanted.name for wanted in inputs]
    values = {}
    for item in given:
        name = next((name for name in names if item.startswith(f"{name}=")), None)
        if name is None and len(names) == 1 and ("=" not in item or Path(item).is_file()):
            values[names[0]] = item
        elif name is None:
            raise InputError(f"unknown input {item!r}; the model's inputs are: {', '.join(names)}")
        else:
            values[name] = item[len(name) + 1 :]
    return values


def _array(
    value: str,
    wanted: ModelInput,
    dims: Mapping[str, int],
    random: np.random.Generator,
    normalization: Normalization | None,
) -> Array:
    known = [dim if isinstance(dim, int) else None for dim in shape_with(wanted, dims) or ()]
    shape = [1 if dim is None else dim for dim in known]
    kind, _, explicit = value.partition(":")
    if kind == "random":
        return random_array(random, _parse_shape(explicit) if explicit else shape, wanted.dtype)
    if _is_file(value):
        if not Path(value).exists():
            raise InputError(f"input {wanted.name!r}: there is no file {value!r}")
        try:
            if Path(value).suffix.lower() == ".npy":
                loaded: Array = np.load(value)
                return loaded
            return picture_array(Path(value), wanted, known, normalization)
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise InputError(f"input {wanted.name!r}: {value} cannot be read: {error}") from error
    try:
        return np.full(shape, float(value), wanted.dtype.numpy)
    except ValueError:
        kinds = f"{', '.join(FILES)}, a number, random, random:2x3"
        raise InputError(f"input {wanted.name!r}: {value!r} is not one of: {kinds}") from None


def _parse_shape(text: str) -> list[int]:
    dims = text.split("x")
    if not all(dim.isdigit() for dim in dims):
        raise InputError(f"a shape is written like 2x3, and {text!r} is not a shape")
    return [int(dim) for dim in dims]


class ModelInput(Protocol):
    """An input of a model."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def dtype(self) -> DataType:
        """Its element type."""

    @property
    def shape(self) -> Iterable[int | str | None] | None:
        """Its dims: numbers, names, or None for an unknown dim. None if the rank is unknown."""


@dataclass(frozen=True)
class Normalization:
    """The conversion of a picture's values, from 0 to 1, to those of an input: (value * scale - mean) / std.

    `mean` and `std` are one number, or one for each channel.
    """

    scale: float = 1.0
    mean: Sequence[float] = (0.0,)
    std: Sequence[float] = (1.0,)

    def apply(self, values: Array, axis: int) -> Array:
        """Normalize float values, whose channels lie along `axis`. Raises InputError for another number of channels."""
        channels = values.shape[axis]
        for what, given in (("--mean", self.mean), ("--std", self.std)):
            if len(given) not in (1, channels):
                raise InputError(f"{what} has {len(given)} numbers, and a picture has {channels} channels")
        shape = [-1 if index == axis % values.ndim else 1 for index in range(values.ndim)]
        mean, std = (
            np.broadcast_to(np.array(given, np.float32), channels).reshape(shape) for given in (self.mean, self.std)
        )
        made: Array = (values * np.float32(self.scale) - mean) / std
        return made


def parse_numbers(text: str, option: str) -> list[float]:
    """Parse "0.5" or "0.5,0.4,0.3". Raises InputError."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        wanted = "a number, or one for each channel such as 0.5,0.4,0.3"
        raise InputError(f"{option} takes {wanted}, not {text!r}") from None
    if not np.isfinite(numbers).all() or (option == "--std" and 0 in numbers):
        raise InputError(f"{option} takes finite numbers{' other than 0' * (option == '--std')}, not {text!r}")
    return numbers


def picture_array(
    path: Path, wanted: ModelInput, dims: Sequence[int | None], normalization: Normalization | None = None
) -> Array:
    """Read a picture in the layout of the dims, with the channels (1, 3 or 4) last or first, and normalize it for an
    input of floats. An unknown height or width is the picture's own. Raises InputError.
    """
    from PIL import Image, UnidentifiedImageError

    modes = {1: "L", 3: "RGB", 4: "RGBA"}
    channels_first = len(dims) >= 3 and dims[-1] not in modes
    rows = [*dims[-2:], dims[-3]] if channels_first else list(dims[-3:])
    if len(rows) != 3 or rows[2] not in modes or any(dim not in (1, None) for dim in dims[:-3]):
        raise InputError(f"input {wanted.name!r} has shape {wanted.shape}, which is not that of one picture")
    try:
        with open_picture(path) as file:
            picture = upright_of(file)
            if rows[2] != 4 and picture.has_transparency_data:
                picture = Image.fromarray(on_white(np.asarray(picture.convert("RGBA"))))
            size = (rows[1] or picture.width, rows[0] or picture.height)
            pixels = np.asarray(picture.convert(modes[rows[2]]).resize(size, Image.Resampling.BILINEAR))
    except UnidentifiedImageError as error:
        raise InputError(f"the picture {path} cannot be read: it is not a {', '.join(PICTURES)}") from error
    values = pixels.reshape(size[1], size[0], rows[2])
    if channels_first:
        values = values.transpose(2, 0, 1)
    scaled = values / 255 if wanted.dtype.is_float else values
    if wanted.dtype.is_float and normalization is not None:
        scaled = normalization.apply(scaled, 0 if channels_first else -1)
    return np.ascontiguousarray(scaled.reshape((1,) * (len(dims) - 3) + values.shape), wanted.dtype.numpy)
