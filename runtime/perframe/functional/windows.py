"""Convolutions and pools over one, two and three dims: their functions, a number for each dim, and a missing batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Concatenate

from perframe.errors import InputError
from perframe.functional.calls import P, R, apply, function, ints
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor

Extent = int | Sequence[int]


def of_ranks(body: Callable[Concatenate[int, P], R]) -> tuple[Callable[P, R], Callable[P, R], Callable[P, R]]:
    """Make the functions NAME1d, NAME2d and NAME3d of the public interface from a body `_NAME(rank, ...)`.

    The docstring of each names its own data.
    """

    def of_rank(rank: int, data: str) -> Callable[P, R]:
        def call(*given: P.args, **named: P.kwargs) -> R:
            return body(rank, *given, **named)

        signature = inspect.signature(body)
        call.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=list(signature.parameters.values())[1:]
        )
        call.__name__, call.__module__ = f"{body.__name__.removeprefix('_')}{rank}d", body.__module__
        call.__doc__ = (body.__doc__ or "").replace("signals, pictures or volumes", data)
        return function(call)

    return of_rank(1, "signals"), of_rank(2, "pictures"), of_rank(3, "volumes")


def each(value: Extent, rank: int, what: str, least: int = 1) -> tuple[int, ...]:
    """Return one number for each of `rank` dims. Raises InputError for too many, too few or too small numbers."""
    numbers = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(numbers) == 1:
        numbers *= rank
    whole = all(hasattr(one, "__index__") and not isinstance(one, bool) and one >= least for one in numbers)
    if len(numbers) != rank or not whole:
        raise InputError(f"{what} is a number from {least}, or one for each of {rank} dim(s), not {value!r}")
    return tuple(int(one) for one in numbers)


def batched(input: Given, rank: int) -> tuple[FunctionalTensor, bool]:
    """Return (batch, channels, ...), and whether the batch was added."""
    x = to_tensor(input)
    if x.ndim == rank + 1:
        return apply("Unsqueeze", x, ints(0)), True
    if x.ndim != rank + 2:
        raise InputError(f"{x.spec} is neither (batch, channels, {rank} dim(s)) nor (channels, {rank} dim(s))")
    return x, False


def unbatched(x: FunctionalTensor, added: bool) -> FunctionalTensor:
    """Remove the batch if it was added."""
    return apply("Squeeze", x, ints(0)) if added else x
