"""Sizes for the open dims of a model that the caller does not give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from perframe.errors import PerframeError
from perframe.ir.dims import dim_names, shape_with
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor

if TYPE_CHECKING:
    from perframe.ir import Model

PICTURE_SIDES = (64, 224, 32, 28, 96, 128, 256, 320, 416, 512, 640)
TEXT_LENGTHS = (128, 64, 32, 16, 8, 77, 256, 512)
LENGTHS = (64, 224, 16, 8, 4, 2, 3)
_TEXT, _SIDE, _BATCH = ("seq", "len", "token", "text"), ("height", "width", "rows", "columns"), ("batch",)
_CHANNELS = (1, 2, 3, 4)
_MOST_TRIALS = 400
_FARTHEST_FIT = 64  # from a size that does not fit


@dataclass(frozen=True)
class ChosenSizes:
    """Sizes that were chosen for open dims, by the dims' names (see `model.dims.dim_name`).

    If the layers' shapes do not fit with them, as far as shapes alone can say, `fits` is False and `nearest` has the
    nearest sizes that fit, for each dim where any are found.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    fits: bool = True
    nearest: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything had to be chosen."""
        return bool(self.sizes)

    def __str__(self) -> str:
        """The sizes, and the option that sets them."""
        if not self.sizes:
            return ""
        option = ",".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{listed_sizes(self.sizes, self.nearest)} (change with --dims {option})"


def listed_sizes(sizes: Mapping[str, int], nearest: Mapping[str, Sequence[int]]) -> str:
    """Sizes as text, with the nearest that fit, such as "h = 90 (88 or 96 fits), w = 64"."""
    return ", ".join(
        f"{name} = {size}" + (f" ({' or '.join(map(str, nearest[name]))} fits)" if name in nearest else "")
        for name, size in sizes.items()
    )


def choose_sizes(model: Model, known: Mapping[str, int], first_side: int = 64) -> ChosenSizes:
    """Choose a size for each open dim that `known` does not name.

    A batch is 1. A picture's side is `first_side`, another usual side, or a size that the model's own constants
    suggest: the first for which all shapes fit. Nothing else is 1 unless no other size fits.
    """
    slots = _slots(model, known)
    first: dict[str, int] | None = None
    for sizes in islice(_trials(slots, model, first_side), _MOST_TRIALS):
        first = first if first is not None else sizes
        if fits(model, {**known, **sizes}):
            return ChosenSizes(sizes)
    return ChosenSizes(first or {}, False, nearest_sizes(model, first or {}))


def sizes_of(model: Model, given: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The sizes of open dims that the shapes in `given`, by input, have."""
    return {
        name: size
        for value in model.inputs
        for name, size in zip(dim_names(value), given.get(value.name, ()), strict=False)
        if name is not None
    }


def nearest_sizes(model: Model, sizes: Mapping[str, int]) -> dict[str, list[int]]:
    """For each of these sizes that does not fit the layers, whatever size the other dims have: the next smaller and the
    next larger size that fit. A dim without any within 64 is left out.
    """
    found = {}
    for name, size in sizes.items():
        if not fits(model, {name: size}):
            below, above = range(size - 1, max(size - _FARTHEST_FIT, 0), -1), range(size + 1, size + _FARTHEST_FIT + 1)
            nearest = [next((other for other in near if fits(model, {name: other})), None) for near in (below, above)]
            if any(nearest):
                found[name] = [other for other in nearest if other is not None]
    return found


def _slots(model: Model, known: Mapping[str, int]) -> dict[str, str]:
    """The open dims, by name, and their kinds."""
    slots: dict[str, str] = {}
    for value in model.inputs:
        shape = value.shape
        if value.kind != "tensor" or shape is None:
            continue
        for axis, (name, dim) in enumerate(zip(dim_names(value), shape, strict=True)):
            if name is not None and name not in known:
                slots.setdefault(name, _kind(dim, axis, shape))
    return slots


def _kind(name: Any, axis: int, shape: Sequence[Any]) -> str:
    """The likely kind of a dim, by its name and its place."""
    word = name.lower() if isinstance(name, str) else ""
    for kind, parts in (("batch", _BATCH), ("text", _TEXT), ("side", _SIDE)):
        if any(part in word for part in parts):
            return kind
    if word in ("h", "w"):
        return "side"
    if len(shape) == 4:
        channels_last = shape[3] in _CHANNELS and shape[1] not in _CHANNELS
        if axis in ((1, 2) if channels_last else (2, 3)):
            return "side"
        if axis:
            return "channels"
    return "batch" if axis == 0 and len(shape) > 1 else "length"


def _trials(slots: Mapping[str, str], model: Model, first_side: int) -> Iterator[dict[str, int]]:
    """Sizes for all open dims: those of one kind alike first, then mixed."""
    own = _own_sizes(model)
    sides = dict.fromkeys((first_side, *PICTURE_SIDES, *own))
    candidates: dict[str, list[int]] = {
        "batch": [1],
        "text": [*dict.fromkeys((*TEXT_LENGTHS, *own, 1))],
        "side": [*sides, 1],
        "channels": [*dict.fromkeys((3, 1, 4, *own))],
        "length": [*dict.fromkeys((*LENGTHS, *own, 1))],
    }
    kinds = [*dict.fromkeys(slots.values())]
    for sizes in _by_rank([candidates[kind] for kind in kinds]):
        yield {slot: sizes[kinds.index(kind)] for slot, kind in slots.items()}
    if len(slots) > len(kinds):
        for sizes in _by_rank([candidates[kind] for kind in slots.values()]):
            yield dict(zip(slots, sizes, strict=True))


def _by_rank(lists: Sequence[Sequence[int]]) -> Iterable[tuple[int, ...]]:
    """All combinations of not too many candidates, the likeliest first."""
    most = max(2, round(_MOST_TRIALS ** (1 / max(len(lists), 1)))) if len(lists) > 1 else _MOST_TRIALS
    ranked = [range(min(len(one), most)) for one in lists]
    for ranks in sorted(product(*ranked), key=lambda ranks: (sum(ranks), ranks)) if len(lists) < 7 else ():
        yield tuple(one[rank] for one, rank in zip(lists, ranks, strict=True))
    if len(lists) >= 7:
        yield tuple(one[0] for one in lists)


def _own_sizes(model: Model) -> list[int]:
    """Sizes that the model's constants suggest: their dims, and sides of square pictures that products flatten."""
    found: dict[int, None] = {}
    for layer in model.layers:
        for value in layer.operands:
            for dim in () if value.constant is None else value.constant.shape:
                if 1 < dim <= 1 << 16:
                    found.setdefault(dim)
        if len(found) > 24:
            break
    return list(found)


def fits(model: Model, sizes: Mapping[str, int]) -> bool:
    """Whether the shapes of all layers fit."""
    inputs = {
        value: PartialTensor(value.dtype, DynamicTensorShape(shape))
        for value in model.inputs
        if value.kind == "tensor" and (shape := shape_with(value, sizes)) is not None
    }
    try:
        inferred = model.specs(inputs)
    except PerframeError:
        return False
    return all(0 not in (spec.shape or ()) for spec in inferred.values() if spec.value is None)
