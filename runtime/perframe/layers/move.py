"""Layers that only move data: each output element is a constant, or an input element found by strides."""

from __future__ import annotations

from collections.abc import Sequence
from operator import floordiv
from typing import Literal

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag, Positive
from perframe.ir.declaration import Known, layer, normalize_axes, normalize_axis
from perframe.ir.geometry import Ints, View, broadcast_strides, row_major
from perframe.ir.shape_arithmetic import listed, listed_of
from perframe.ir.sizes.partial import (
    Dim,
    DynamicTensorShape,
    PartialTensor,
    broadcast,
    derived,
    dim_product,
    dim_quotient,
    dim_sum,
    number_of,
)
from perframe.ir.sizes.size import at_least, at_most, surely_less
from perframe.safety.records import dataclass

# --- the same data with another shape ---


@layer(alias=True)
def Identity(x: PartialTensor) -> PartialTensor:
    return x


@layer(host=("shape",), followed=("shape",), alias=True)
def Reshape(x: PartialTensor, shape: PartialTensor, *, allowzero: Flag = 0) -> PartialTensor:
    wanted = listed(shape)
    if wanted is None:
        return x.with_shape(None)
    dims: list[Dim] = []
    for axis, dim in enumerate(wanted):
        if dim == 0 and not allowzero:
            if x.shape is not None and axis >= len(x.shape):
                raise InferenceError(
                    f"{x} cannot be reshaped to {tuple(wanted)}: it has no dim {axis} to copy for the 0"
                )
            dims.append(None if x.shape is None else x.shape[axis])
        elif isinstance(dim, str) and not surely_less(-1, number_of(dim)):
            dims.append(None)  # it may be -1, which asks for the rest
        else:
            dims.append(dim)  # a named dim counts as more than 0, although it could be 0 and then copy too
    if dims.count(-1) == 1:
        at = dims.index(-1)
        dims[at] = None if x.shape is None else _quotient(x.shape, [*dims[:at], *dims[at + 1 :]])
        if dims[at] == -1:
            raise InferenceError(f"{x} cannot be reshaped to {tuple(wanted)}: no dim for -1 gives as many elements")
    result = x.with_shape(dims)
    size = x.shape.size if x.shape is not None else None
    if isinstance(size, int) and result.shape is not None and result.shape.size not in (None, size):
        raise InferenceError(f"{x} cannot be reshaped to {tuple(wanted)}: {size} elements are not {result.shape.size}")
    return result


def _quotient(dims: Sequence[Dim], others: Sequence[Dim]) -> Dim:
    """Return the product of `dims` divided by the product of `others`; -1 if the quotient is not an integer.

    Dims that both have in common cancel first. So (n, 4, 3) as (n, -1) is (n, 12), for a batch of 0 too.
    """
    if all(isinstance(dim, int) for dim in (*dims, *others)) and 0 not in others:
        whole, part = dim_product(*dims), dim_product(*others)
        return -1 if whole % part else whole // part  # type: ignore[operator]
    left, right = list(dims), list[Dim]()
    for dim in others:
        if dim is not None and dim in left:
            left.remove(dim)
        else:
            right.append(dim)
    whole, part = dim_product(*left), dim_product(*right)
    if part == 0:
        return 0 if isinstance(whole, int) else None
    if isinstance(whole, int) and isinstance(part, int):
        return -1 if whole % part else whole // part
    return dim_quotient(whole, part)


@layer(alias=True)
def Flatten(x: PartialTensor, *, axis: int = 1) -> PartialTensor:
    if x.shape is None:
        return x.with_shape((None, None))
    if not -len(x.shape) <= axis <= len(x.shape):
        raise InferenceError(f"axis {axis} is outside {x}")
    at = axis + len(x.shape) if axis < 0 else axis
    return x.with_shape((dim_product(*x.shape[:at]), dim_product(*x.shape[at:])))


