"""Layers that only move data become arrangements of their source: dims are cut, joined, exchanged or repeated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from perframe.ir import Layer, Value
from perframe.ir.arrangement import Arrangement, Part
from perframe.ir.declaration import normalize_axis
from perframe.ir.sizes.partial import Dim
from perframe.passes.match import may_move, scalar
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Piece:
    """Part of an axis: `size` elements, `step` apart. An axis of -1 stands for one repeated element."""

    axis: int
    step: int
    size: Dim
    whole: bool = False  # whether it ends with its axis; the axis then gives its size


@dataclass(frozen=True)
class Moved:
    """Dims over a source: the pieces of a dim make it together, the outermost first.

    `starts` holds the first element of each axis of the source.
    """

    dims: tuple[tuple[Piece, ...], ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, shape: Sequence[Dim]) -> Moved:
        """Return the dims of a tensor itself."""
        return cls(tuple((Piece(axis, 1, dim, True),) for axis, dim in enumerate(shape)), (0,) * len(shape))

    def arrangement(self, rank: int) -> Arrangement | None:
        """Return the arrangement, with dims of 1 before its own up to a rank. None if one of the last two dims has more
        than one piece, or if a piece has no known size.
        """
        dims: list[tuple[Part, ...]] = [()] * (rank - len(self.dims))
        for pieces in self.dims:
            kept = [piece for piece in pieces if piece.size != 1]
            if any(not piece.whole and not isinstance(piece.size, int) for piece in kept):
                return None
            sizes = [piece.size if isinstance(piece.size, int) and not piece.whole else 0 for piece in kept]
            dims.append(tuple((piece.axis, piece.step, size) for piece, size in zip(kept, sizes, strict=True)))
        if any(len(parts) > 1 for parts in dims[-2:]):
            return None
        return Arrangement(
            tuple(parts if len(parts) > 1 else parts[0] if parts else None for parts in dims), self.starts
        )


def reshaped(moved: Moved, shape: Sequence[Dim]) -> Moved | None:
    """Return `moved` with other dims, one of which may be unknown; None if that would split an indivisible piece."""
    pieces = [piece for dim in moved.dims for piece in dim if piece.size != 1]
    made: list[tuple[Piece, ...]] = [()] * len(shape)
    unknown = shape.index(None) if None in shape else len(shape)
    for axis in range(unknown):
        taken = _taken(pieces, shape[axis], last=False)
        if taken is None:
            return None
        made[axis] = taken
    for axis in range(len(shape) - 1, unknown, -1):
        taken = _taken(pieces, shape[axis], last=True)
        if taken is None:
            return None
        made[axis] = taken
    if unknown < len(shape):
        made[unknown], pieces = tuple(pieces), []
    return None if pieces else Moved(tuple(made), moved.starts)


def _taken(pieces: list[Piece], wanted: Dim, *, last: bool) -> tuple[Piece, ...] | None:
    """Take the pieces that make a dim from one end of a list, and return them; None if they cannot make it."""
    end = -1 if last else 0
    if isinstance(wanted, str):
        return (pieces.pop(end),) if pieces and pieces[end].size == wanted else None
    assert wanted is not None
    made: list[Piece] = []
    rest = wanted
    while rest != 1:
        size = pieces[end].size if pieces else None
        if not isinstance(size, int) or not rest or not size:
            return None
        if rest % size == 0:
            made.append(pieces.pop(end))
            rest //= size
        elif size % rest == 0:
            piece, other = pieces[end], size // rest
            inner, outer = (rest, other) if last else (other, rest)
            parts = [Piece(piece.axis, piece.step * inner, outer, False), Piece(piece.axis, piece.step, inner, False)]
            if piece.axis < 0:
                parts = [Piece(-1, 0, outer), Piece(-1, 0, inner)]
            made.append(parts.pop(end))
            pieces[end] = parts[0]
            rest = 1
        else:
            return None
    return tuple(made[::-1] if last else made)


def _transposed(layer: Layer, moved: Moved) -> Moved | None:
    order = layer.perm or range(len(moved.dims))[::-1]
    return Moved(tuple(moved.dims[axis] for axis in order), moved.starts)


def _reshaped(layer: Layer, moved: Moved) -> Moved | None:
    shape = layer.output.spec.shape
    if shape is None or sum(dim is None for dim in shape) > 1 or 0 in shape:
        return None
    return reshaped(moved, shape)


def _expanded(layer: Layer, moved: Moved) -> Moved | None:
    given, made = (value.spec.shape for value in (layer.input(0), layer.output))
    if given is None or made is None:
        return None
    dims = [()] * (len(made) - len(given)) + list(moved.dims)
    sizes = (1,) * (len(made) - len(given)) + tuple(given)
    for axis, (before, after) in enumerate(zip(sizes, made, strict=True)):
        if before == 1 and isinstance(after, int) and after > 1:
            dims[axis] = (Piece(-1, 0, after),)
        elif before != after or after is None:
            return None
    return Moved(tuple(dims), moved.starts)


def _started(moved: Moved, axis: int, start: int, size: int, *, drop: bool) -> Moved | None:
    """Return `moved` with `size` elements of a dim from `start` on; `drop` removes the dim.

    None if the dim has more than one piece, or the elements are not within it.
    """
    kept = [piece for piece in moved.dims[axis] if piece.size != 1]
    if len(kept) > 1 or (kept and not isinstance(kept[0].size, int)):
        return None
    total = kept[0].size if kept else 1
    assert isinstance(total, int)
    start = start + total if start < 0 else start
    if not 0 <= start <= total - size:
        return None
    starts = list(moved.starts)
    if kept and kept[0].axis >= 0:
        starts[kept[0].axis] += start * kept[0].step
    piece = (Piece(kept[0].axis, kept[0].step, size),) if kept else ()
    dims = (*moved.dims[:axis], *(() if drop else (piece,)), *moved.dims[axis + 1 :])
    return Moved(dims, tuple(starts))


def _gathered(layer: Layer, moved: Moved) -> Moved | None:
    index = layer.input(1).constant
    if index is None or index.ndim:
        return None
    axis = normalize_axis(layer.axis, len(moved.dims))
    return _started(moved, axis, int(index), 1, drop=True)


def _split(layer: Layer, moved: Moved, output: Value) -> Moved | None:
    axis = normalize_axis(layer.axis, len(moved.dims))
    shapes = [value.spec.shape for value in layer.results]
    sizes = [None if shape is None else shape[axis] for shape in shapes]
    if None in layer.outputs or not all(isinstance(size, int) for size in sizes):
        return None
    at = layer.outputs.index(output)
    known = [size for size in sizes if isinstance(size, int)]
    return _started(moved, axis, sum(known[:at]), known[at], drop=False)


_MOVES: dict[str, Callable[[Layer, Moved], Moved | None]] = {
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"), _reshaped),
    "Transpose": _transposed,
    "Expand": _expanded,
    "Gather": _gathered,
}


def origin(value: Value, rank: int, *, scales: bool = False, turns: bool = False) -> tuple[Value, Arrangement, float]:
    """Return the furthest source of a value as (the source, the arrangement, a factor).

    The value is the arrangement of the source, of this rank, times the factor. The factor is 1 unless `scales` is set.
    With `turns` the last two dims of the value are exchanged.
    """
    path: list[tuple[Layer, Value]] = []
    shape = value.spec.shape
    assert shape is not None
    best = value, Arrangement.of(len(shape), rank), 1.0
    source, factor = value, 1.0
    while (layer := source.producer) is not None and not layer.epilogue and not layer.channels_last:
        number = _factor(layer) if scales else None
        if number is not None:
            source, factor = number[0], factor * number[1]
        elif (layer.op in _MOVES or layer.op == "Split") and layer.input(0).constant is None:
            path.append((layer, source))
            source = layer.input(0)
        else:
            break
        shape = source.spec.shape
        if shape is None or not math.isfinite(factor):
            break
        arrangement = _followed(path, Moved.of(shape), rank)
        if arrangement is not None:
            best = source, arrangement, factor
    return (best[0], best[1].swapped(), best[2]) if turns else best


def _followed(path: Sequence[tuple[Layer, Value]], moved: Moved, rank: int) -> Arrangement | None:
    for layer, output in reversed(path):
        after = _split(layer, moved, output) if layer.op == "Split" else _MOVES[layer.op](layer, moved)
        if after is None:
            return None
        moved = after
    return moved.arrangement(rank)


def _factor(layer: Layer) -> tuple[Value, float] | None:
    """Return (value, number) of a layer that multiplies a value by a constant number and keeps its rank, else None."""
    if layer.op not in ("Mul", "Div") or len(layer.inputs) != 2:
        return None
    for source, other in (layer.operands, layer.operands[::-1]):
        number = scalar(other.constant)
        if number is None or (layer.op == "Div" and (other is not layer.inputs[1] or number == 0)):
            continue
        before, after = source.spec.shape, layer.output.spec.shape
        if before is not None and after is not None and len(before) == len(after):
            factor = number if layer.op == "Mul" else 1 / number
            return (source, factor) if may_move(factor) else None
    return None
