"""The inputs of runs, given by position, by name or by `set_input`, and checked against the model's declarations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from perframe.errors import BackendError, InputError
from perframe.execution.machine import Values, copied
from perframe.ir import Model, Value
from perframe.ir.sizes.open_dims import OpenDims
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.plan.plan import LEAST_LENT
from perframe.safety.wording import counted
from perframe.tensor import Array, DataType, Tensor, TensorShape
from perframe.tensor.dtypes import check_shape
from perframe.tensor.exchange import converted

Given = Tensor | ArrayLike


class Inputs:
    """Gathers and checks the inputs of runs. It skips most checks where a frame's inputs are like the last frame's."""

    def __init__(self, model: Model, cast: bool = False, states: Collection[str] = ()) -> None:
        """`cast` says that values may be rounded to the declared dtypes. The caller gives no `states`."""
        self._cast, self._states = cast, states
        self.declared = [value for value in model.inputs if value.name not in states]
        self._model, self.names = model.name, [value.name for value in self.declared]
        self._known = frozenset(self.names)
        self._fixed_inputs = model.fixed_inputs
        self._kept: dict[str, Given] = {}
        self._kinds: list[tuple[Any, ...]] = []  # types and dtypes of the last inputs that needed no conversion
        self._shapes: list[Any] = []  # the shapes of these inputs
        self._are_tensors = False  # whether these inputs are Tensors and arrays alone
        self.latest: list[Any] = []  # the shapes of the last inputs, in the order of `declared`
        # inputs whose ranks are declared. A dim is (which, axis): `_fixed` lists fixed dims, `_alike` pairs of one name
        self._shaped = [value for value in self.declared if value.kind == "tensor" and value.shape is not None]
        shapes = [value.shape or () for value in self._shaped]
        self._ranks = [*map(len, shapes)]
        dims = [(which, axis) for which, rank in enumerate(self._ranks) for axis in range(rank)]
        self._fixed = [(which, axis, size) for which, axis in dims if isinstance(size := shapes[which][axis], int)]
        alike = OpenDims(shapes).positions(self._ranks).alike
        self._alike = [(*dims[first], *dims[again]) for first, again in alike]

    def value(self, name: str | int) -> Value:
        """Return the declaration of an input. Raises InputError for a name or an index that the model does not have."""
        if isinstance(name, int):
            if not 0 <= name < len(self.names):
                raise InputError(f"{self._model} has {len(self.names)} inputs, none at index {name}")
            return self.declared[name]
        if name in self._states:
            raise InputError(f"{self._model} carries its input {name!r} itself: reset({{{name!r}: array}}) sets it")
        if name not in self._known:
            listed = ", ".join(map(str, self.declared)) or "none"
            if name in self._fixed_inputs:
                raise InputError(
                    f"{self._model}: {name!r} has a value in the file (an initializer), which is constant here; remove "
                    f"that initializer to give another value. The inputs are {listed}"
                )
            raise InputError(f"{self._model} has no input {name!r}; its inputs are {listed}")
        return self.declared[self.names.index(name)]

    def concrete(self, name: str | int, shape: tuple[int, ...] | None) -> tuple[Value, TensorShape]:
        """Return an input and the shape of its values, which `shape` gives where dims are open. Raises InputError."""
        if isinstance(name, (tuple, list)):
            raise InputError(f"the first argument names an input; pass the shape by name: shape={tuple(name)}")
        value = self.value(name)
        dims = shape if shape is not None else value.shape
        if shape is not None:
            check_shape(shape)
        wanted = DynamicTensorShape(dims or ())
        if dims is None or not wanted.is_static:
            example = tuple(dim if isinstance(dim, int) else 64 if axis > 1 else 1 for axis, dim in enumerate(wanted))
            raise InputError(f"input {value} has open dims: pass its shape, as in shape={example or (1, 3, 360, 640)}")
        if value.shape is not None and not value.shape.accepts(wanted.to_shape()):
            raise InputError(f"input {value} cannot have the shape {wanted}")
        return value, wanted.to_shape()

    def take_over(self, other: Inputs) -> None:
        """Keep the values that others kept. Raises InputError for one that does not fit."""
        for name, value in other._kept.items():
            self.keep(name, value)
        self.latest = other.latest

    def keep(self, name: str | int, value: Given) -> None:
        """Keep a value for an input of all later runs."""
        self._kept[self.value(name).name] = value

    def gather(self, positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return the checked inputs of one run by name."""
        given, named = self._kept.copy(), positional[0] if len(positional) == 1 else None
        if keywords and positional:
            self._check_once(positional, keywords)
        if type(named) is dict or (type(named) is not np.ndarray and isinstance(named, Mapping)):  # a frame waits
            if named.keys() <= self._known:
                given.update(named)
            else:
                given.update((self.value(name).name, value) for name, value in named.items())
        else:
            if len(positional) > len(self.names):
                few = [repr(name) for name in sorted(self._states)[:4]] + ["..."] * (len(self._states) > 4)
                carried = f"; it carries {', '.join(few)} itself" if few else ""
                takes, names = counted(len(self.names), "input"), ", ".join(self.names) or "none"
                raise InputError(f"{self._model} takes {takes}, and got {len(positional)}: {names}{carried}")
            given.update(zip(self.names, positional, strict=False))
        if keywords:
            given.update((self.value(name).name, value) for name, value in keywords.items())
        if len(given) < len(self.names):
            missing = [str(value) for value in self.declared if value.name not in given]
            raise InputError(
                f"{self._model} still needs its {'input' if len(missing) == 1 else 'inputs'} {', '.join(missing)}"
            )
        values = [given[name] for name in self.names]
        kinds = [(type(value), getattr(value, "dtype", None)) for value in values]
        shapes = [getattr(value, "shape", None) for value in values]
        if kinds == self._kinds and (shapes == self._shapes or self._are_like(shapes)):
            self._shapes = self.latest = shapes
            return given
        checked = {
            value.name: checked_input(self._model, value, one, self._cast)
            for value, one in zip(self.declared, values, strict=True)
        }
        self._check_named(checked)
        self.latest = [getattr(checked[name], "shape", None) for name in self.names]
        if all([checked[name] is value for name, value in zip(self.names, values, strict=True)]):
            self._kinds, self._shapes = kinds, self.latest
            self._are_tensors = all([kind in (Tensor, np.ndarray) for kind, _ in kinds])
        return checked

    def again(self, positional: tuple[Any, ...], shapes: Sequence[Any]) -> Mapping[str, Any] | None:
        """Return the inputs of one run by name, if they are checked already: of the types and dtypes of the last ones,
        which needed no conversion, and whose `latest` was `shapes`. Other shapes that pass the same checks become the
        `latest`. Otherwise return None.
        """
        names = self.names
        if not (self._shapes is self.latest is shapes) or self._kept or not self._are_tensors:
            return None
        if len(positional) == 1 and type(positional[0]) is dict:
            given: dict[str, Any] = positional[0]
            if len(given) != len(names):
                return None
        elif len(positional) == len(names):
            given = dict(zip(names, positional, strict=True))
        else:
            return None
        found = []
        for name, (kind, dtype) in zip(names, self._kinds, strict=True):
            value: Any = given.get(name)
            if type(value) is not kind or value.dtype is not dtype:
                return None
            found.append(value.shape)
        if found != shapes:
            if not self._are_like(found):
                return None
            self._shapes = self.latest = found
        return given

    def _check_once(self, positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        """Raise InputError for an input that is given as a keyword and also in another way."""
        others = positional[0] if isinstance(positional[0], Mapping) else self.names[: len(positional)]
        twice = [name for name in keywords if name in others]
        if twice:
            how = "in the dict" if isinstance(positional[0], Mapping) else "by position"
            raise InputError(f"{self._model}: input {twice[0]!r} is given twice: {how} and as a keyword")

    def _are_like(self, shapes: Sequence[Any]) -> bool:
        """Whether inputs of these shapes pass the checks that the last inputs passed. False means: check them all."""
        if [len(shape) for shape in shapes] != self._ranks or len(self._shaped) != len(self.names):
            return False
        for which, axis, size in self._fixed:
            if shapes[which][axis] != size:
                return False
        for one, axis, another, other in self._alike:  # noqa: SIM110  # a frame waits, and this takes less time
            if shapes[one][axis] != shapes[another][other]:
                return False
        return True

    def _check_named(self, given: Mapping[str, Any]) -> None:
        """Raise InputError where two inputs have different sizes for one named dim."""
        for first, axis, second, other in self._alike:
            one, another = self._shaped[first], self._shaped[second]
            size, found = given[one.name].shape[axis], given[another.name].shape[other]
            if size != found:
                raise InputError(
                    f"{self._model}: the dim {(one.shape or ())[axis]!r} is {size} in the input {one.name!r}, and "
                    f"{found} in {another.name!r}"
                )


def hold(
    values: Values, upload: Callable[[Values], None] | None, guarded: Callable[[], AbstractContextManager[Any]] | None
) -> None:
    """Replace arrays by copies, for a run that begins later: the caller may change them. `upload`, if given, replaces
    large ones by tensors where it can.
    """
    large = [value for value in values.values() if type(value) is np.ndarray and value.nbytes >= LEAST_LENT]
    if upload is not None and large:
        # the worker's context may become current only before the first step
        with suppress(BackendError), guarded() if guarded is not None else nullcontext():
            upload(values)
    for name, value in values.items():
        if isinstance(value, (np.ndarray, list)):
            values[name] = copied(value)


def checked_input(model: str, value: Value, given: Any, cast: bool) -> Any:
    """Return an input as a tensor or an array. Raises InputError where its dtype or shape does not fit the model."""
    if value.kind == "sequence" or (value.kind == "optional" and isinstance(given, list)):
        return [np.asarray(item) for item in given]
    if value.kind == "optional" and given is None:
        return None
    array = given if isinstance(given, Tensor) else _array(model, value, given, cast)
    if array.dtype == object and value.dtype is not DataType.STRING and not isinstance(given, np.ndarray):
        how = "bring it to a tensor with TextureConverter.to_tensor" if hasattr(given, "glo") else "pass an array"
        raise InputError(f"{model}: input {value.name!r} is {value.dtype}, and got {given!r:.100}: {how}")
    dtype = DataType.of(array.dtype)
    fits = value.shape is None or value.shape.accepts(array.shape)
    hint = "" if fits or value.shape is None else _reshaping(value.shape, tuple(array.shape))
    if dtype is not value.dtype:
        raise InputError(
            f"{model}: input {value.name!r} is {value.dtype}, and got {dtype} {tuple(array.shape)}: "
            f"{_advice(dtype, value.dtype)}{f'. Its shape needs {hint}, too' if hint else ''}"
        )
    if not fits:
        raise InputError(
            f"{model}: input {value.name!r} has the shape {value.shape}, and got {tuple(array.shape)}"
            + (f": pass {hint}" if hint else "")
        )
    return array


def _reshaping(wanted: DynamicTensorShape, got: tuple[int, ...]) -> str:
    """An expression that gives an array of the shape `got` the wanted shape; empty if there is no simple one."""
    more = len(wanted) - len(got)
    batch = "" if more <= 0 else f"[{', '.join(['None'] * more)}]"
    tries = [(tuple(range(len(got))), "array")]
    if len(got) >= 3:
        *first, a, b, c = range(len(got))
        orders = [((*first, c, a, b), -3), ((*first, b, c, a), -1)]  # with the place to which the channels go
        fixed = [order for order, to in orders if len(wanted) >= 3 and isinstance(wanted[to], int)]
        tries += [(order, f"array.transpose{order}") for order in fixed]
    for order, text in tries:
        if more >= 0 and wanted.accepts((1,) * more + tuple(got[axis] for axis in order)):
            return text + batch
    if more == -1 and got[0] == 1 and wanted.accepts(got[1:]):
        return "array[0]"
    if len(wanted) == len(got) == 4:
        down, across = (2, 3) if wanted[1] in (1, 3, 4) else (1, 2)  # the axes of height and width
        height, width = wanted[down], wanted[across]
        resized = [wanted[axis] if axis in (down, across) else size for axis, size in enumerate(got)]
        if isinstance(height, int) and isinstance(width, int) and wanted.accepts(resized):  # type: ignore[arg-type]
            return f"a picture resized to {width}x{height}"
        channels = 1 if down == 2 else 3
        if wanted[channels] == 3 and wanted.accepts([3 if axis == channels else size for axis, size in enumerate(got)]):
            colors = "array[:, :3]" if channels == 1 else "array[..., :3]"  # without the alpha of RGBA
            return {1: f"array.repeat(3, {channels})", 4: colors}.get(got[channels], "")
    return ""


def _advice(got: DataType, wanted: DataType) -> str:
    """Advice for an input of another dtype."""
    if got is DataType.UINT8 and wanted.is_float:
        return (
            "for a picture of bytes, normalize it to what the model was trained on, as (array / 255 - mean) / std in "
            f"{wanted} or by TextureConverter with TextureTransform(mean=..., std=...); or let cast=True take "
            "the integers unchanged, 0 to 255"
        )
    if got.numpy.kind not in "iuf" or wanted.numpy.kind not in "iuf":
        return "convert it first"
    convert = f"convert it with array.astype({str(wanted)!r})"
    if got.numpy.kind in "iu" and wanted.is_float:
        sound = ", or sound as array / 32768" if got is DataType.INT16 else ""
        return (
            f"{convert}, and normalize a picture to what the model was trained on{sound}; or let cast=True take the "
            "integers unchanged"
        )
    return f"{convert}, or allow rounding with cast=True"


def _array(model: str, value: Value, given: Any, cast: bool) -> Array:
    """Return an input as an array. Python's numbers have no dtype and take the declared one; an array takes it if its
    values stay what they are, or with `cast`.

    Without `cast`, the dtype alone decides about arrays of floats, and about those for inputs of floats: a float64
    array may not pass in one frame and fail in the next, floats that are whole now may not become indices, and the
    integers of a picture or of sound need normalization.
    """
    try:
        array = converted(given)
    except ValueError as error:  # InputError is one
        raise InputError(f"{model}: input {value.name!r} is not an array: {error}") from None
    if array.dtype.kind in "US":
        return array.astype(object)
    wanted = value.dtype.numpy
    if array.dtype == wanted or array.dtype.kind not in "iuf" or wanted.kind not in "iuf":
        return array
    with np.errstate(all="ignore"):
        made = array.astype(wanted)
        same = np.array_equal(made.astype(array.dtype), array, equal_nan=array.dtype.kind == "f")
    typed = any(hasattr(given, name) for name in ("dtype", "__array__", "__array_interface__"))  # a Pillow picture is
    if typed and "f" in (array.dtype.kind, wanted.kind):
        keeps = array.dtype.kind == "f" and np.can_cast(array.dtype, wanted)
    else:
        keeps = same and not (array.dtype.kind == "f" and wanted.kind != "f")
    untyped = not typed and wanted.kind == "f" and bool(np.isfinite(made).all())
    return made if keeps or untyped or cast else array