@layer(host=("axes",), alias=True)
def Squeeze(x: PartialTensor, axes: PartialTensor | None = None) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    if axes is None:
        if not x.shape.is_static:
            return x.with_shape(None)
        return x.with_shape(dim for dim in x.shape if dim != 1)
    given = axes.ints()
    if given is None:
        return x.with_shape(None)
    drop = normalize_axes(given, len(x.shape))
    for axis in drop:
        if isinstance(x.shape[axis], int) and x.shape[axis] != 1:
            raise InferenceError(f"axis {axis} of {x} is not 1 and cannot be squeezed")
    return x.with_shape(dim for axis, dim in enumerate(x.shape) if axis not in drop)


@layer(host=("axes",), alias=True)
def Unsqueeze(x: PartialTensor, axes: PartialTensor) -> PartialTensor:
    given = axes.ints()
    if x.shape is None or given is None:
        return x.with_shape(None)
    rank = len(x.shape) + len(given)
    new = normalize_axes(given, rank)
    rest = iter(x.shape)
    return x.with_shape(1 if axis in new else next(rest) for axis in range(rank))


@layer()
def Copy(x: PartialTensor) -> PartialTensor:
    return x.with_shape(x.shape)


@Copy.form
def _copy(inputs: Sequence[Known], outputs: Sequence[Known]) -> list[View]:
    return [View(tuple(outputs[0].shape), row_major(outputs[0].shape))]


# --- views ---


@layer()
def Transpose(x: PartialTensor, *, perm: Sequence[int] | None = None) -> PartialTensor:
    if x.shape is None:
        return x.with_shape((None,) * len(perm) if perm else None)
    order = perm if perm is not None else range(len(x.shape))[::-1]
    if sorted(order) != list(range(len(x.shape))):
        raise InferenceError(f"perm {tuple(order)} does not permute the axes of {x}")
    return x.with_shape(x.shape[axis] for axis in order)


@Transpose.form
def _transpose(inputs: Sequence[Known], outputs: Sequence[Known], *, perm: Sequence[int] | None) -> list[View]:
    strides = row_major(inputs[0].shape)
    order = perm if perm is not None else range(len(strides))[::-1]
    return [View(tuple(outputs[0].shape), tuple(strides[axis] for axis in order))]


@layer(host=("shape",), followed=("shape",))
def Expand(x: PartialTensor, shape: PartialTensor) -> PartialTensor:
    wanted = listed(shape)
    return x.with_shape(None if wanted is None else broadcast(x.shape, DynamicTensorShape(wanted)))


@Expand.form
def _expand(inputs: Sequence[Known], outputs: Sequence[Known]) -> list[View]:
    return [View(tuple(outputs[0].shape), broadcast_strides(inputs[0].shape, outputs[0].shape))]


@layer(host=("repeats",))
def Tile(x: PartialTensor, repeats: PartialTensor) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    counts = listed_of(repeats, len(x.shape))
    if len(counts) != len(x.shape):
        raise InferenceError(f"{len(counts)} repeats do not fit {x}")
    return x.with_shape(map(dim_product, x.shape, counts))


