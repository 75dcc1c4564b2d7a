"""Calls of functions: each makes layers, and each error names the function and what it was called with."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InferenceError, InputError, PerframeError
from perframe.functional.promotion import category, common_dtype
from perframe.functional.tensor import FunctionalTensor, Given, of_array, to_tensor
from perframe.ir import Layer, Value
from perframe.ir.declaration import Declaration, declaration
from perframe.tensor import DataType

P = ParamSpec("P")
R = TypeVar("R")

_COMPLEX = (DataType.COMPLEX64, DataType.COMPLEX128)
_calling: ContextVar[str] = ContextVar("calling", default="")


def function(body: Callable[P, R]) -> Callable[P, R]:
    """Make a function of the public interface: errors show its call, under its name without a trailing underscore."""
    name = body.__name__.removesuffix("_")
    title = f"pf.{body.__module__.split('.')[1]}.{name}"
    names = inspect.signature(body)

    @functools.wraps(body)
    def call(*given: P.args, **named: P.kwargs) -> R:
        if _calling.get():
            return body(*given, **named)
        token = _calling.set(name)
        try:
            made = body(*given, **named)
            # some return their input; it may get other items later, and the result may not
            return made.fixed() if isinstance(made, FunctionalTensor) else made  # type: ignore[return-value]
        except (InferenceError, InputError) as error:
            raise type(error)(f"{_call(title, names, given, named)}: {error}") from None
        except PerframeError:
            raise
        except Exception as error:  # an argument may be anything
            said = f"{type(error).__name__}: {error}"
            shown = _call(title, names, given, named)
            raise InputError(f"{shown}: malformed arguments ({said})") from error
        finally:
            _calling.reset(token)

    call.__name__ = call.__qualname__ = name
    return call


def _call(title: str, names: inspect.Signature, given: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Return a call as text. Raises TypeError if the function has no such parameters."""
    try:
        bound = names.bind(*given, **named).arguments
    except TypeError as error:
        raise TypeError(f"{title}: {error}; its arguments are {', '.join(names.parameters)}") from None
    return f"{title}({', '.join(f'{key}={_shown(value)}' for key, value in bound.items())})"


def _shown(value: Any) -> str:
    if isinstance(value, FunctionalTensor):
        return str(value.spec)
    if isinstance(value, Declaration):
        return value.name
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array {value.shape}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_shown, value))})"
    return f"{value!r:.100}"


def apply_all(
    op: str, inputs: Sequence[Given | None], count: int | None = None, **attributes: Any
) -> tuple[FunctionalTensor, ...]:
    """Return the first `count` outputs of a new layer, by default all.

    Raises InferenceError if the inputs do not fit.
    """
    given = [None if value is None else to_tensor(value) for value in inputs]
    while given and given[-1] is None:
        given.pop()
    given = _followed(given)
    specs = declaration(op).outputs_for([None if value is None else value.spec for value in given], attributes)
    title = _calling.get()
    if title in ("", "apply"):
        title = op.rpartition("::")[2].lower()
    made = [Value(f"{title}_{index}" if index else title) for index in range(len(specs) if count is None else count)]
    Layer(op, title, [None if tensor is None else tensor.value for tensor in given], made, attributes)
    graph = graph_of([tensor for tensor in given if tensor is not None])
    for value, spec in zip(made, specs, strict=False):
        value.spec = spec
    return tuple(FunctionalTensor(value, graph) for value in made)


def _followed(given: list[FunctionalTensor | None]) -> list[FunctionalTensor | None]:
    """Inputs of a layer, in which NumPy's float64 constants take the dtype of the floats beside them."""
    floats = {value.dtype for value in given if value is not None and value.dtype.is_float and not value.follows}
    if len(floats) != 1:
        return given
    dtype = floats.pop()
    return [cast(value, dtype) if value is not None and value.follows else value for value in given]


def apply(op: str, *inputs: Given | None, **attributes: Any) -> FunctionalTensor:
    """Return the first output of a new layer. Raises InferenceError if the inputs do not fit."""
    return apply_all(op, inputs, 1, **attributes)[0]


