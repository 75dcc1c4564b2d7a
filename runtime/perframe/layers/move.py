"""Layers that only move data: each output element is one input element, found by strides, or a constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perframe.errors import InferenceError
from perframe.layers.base import Known, layer, normalize_axes, normalize_axis
from perframe.layers.geometry import Ints, View, broadcast_strides, row_major
from perframe.spec import Dim, DynamicTensorShape, PartialTensor, broadcast
from perframe.tensor import DataType


def _product(dims: Sequence[Dim]) -> Dim:
    """The product of dims; a single name survives a product with ones."""
    rest = [dim for dim in dims if dim != 1]
    if len(rest) == 1:
        return rest[0]
    known = [dim for dim in rest if isinstance(dim, int)]
    if 0 in known:
        return 0
    return math.prod(known) if len(known) == len(rest) else None


# --- the same data with another shape ---


@layer(alias=True)
def Identity(x: PartialTensor) -> PartialTensor:
    return x


@layer(host=("shape",), alias=True)
def Reshape(x: PartialTensor, shape: PartialTensor, *, allowzero: int = 0) -> PartialTensor:
    wanted = shape.elements
    if wanted is None:
        rank = shape.shape[0] if shape.shape is not None and len(shape.shape) == 1 else None
        return x.with_shape((None,) * rank if isinstance(rank, int) else None)
    dims: list[Dim] = []
    for axis, dim in enumerate(wanted):
        if dim == 0 and not allowzero:
            dims.append(x.shape[axis] if x.shape is not None and axis < len(x.shape) else None)
        else:
            dims.append(dim)
    size = x.shape.size if x.shape is not None else None
    if -1 in dims:
        at = dims.index(-1)
        rest = _product([dim for index, dim in enumerate(dims) if index != at])
        if isinstance(size, int) and isinstance(rest, int):
            if rest and size % rest:
                raise InferenceError(f"{x} cannot be reshaped to {tuple(wanted)}: {size} is no multiple of {rest}")
            dims[at] = size // rest if rest else 0
        else:
            dims[at] = None
    result = x.with_shape(dims)
    if isinstance(size, int) and result.shape is not None and result.shape.size not in (None, size):
        raise InferenceError(f"{x} cannot be reshaped to {tuple(wanted)}: {size} elements are not {result.shape.size}")
    return result


@layer(alias=True)
def Flatten(x: PartialTensor, *, axis: int = 1) -> PartialTensor:
    if x.shape is None:
        return x.with_shape((None, None))
    if not -len(x.shape) <= axis <= len(x.shape):
        raise InferenceError(f"axis {axis} is outside {x}")
    at = axis + len(x.shape) if axis < 0 else axis
    return x.with_shape((_product(x.shape[:at]), _product(x.shape[at:])))


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
    return PartialTensor(
        x.dtype,
        DynamicTensorShape(d for i, d in enumerate(x.shape) if i not in drop),
        None,
        _small(x, len(x.shape) - len(drop)),
    )


def _small(x: PartialTensor, rank: int) -> tuple[Dim, ...] | None:
    return x.elements if rank <= 1 else None


@layer(host=("axes",), alias=True)
def Unsqueeze(x: PartialTensor, axes: PartialTensor) -> PartialTensor:
    given = axes.ints()
    if x.shape is None or given is None:
        return x.with_shape(None)
    rank = len(x.shape) + len(given)
    new = normalize_axes(given, rank)
    rest = iter(x.shape)
    return PartialTensor(
        x.dtype, DynamicTensorShape(1 if axis in new else next(rest) for axis in range(rank)), None, _small(x, rank)
    )


@layer(alias=True)
def Dropout(
    x: PartialTensor, ratio: PartialTensor | None = None, training_mode: PartialTensor | None = None, *, seed: int = 0
) -> tuple[PartialTensor, PartialTensor]:
    return x, x.with_shape(x.shape, DataType.BOOL)


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


@layer(host=("shape",))
def Expand(x: PartialTensor, shape: PartialTensor) -> PartialTensor:
    if shape.elements is None:
        return x.with_shape(None)
    return x.with_shape(broadcast(x.shape, DynamicTensorShape(shape.elements)))


@Expand.form
def _expand(inputs: Sequence[Known], outputs: Sequence[Known]) -> list[View]:
    return [View(tuple(outputs[0].shape), broadcast_strides(inputs[0].shape, outputs[0].shape))]


@layer(host=("repeats",))
def Tile(x: PartialTensor, repeats: PartialTensor) -> PartialTensor:
    counts = repeats.ints()
    if x.shape is None or counts is None:
        return x.with_shape((None,) * len(x.shape) if x.shape is not None else None)
    if len(counts) != len(x.shape):
        raise InferenceError(f"{len(counts)} repeats do not fit {x}")
    return x.with_shape(
        dim * count if isinstance(dim, int) else (dim if count == 1 else None)
        for dim, count in zip(x.shape, counts, strict=True)
    )


@Tile.form
def _tile(inputs: Sequence[Known], outputs: Sequence[Known]) -> list[View]:
    shape, strides = [], []
    for dim, total, stride in zip(inputs[0].shape, outputs[0].shape, row_major(inputs[0].shape), strict=True):
        shape += [total // dim if dim else 0, dim]
        strides += [0, stride]
    return [View(tuple(shape), tuple(strides))]


def _slices(size: Sequence[Dim], inputs: Sequence[Sequence[int] | None]) -> list[tuple[int, int, int]] | None:
    """For each axis (first, count, step); None where a bound or the dim that it cuts is unknown."""
    starts, ends, axes, steps = inputs
    if starts is None or ends is None:
        return None
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    result = [(0, dim if isinstance(dim, int) else -1, 1) for dim in size]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = normalize_axis(axis, len(size))
        dim = size[at]
        if not isinstance(dim, int):
            if (start, step) != (0, 1) or end < 2**31 - 1:
                result[at] = (0, -2, 1)
            continue
        if step == 0:
            raise InferenceError(f"a slice of axis {at} has step 0")
        first, stop, _ = slice(start, max(end, -dim - 1) if step < 0 and end < 0 else end, step).indices(dim)
        if step < 0 and end < -dim:
            stop = -1
        result[at] = (first, len(range(first, stop, step)), step)
    return result


@layer(host=("starts", "ends", "axes", "steps"))
def Slice(
    x: PartialTensor,
    starts: PartialTensor,
    ends: PartialTensor,
    axes: PartialTensor | None = None,
    steps: PartialTensor | None = None,
) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    cuts = _slices(x.shape, [None if value is None else value.ints() for value in (starts, ends, axes, steps)])
    if cuts is None:
        return x.with_shape((None,) * len(x.shape))
    dims = [
        dim if count == -1 else None if count == -2 else count for dim, (_, count, _) in zip(x.shape, cuts, strict=True)
    ]
    part = None
    if x.elements is not None and len(cuts) == 1 and cuts[0][1] >= 0:
        first, count, step = cuts[0]
        part = tuple(x.elements[first + index * step] for index in range(count))
    return PartialTensor(x.dtype, DynamicTensorShape(dims), None, part)


@Slice.form
def _slice(inputs: Sequence[Known | None], outputs: Sequence[Known]) -> list[View]:
    x = inputs[0]
    assert x is not None
    bounds = [None if value is None else [int(v) for v in value.value.ravel()] for value in (*inputs, None, None)[1:5]]  # type: ignore[union-attr]
    cuts = _slices(x.shape, bounds) or []
    strides = row_major(x.shape)
    offset = sum(first * stride for (first, _, _), stride in zip(cuts, strides, strict=True))
    return [
        View(tuple(outputs[0].shape), tuple(s * step for (_, _, step), s in zip(cuts, strides, strict=True)), offset)
    ]


@layer(host=("split",))
def Split(
    x: PartialTensor, split: PartialTensor | None = None, *, axis: int = 0, num_outputs: int
) -> tuple[PartialTensor, ...]:
    if x.shape is None:
        return (x.with_shape(None),) * num_outputs
    at = normalize_axis(axis, len(x.shape))
    sizes = split.ints() if split is not None else None
    dim = x.shape[at]
    parts: list[Dim]
    if sizes is not None:
        if isinstance(dim, int) and sum(sizes) != dim:
            raise InferenceError(f"split {sizes} does not sum to axis {at} of {x}")
        parts = list(sizes)
    elif isinstance(dim, int):
        each = -(-dim // num_outputs)
        parts = [max(0, min(each, dim - index * each)) for index in range(num_outputs)]
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


def _view_of_blocks(sizes: Ints, order: Ints) -> View:
    """The view that splits the input into dims of `sizes` and reads them in `order`."""
    strides = row_major(sizes)
    return View(tuple(sizes[axis] for axis in order), tuple(strides[axis] for axis in order))


def _picture(x: PartialTensor) -> Sequence[Dim]:
    """Batch, channels, height and width."""
    if x.shape is not None and len(x.shape) != 4:
        raise InferenceError(f"{x} does not have the 4 dims of pictures")
    return x.shape or (None,) * 4


@layer()
def DepthToSpace(x: PartialTensor, *, blocksize: int, mode: str = "DCR") -> PartialTensor:
    n, c, h, w = _picture(x)
    if isinstance(c, int) and c % (blocksize * blocksize):
        raise InferenceError(f"the channels of {x} are no multiple of {blocksize * blocksize}")
    grown = [dim * blocksize if isinstance(dim, int) else None for dim in (h, w)]
    return x.with_shape((n, c // blocksize**2 if isinstance(c, int) else None, *grown))


@DepthToSpace.form
def _depth_to_space(inputs: Sequence[Known], outputs: Sequence[Known], *, blocksize: int, mode: str) -> list[View]:
    n, c, h, w = inputs[0].shape
    b, rest = blocksize, c // blocksize**2
    if mode == "DCR":
        return [_view_of_blocks((n, b, b, rest, h, w), (0, 3, 4, 1, 5, 2))]
    return [_view_of_blocks((n, rest, b, b, h, w), (0, 1, 4, 2, 5, 3))]


_DEPTH_ORDERS: dict[str, Ints] = {"DCR": (0, 3, 5, 1, 2, 4), "CRD": (0, 1, 3, 5, 2, 4)}


@layer()
def SpaceToDepth(x: PartialTensor, *, blocksize: int, mode: str = "DCR") -> PartialTensor:
    n, c, h, w = _picture(x)
    if mode not in _DEPTH_ORDERS:
        raise InferenceError(f"SpaceToDepth has no mode {mode!r}")
    shrunk = [dim // blocksize if isinstance(dim, int) else None for dim in (h, w)]
    return x.with_shape((n, c * blocksize**2 if isinstance(c, int) else None, *shrunk))


@SpaceToDepth.form
def _space_to_depth(inputs: Sequence[Known], outputs: Sequence[Known], *, blocksize: int, mode: str) -> list[View]:
    n, c, h, w = inputs[0].shape
    b = blocksize
    return [_view_of_blocks((n, c, h // b, b, w // b, b), _DEPTH_ORDERS[mode])]


# --- padding ---


@dataclass(frozen=True)
class Padding:
    """Output coordinate c reads input coordinate c - before; outside, `mode` says what ("constant" reads `value`)."""

    mode: str
    input_shape: Ints
    output_shape: Ints
    before: Ints
    value: float


@layer(host=("pads", "value", "axes"), family="pad")
def Pad(
    x: PartialTensor,
    pads: PartialTensor,
    value: PartialTensor | None = None,
    axes: PartialTensor | None = None,
    *,
    mode: str = "constant",
) -> PartialTensor:
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise InferenceError(f"Pad has no mode {mode!r}")
    amounts, chosen = pads.ints(), axes.ints() if axes is not None else None
    if x.shape is None:
        return x.with_shape(None)
    if amounts is None or (axes is not None and chosen is None):
        padded = range(len(x.shape)) if chosen is None else [normalize_axis(axis, len(x.shape)) for axis in chosen]
        return x.with_shape(None if axis in padded else dim for axis, dim in enumerate(x.shape))
    before, after = _pad_amounts(len(x.shape), amounts, chosen)
    return x.with_shape(
        dim + first + last if isinstance(dim, int) else (dim if first == last == 0 else None)
        for dim, first, last in zip(x.shape, before, after, strict=True)
    )


def _pad_amounts(rank: int, amounts: Sequence[int], axes: Sequence[int] | None) -> tuple[list[int], list[int]]:
    chosen = range(rank) if axes is None else [normalize_axis(axis, rank) for axis in axes]
    if len(amounts) != 2 * len(chosen):
        raise InferenceError(f"{len(amounts)} pads do not fit {len(chosen)} axes")
    before, after = [0] * rank, [0] * rank
    for index, axis in enumerate(chosen):
        before[axis], after[axis] = amounts[index], amounts[index + len(chosen)]
    return before, after


@Pad.form
def _pad(inputs: Sequence[Known | None], outputs: Sequence[Known], *, mode: str) -> Padding:
    x, pads, value, axes = (*inputs, None, None)[:4]
    assert x is not None and pads is not None and pads.value is not None
    chosen = None if axes is None or axes.value is None else [int(v) for v in axes.value.ravel()]
    before, _ = _pad_amounts(len(x.shape), [int(v) for v in pads.value.ravel()], chosen)
    number = 0.0 if value is None or value.value is None else float(value.value.ravel()[0])
    return Padding(mode, tuple(x.shape), tuple(outputs[0].shape), tuple(before), number)
