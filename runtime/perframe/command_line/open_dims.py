"""Sizes for the dims that a model leaves open, where a command has to choose them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from perframe.errors import PerframeError
from perframe.sizes.partial import DynamicTensorShape, PartialTensor

if TYPE_CHECKING:
    from perframe.model import Model

Slot = str | tuple[str, int]  # a named dim, or an input and the axis of a dim without a name
PICTURE_SIDES = (64, 224, 32, 28, 96, 128, 256, 320, 416, 512, 640)
TEXT_LENGTHS = (128, 64, 32, 16, 8, 77, 256, 512)
LENGTHS = (64, 224, 16, 8, 4, 2, 3)
_TEXT, _SIDE, _BATCH = ("seq", "len", "token", "text"), ("height", "width", "rows", "columns"), ("batch",)
_CHANNELS = (1, 2, 3, 4)
_MOST_TRIALS = 400


@dataclass(frozen=True)
class ChosenSizes:
    """Sizes that were chosen for open dims.

    `sizes` are those of named dims and `shapes` those of inputs with open dims that have no name. `fits` tells whether
    the layers' shapes fit with them, as far as shapes alone can say.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    fits: bool = True

    def __bool__(self) -> bool:
        """Whether anything had to be chosen."""
        return bool(self.sizes or self.shapes)

    def __str__(self) -> str:
        """The sizes, and the options that set them."""
        said = []
        if self.sizes:
            listed = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
            said.append(f"{listed} (open): --dims {','.join(f'{name}={size}' for name, size in self.sizes.items())}")
        for name, shape in self.shapes.items():
            text = "x".join(map(str, shape))
            said.append(f"{name} = {text} (open): --input {name}=random:{text}")
        return "; ".join(said)


def choose_sizes(
    model: Model, dims: Mapping[str, int], given: Mapping[str, Sequence[int]] | None = None, first_side: int = 64
) -> ChosenSizes:
    """Choose a size for each open dim that `dims` does not name and that no shape in `given`, by input, decides.

    A batch is 1. A picture's side is `first_side`, another usual side, or a size that the model's own constants
    suggest: the first for which all shapes fit. Nothing else is 1 unless no other size fits.
    """
    shapes = {name: tuple(shape) for name, shape in (given or {}).items()}
    known = dict(dims)
    for value in model.inputs:
        known |= {
            dim: size
            for dim, size in zip(value.shape or (), shapes.get(value.name, ()), strict=False)
            if isinstance(dim, str) and dim not in dims
        }
    slots = _slots(model, known, shapes)
    trials = islice(_trials(slots, model, first_side), _MOST_TRIALS)
    first: dict[Slot, int] | None = None
    for sizes in trials:
        first = first if first is not None else sizes
        if _fits(model, {**known, **sizes}, shapes):
            return _chosen(model, known, sizes, shapes, True)
    return _chosen(model, known, first or {}, shapes, not slots)


def _slots(model: Model, known: Mapping[str, int], given: Mapping[str, Any]) -> dict[Slot, str]:
    """The open dims and their kinds."""
    slots: dict[Slot, str] = {}
    for value in model.inputs:
        shape = value.shape
        if value.kind != "tensor" or shape is None or value.name in given:
            continue
        for axis, dim in enumerate(shape):
            if not isinstance(dim, int) and dim not in known:
                slots.setdefault(dim if isinstance(dim, str) else (value.name, axis), _kind(dim, axis, shape))
    return slots


def _kind(name: Any, axis: int, shape: Sequence[Any]) -> str:
    """What a dim is likely to be, by its name and its place."""
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


def _trials(slots: Mapping[Slot, str], model: Model, first_side: int) -> Iterator[dict[Slot, int]]:
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


def _fits(model: Model, sizes: Mapping[Any, int], given: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether the shapes of all layers fit."""
    inputs = {}
    for value in model.inputs:
        shape = given.get(value.name) or _shape(value, sizes)
        if value.kind == "tensor" and shape is not None:
            inputs[value] = PartialTensor(value.dtype, DynamicTensorShape(shape))
    try:
        inferred = model.specs(inputs)
    except PerframeError:
        return False
    return all(0 not in (spec.shape or ()) for spec in inferred.values() if spec.value is None)


def _shape(value: Any, sizes: Mapping[Any, int]) -> tuple[Any, ...] | None:
    """A declared shape with these sizes."""
    if value.shape is None:
        return None
    return tuple(
        dim if isinstance(dim, int) else sizes.get(dim if isinstance(dim, str) else (value.name, axis))
        for axis, dim in enumerate(value.shape)
    )


def _chosen(
    model: Model, known: Mapping[str, int], sizes: Mapping[Slot, int], given: Mapping[str, Any], fits: bool
) -> ChosenSizes:
    named = {slot: size for slot, size in sizes.items() if isinstance(slot, str)}
    unnamed = {slot[0] for slot in sizes if isinstance(slot, tuple)}
    every: dict[Any, int] = {**known, **sizes}
    shapes = {value.name: _shape(value, every) or () for value in model.inputs if value.name in unnamed}
    return ChosenSizes(named, shapes, fits)