@Tile.form
def _tile(inputs: Sequence[Known], outputs: Sequence[Known]) -> list[View]:
    shape, strides = [], []
    for dim, total, stride in zip(inputs[0].shape, outputs[0].shape, row_major(inputs[0].shape), strict=True):
        shape += [total // dim if dim else 0, dim]
        strides += [0, stride]
    return [View(tuple(shape), tuple(strides))]


@dataclass(frozen=True)
class _Cut:
    """One axis of a slice: `count` elements from `first` on, `step` apart. `first` is unused if `count` is unknown."""

    first: int
    count: Dim
    step: int


_FAR = 2**31 - 1  # exporters say "to the end" with numbers from here on
_FARTHEST = 2**40  # beyond all dims; arithmetic of sizes computes with it


def _near(bound: Dim) -> Dim:
    """Return a bound that cuts like this one and is not too large to compute with."""
    return min(max(bound, -_FARTHEST), _FARTHEST) if type(bound) is int else bound


def _cut(dim: Dim, start: Dim, end: Dim, step: Dim) -> _Cut:
    """Return the cut of a dim by bounds that may be unknown."""
    start, end = _near(start), _near(end)
    if type(dim) is int and type(start) is int and type(end) is int and type(step) is int:
        if step < 0 and end < -dim:
            stop = -1
            first = slice(start, None, step).indices(dim)[0]
        else:
            first, stop, _ = slice(start, end, step).indices(dim)
        return _Cut(first, len(range(first, stop, step)), step)
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return _Cut(*_extent(dim, start, end, step), step)
    if step == 1 and start is not None and start == end:
        return _Cut(0, 0, 1)
    return _Cut(0, derived(lambda *bounds: _extent(*bounds)[1], dim, start, end, step), 1)


def _extent(size: int, start: int, end: int, step: int) -> tuple[int, int]:
    """Return the first element of a cut and the number of its elements, for symbolic sizes."""
    last = size if step > 0 else size - 1  # the bounds lie between 0 and `size`, or -1 and `size - 1` for steps back
    before = last - size
    first = start if start >= 0 else at_least(start + size, before)
    if type(end) is int and abs(end) >= _FAR:
        stop = last if end > 0 else before
    else:
        stop = at_most(end, last) if end >= 0 else at_least(end + size, before)
    if step < 0:
        first = at_most(first, last)
    if start < 0 and stop is last and step == 1:
        count = at_most(-start, size)
    else:
        count = at_least(-((first - stop) // step), 0)
    return at_most(first, at_least(last, 0)), count


def _cuts(shape: Sequence[Dim], bounds: Sequence[Sequence[Dim] | None]) -> list[_Cut] | None:
    """Return the cut of each axis; None if it is unknown which axes are cut."""
    starts, ends, axes, steps = bounds
    count = next((len(given) for given in bounds if given is not None), None)
    if count is None:
        return None
    starts, ends = starts or (None,) * count, ends or (None,) * count
    steps = steps or (1,) * count
    result = [_Cut(0, dim, 1) for dim in shape]
    for start, end, axis, step in zip(starts, ends, range(count) if axes is None else axes, steps, strict=True):
        if not isinstance(axis, int):
            return None
        at = normalize_axis(axis, len(shape))
        if step == 0:
            raise InferenceError(f"a slice of axis {at} has step 0")
        result[at] = _cut(shape[at], start, end, step)
    return result


@layer(host=("starts", "ends", "axes", "steps"), followed=("starts", "ends"), cuts=True)
def Slice(
    x: PartialTensor,
    starts: PartialTensor,
    ends: PartialTensor,
    axes: PartialTensor | None = None,
    steps: PartialTensor | None = None,
) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    unknown = any(value is not None and listed(value) is None for value in (axes, steps))
    cuts = None if unknown else _cuts(x.shape, [listed(value) for value in (starts, ends, axes, steps)])
    return x.with_shape((None,) * len(x.shape) if cuts is None else [cut.count for cut in cuts])


def _is_all(given: Known | None, number: int) -> bool:
    """Whether an input's values are known and are this number."""
    numbers = None if given is None else given.ints()
    return numbers is not None and all(one == number for one in numbers)


@Slice.form
def _slice(inputs: Sequence[Known | None], outputs: Sequence[Known]) -> list[View]:
    x = inputs[0]
    assert x is not None
    _, starts, ends, axes, steps = inputs
    if _is_all(starts, 0) and (steps is None or _is_all(steps, 1)):  # the output's shape says where it ends
        return [View(tuple(outputs[0].shape), row_major(x.shape))]
    bounds = [None if value is None else value.ints() for value in (starts, ends, axes, steps)]
    cuts = _cuts(x.shape, bounds) or []
    strides = row_major(x.shape)
    offset = sum(cut.first * stride for cut, stride in zip(cuts, strides, strict=True))
    return [View(tuple(outputs[0].shape), tuple(cut.step * s for cut, s in zip(cuts, strides, strict=True)), offset)]


def _part(size: int, count: int, index: int) -> int:
    """Return the size of one of `count` parts that are as equal as possible."""
    each = -(-size // count)
    return at_most(each, at_least(size - index * each, 0))


@layer(host=("split",), cuts=True)
def Split(
    x: PartialTensor, split: PartialTensor | None = None, *, axis: int = 0, num_outputs: Positive
) -> tuple[PartialTensor, ...]:
    if x.shape is None:
        return (x.with_shape(None),) * num_outputs
    at = normalize_axis(axis, len(x.shape))
    sizes = listed(split)
    dim = x.shape[at]
    parts: list[Dim]
    if sizes is not None:
        total = dim_sum(*sizes)
        if isinstance(dim, int) and isinstance(total, int) and total != dim:
            raise InferenceError(f"split {sizes} does not sum to axis {at} of {x}")
        parts = list(sizes)
    elif num_outputs == 1:
        parts = [dim]
    elif split is None:
        parts = [derived(_part, dim, num_outputs, index) for index in range(num_outputs)]
    else:
        parts = [None] * num_outputs
    return tuple(x.with_shape((*x.shape[:at], part, *x.shape[at + 1 :])) for part in parts)


@Split.form
def _split(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int, num_outputs: int) -> list[View]:
    strides, at, views = row_major(inputs[0].shape), normalize_axis(axis, len(inputs[0].shape)), []
    first = 0
    for part in outputs:
        views.append(View(tuple(part.shape), strides, first * strides[at]))
        first += part.shape[at]
    return views


def view_in_order(sizes: Ints, order: Ints) -> View:
    """Return the view that splits the input into dims of `sizes` and reads these in `order`."""
    strides = row_major(sizes)
    return View(tuple(sizes[axis] for axis in order), tuple(strides[axis] for axis in order))


def _picture(x: PartialTensor) -> Sequence[Dim]:
    """Return batch, channels, height and width."""
    if x.shape is not None and len(x.shape) != 4:
        raise InferenceError(f"{x} does not have the 4 dims of pictures")
    return x.shape or (None,) * 4


@layer()
def DepthToSpace(x: PartialTensor, *, blocksize: Positive, mode: Literal["DCR", "CRD"] = "DCR") -> PartialTensor:
    n, c, h, w = _picture(x)
    if isinstance(c, int) and c % (blocksize * blocksize):
        raise InferenceError(f"the channels of {x} are not a multiple of {blocksize * blocksize}")
    grown = [dim_product(dim, blocksize) for dim in (h, w)]
    return x.with_shape((n, derived(floordiv, c, blocksize**2), *grown))


@DepthToSpace.form
def _depth_to_space(inputs: Sequence[Known], outputs: Sequence[Known], *, blocksize: int, mode: str) -> list[View]:
    n, c, h, w = inputs[0].shape
    b, rest = blocksize, c // blocksize**2
    if mode == "DCR":
        return [view_in_order((n, b, b, rest, h, w), (0, 3, 4, 1, 5, 2))]
    return [view_in_order((n, rest, b, b, h, w), (0, 1, 4, 2, 5, 3))]


_DEPTH_ORDERS: dict[str, Ints] = {"DCR": (0, 3, 5, 1, 2, 4), "CRD": (0, 1, 3, 5, 2, 4)}


@layer()
def SpaceToDepth(x: PartialTensor, *, blocksize: Positive, mode: Literal["DCR", "CRD"] = "DCR") -> PartialTensor:
    n, c, h, w = _picture(x)
    shrunk = [derived(floordiv, dim, blocksize) for dim in (h, w)]
    return x.with_shape((n, dim_product(c, blocksize**2), *shrunk))


@SpaceToDepth.form
def _space_to_depth(inputs: Sequence[Known], outputs: Sequence[Known], *, blocksize: int, mode: str) -> list[View]:
    n, c, h, w = inputs[0].shape
    b = blocksize
    return [view_in_order((n, c, h // b, b, w // b, b), _DEPTH_ORDERS[mode])]
