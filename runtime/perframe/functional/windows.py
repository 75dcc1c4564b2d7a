"""Arguments of convolutions and pools: a number for each dim, and a batch that may be missing."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.errors import InputError
from perframe.functional.calls import apply, ints
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor

Extent = int | Sequence[int]


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