def graph_of(tensors: Sequence[FunctionalTensor]) -> Any:
    """Return the graph of tensors; None if all are constants. Raises InputError if they are of two graphs."""
    found = None
    for tensor in tensors:
        if found is not None and tensor.graph is not None and tensor.graph is not found:
            raise InputError(
                f"{tensor} belongs to another graph than the other tensors: build all of a model with one "
                "FunctionalGraph; a model that is compiled becomes part of another graph by forward(model, ...)"
            )
        found = found or tensor.graph
    return found


def cast(value: Given, dtype: DataType) -> FunctionalTensor:
    """Return a value in a dtype; a constant is converted at once. Raises InputError for complex numbers that would
    lose their imaginary parts.
    """
    x = to_tensor(value)
    if x.dtype is dtype:
        return x
    if x.dtype in _COMPLEX and dtype not in _COMPLEX:
        raise InputError(f"complex numbers cannot become {dtype}: give the real parts")
    if x.is_constant and x.spec.value is not None:
        with np.errstate(all="ignore"):
            return of_array(np.asarray(x.spec.value).astype(dtype.numpy), x.is_number)
    return apply("Cast", x, to=dtype)


def together(*values: Given) -> list[FunctionalTensor]:
    """Return values in the dtype in which an operation combines them."""
    tensors = [to_tensor(value) for value in values]
    dtype = common_dtype(tensors)
    return [cast(tensor, dtype) for tensor in tensors]


def in_floats(value: Given) -> FunctionalTensor:
    """Return floats unchanged, and other numbers as float32."""
    x = to_tensor(value)
    return cast(x, DataType.FLOAT32) if category(x.dtype) < 2 else x


def real(value: float) -> NDArray[Any]:
    """Return a number as an array without dims. Raises InputError for anything but one int, float or bool."""
    given = np.asarray(value)
    if given.ndim or given.dtype.kind not in "biuf":
        raise InputError(f"{value!r:.200} is not a number: give an int or a float")
    return given


def exact(value: float, dtype: DataType) -> NDArray[Any]:
    """Return a number in a dtype, as an array without dims. Raises InputError for anything but one int, float or bool,
    and for a number that an integer dtype cannot hold.
    """
    given = real(value)
    with np.errstate(invalid="ignore", over="ignore"):  # of NaN and infinity, which no integer is equal to
        made = np.asarray(given.astype(dtype.numpy))
    if category(dtype) < 2 and made != given:
        raise InputError(f"{dtype} cannot hold {value!r}: give an integer that it can, or cast the tensor to floats")
    return made


def number(value: float, like: FunctionalTensor) -> FunctionalTensor:
    """Return a number as a constant without dims, in the dtype of a tensor. Raises InputError as `exact` does."""
    return of_array(exact(value, like.dtype), is_number=True)


def ints(*values: int) -> FunctionalTensor:
    """Return a constant row of int64. Raises InputError for other values than integers."""
    try:
        return of_array(np.array([operator.index(value) for value in values], np.int64))
    except (TypeError, OverflowError) as error:
        raise InputError(f"{values!r:.200} are not integers: {error}") from None


def axis_of(x: FunctionalTensor, dim: int, more: int = 0) -> int:
    """Return a dim counted from the front. Raises InputError for a dim that x (with `more` dims) does not have."""
    rank = x.ndim + more
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)):
        raise InputError(f"a dim is an integer, not {dim!r}")
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise InputError(f"there is no dim {dim}: dims go from {-rank} to {rank - 1}")
    return int(dim) % rank if rank else 0


def axes_of(x: FunctionalTensor, dim: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return dims counted from the front; all dims for None. Raises InputError for a dim that x does not have."""
    if dim is None:
        return tuple(range(x.ndim))
    listed = (dim,) if isinstance(dim, (int, np.integer)) else tuple(dim)
    found = tuple(axis_of(x, one) for one in listed)
    if len(set(found)) != len(found):
        raise InputError(f"a dim appears twice in {tuple(listed)}")
    return found


def known_size(x: FunctionalTensor, axis: int, purpose: str) -> int:
    """Return the size of a dim. Raises InputError if it is not a known number."""
    if not x.ndim:
        raise InputError(f"{purpose} needs a tensor with dims, and {x.spec} has none")
    size = x.shape[axis]
    if not isinstance(size, int):
        raise InputError(
            f"{purpose} needs dim {axis} of {x.spec} to be a known number: fix it where the input is added"
        )
    return size
