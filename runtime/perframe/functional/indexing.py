"""Indexing of functional tensors, as NumPy defines it.

Numbers, slices, None and ... make views. Arrays of integers and of bools, and tensors of them, gather elements.
Source: https://numpy.org/doc/stable/user/basics.indexing.html
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.errors import InputError, PerframeError
from perframe.functional.calls import apply, cast, ints
from perframe.functional.making import arange
from perframe.functional.moving import movedim, numel, ravel
from perframe.functional.pieces import END
from perframe.functional.sizes import row_of, sizes_of
from perframe.functional.tensor import FunctionalTensor, of_array, to_tensor
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType

_KINDS = "an integer, a slice, None, ..., or an array or tensor of integers or bools"


def getitem(x: FunctionalTensor, index: Any) -> FunctionalTensor:
    """Return x[index]. Raises InputError for an index that does not fit, naming x and the index."""
    try:
        items = _complete(x, _items(index))
        return _advanced(x, items) if any(isinstance(item, FunctionalTensor) for item in items) else _basic(x, items)
    except InputError as error:
        raise InputError(f"{x}[{_shown(index)}]: {error}") from None


def with_items(x: FunctionalTensor, index: Any, value: FunctionalTensor) -> FunctionalTensor:
    """Return x with x[index] replaced by a value, which broadcasts. If items come twice, one of the values counts."""
    try:
        items = _complete(x, _items(index))
        if not any(isinstance(item, FunctionalTensor) for item in items):
            return _with_basic(x, items, value)
        _check_masks(x, [item for item in items if item is not None])
        by = [isinstance(item, (int, FunctionalTensor)) for item in items]
        views = [slice(None) if one else item for item, one in zip(items, by, strict=True)]
        rows = [item if one else slice(None) for item, one in zip(items, by, strict=True)]
        made = _with_rows(_basic(x, views), rows, value)
        return made if all(map(_is_whole_dim, views)) else _with_basic(x, views, made)
    except PerframeError as error:
        raise InputError(f"{x}[{_shown(index)}] = {value.spec}: {error}") from None


def _with_basic(x: FunctionalTensor, items: Sequence[Any], value: FunctionalTensor) -> FunctionalTensor:
    """Replace the items that numbers, slices and None name."""
    places = _basic(apply("Reshape", arange(numel(x)), sizes_of(x), allowzero=1), items)
    updates = _expanded(value, x.dtype, places.shape, sizes_of(places))
    made = apply("ScatterElements", ravel(x), ravel(places), ravel(updates), axis=0)
    return apply("Reshape", made, sizes_of(x), allowzero=1)


def _with_rows(x: FunctionalTensor, items: Sequence[Any], value: FunctionalTensor) -> FunctionalTensor:
    """Replace the rows that tensors and numbers name. A state of which runs replace rows is not copied: PyTorch exports
    such an assignment with the same layers.
    """
    axes, indices, adjoin = _indices(x, items)
    rank, rest = indices[0].ndim, [axis for axis in range(x.ndim) if axis not in axes]
    at = axes[0] if adjoin and rank else 0
    before, behind = rest[:at], rest[at:]
    shape = [*(x.shape[axis] for axis in before), *indices[0].shape, *(x.shape[axis] for axis in behind)]
    sizes = [*(sizes_of(x, axis, axis + 1) for axis in before), *([sizes_of(indices[0])] if rank else [])]
    sizes += [sizes_of(x, axis, axis + 1) for axis in behind]
    whole = apply("Concat", *sizes, axis=0) if sizes else ints()
    updates = _expanded(value, x.dtype, DynamicTensorShape(shape), whole)
    if at:
        updates = movedim(updates, list(range(at, at + rank)), list(range(rank)))
    front = list(range(len(axes)))
    return movedim(apply("ScatterND", movedim(x, axes, front), _tuples(indices), updates), front, axes)


def _expanded(
    value: FunctionalTensor, dtype: DataType, shape: DynamicTensorShape, sizes: FunctionalTensor
) -> FunctionalTensor:
    """Return a value broadcast to the shape of the items that it replaces."""
    updates = apply("Expand", cast(value, dtype), sizes)
    if not updates.shape.may_be(shape):
        raise InputError(f"{value.spec} does not fit the {shape} items")
    return updates


def _shown(index: Any) -> str:
    return ", ".join(map(_shown, index)) if isinstance(index, tuple) else f"{index!r:.80}"


def _items(index: Any) -> list[Any]:
    """Return an index's ints, slices, None, ... and int64 tensors. A mask becomes its places, one tensor a dim."""
    items: list[Any] = []
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or item is Ellipsis or isinstance(item, slice):
            items.append(item)
        elif isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_)):
            items.append(int(item))
        else:
            items += _tensors(item)
    if sum(item is Ellipsis for item in items) > 1:
        raise InputError("an index has at most one ...")
    return items


def _tensors(item: Any) -> list[FunctionalTensor]:
    if isinstance(item, (str, float, bytes)):
        raise InputError(f"an index is {_KINDS}, not {item!r}")
    tensor = to_tensor(np.array(item, np.int64) if isinstance(item, list) and not item else item)
    if tensor.dtype is DataType.BOOL:
        if not tensor.ndim:
            raise InputError("a single bool is not an index: use where(condition, a, b)")
        if tensor.is_constant and tensor.spec.value is not None:
            return [MaskPart(of_array(row), tensor.shape[at]) for at, row in enumerate(tensor.spec.value.nonzero())]
        found = apply("NonZero", tensor)
        rows = [apply("Gather", found, of_array(np.array(at)), axis=0) for at in range(tensor.ndim)]
        return [MaskPart(row, tensor.shape[at]) for at, row in enumerate(rows)]
    if tensor.dtype.numpy.kind not in "iu":
        raise InputError(f"an index is {_KINDS}, not {tensor.spec}")
    return [cast(tensor, DataType.INT64)]


class MaskPart(FunctionalTensor):
    """Where a mask holds, along one of its dims; `mask_size` is the size of that dim."""

    def __init__(self, source: FunctionalTensor, size: Any) -> None:
        super().__init__(source.value, source.graph, spec=source.spec)
        self.mask_size = size


def _complete(x: FunctionalTensor, items: list[Any]) -> list[Any]:
    """Return the items with slices for all dims that they do not name."""
    rank = x.ndim
    named = sum(item is not None and item is not Ellipsis for item in items)
    if named > rank:
        raise InputError(f"{named} dims are indexed, and there are {rank}")
    at = next((place for place, item in enumerate(items) if item is Ellipsis), len(items))
    return items[:at] + [slice(None)] * (rank - named) + items[at + 1 :]


def _bounds(item: int | slice, axis: int, x: FunctionalTensor) -> tuple[Any, Any, int]:
    """Return start, end and step of a dim, as a Slice layer takes them."""
    if isinstance(item, int):
        size = x.shape[axis]
        if isinstance(size, int) and not -size <= item < size:
            raise InputError(f"index {item} lies outside dim {axis} of size {size}")
        return item, (END if item == -1 else item + 1), 1
    step = 1 if item.step is None else _whole(item.step)
    if not isinstance(step, int) or step == 0:
        raise InputError("the step of a slice is an integer, not 0")
    first, last = (0, END) if step > 0 else (-1, -END)
    start = first if item.start is None else _whole(item.start)
    return start, (last if item.stop is None else _whole(item.stop)), step


def _is_whole_dim(item: Any) -> bool:
    """Whether an item is `:`. Slices cannot be compared: their bounds may be tensors."""
    return isinstance(item, slice) and item.start is None and item.stop is None and item.step is None


def _whole(bound: Any) -> Any:
    """Return the bound of a slice: a number, or a tensor of one number."""
    if isinstance(bound, FunctionalTensor):
        return bound
    try:
        return max(-END, min(END, operator.index(bound)))
    except TypeError:
        raise InputError(f"a bound of a slice is an integer or a tensor, not {bound!r}") from None


def _basic(x: FunctionalTensor, items: Sequence[Any]) -> FunctionalTensor:
    """Index with numbers, slices and None."""
    parts = [item for item in items if item is not None]
    cuts = [(axis, *_bounds(item, axis, x)) for axis, item in enumerate(parts) if not _is_whole_dim(item)]
    if cuts:
        axes, starts, ends, steps = zip(*cuts, strict=True)
        x = apply("Slice", x, row_of(starts), row_of(ends), ints(*axes), ints(*steps))
    numbers = [axis for axis, item in enumerate(parts) if isinstance(item, int)]
    if numbers:
        x = apply("Squeeze", x, ints(*numbers))
    kept = [item for item in items if not isinstance(item, int)]
    new = [place for place, item in enumerate(kept) if item is None]
    return apply("Unsqueeze", x, ints(*new)) if new else x


def _advanced(x: FunctionalTensor, items: Sequence[Any]) -> FunctionalTensor:
    """Index with tensors, whose shapes broadcast. A number beside tensors counts as a tensor, as in NumPy."""
    _check_masks(x, [item for item in items if item is not None])
    x = _basic(x, [slice(None) if isinstance(item, (int, FunctionalTensor)) else item for item in items])
    axes, indices, adjoin = _indices(x, items)
    if len(axes) == 1:
        return apply("Gather", x, indices[0], axis=axes[0])
    rank = indices[0].ndim
    made = apply("GatherND", movedim(x, axes, list(range(len(axes)))), _tuples(indices))
    return movedim(made, list(range(rank)), list(range(axes[0], axes[0] + rank))) if adjoin and rank else made


def _indices(x: FunctionalTensor, items: Sequence[Any]) -> tuple[list[int], list[FunctionalTensor], bool]:
    """Return the axes that tensors and numbers index, their indices in one shape, and whether the axes adjoin."""
    axes = [axis for axis, item in enumerate(items) if isinstance(item, (int, FunctionalTensor))]
    indices = [_index(items[axis], x, axis) for axis in axes]
    return axes, _broadcast(indices) if len(axes) > 1 else indices, axes == list(range(axes[0], axes[-1] + 1))


def _tuples(indices: Sequence[FunctionalTensor]) -> FunctionalTensor:
    rank = indices[0].ndim
    columns = [apply("Unsqueeze", index, ints(rank)) for index in indices]
    return apply("Concat", *columns, axis=rank) if len(columns) > 1 else columns[0]


def _check_masks(x: FunctionalTensor, parts: Sequence[Any]) -> None:
    for axis, item in enumerate(parts):
        size, have = item.mask_size if isinstance(item, MaskPart) else None, x.shape[axis]
        if isinstance(size, int) and isinstance(have, int) and size != have:
            raise InputError(f"a mask of size {size} does not fit dim {axis} of size {have}")


def _index(item: int | FunctionalTensor, x: FunctionalTensor, axis: int) -> FunctionalTensor:
    index, size = to_tensor(item), x.shape[axis]
    if index.spec.value is not None and isinstance(size, int) and index.spec.value.size:
        low, high = int(index.spec.value.min()), int(index.spec.value.max())
        if low < -size or high >= size:
            raise InputError(f"index {low if low < -size else high} lies outside dim {axis} of size {size}")
    return index


def _broadcast(indices: Sequence[FunctionalTensor]) -> list[FunctionalTensor]:
    """Return indices of one shape."""
    if all(index.spec.value is not None for index in indices):
        values: list[Any] = [index.spec.value for index in indices]
        try:
            return [of_array(np.array(value)) for value in np.broadcast_arrays(*values)]
        except ValueError:
            shapes = " and ".join(str(index.shape) for index in indices)
            raise InputError(f"indices of the shapes {shapes} do not broadcast") from None
    different = {tuple(index.shape) for index in indices}
    if len(different) == 1 and None not in next(iter(different)):
        return list(indices)
    rows = [index for index in indices if index.ndim == 1 and isinstance(index, MaskPart)]
    if len(rows) == len(indices):  # the parts of one mask are equally long
        return list(indices)
    whole = indices[0]
    for index in indices[1:]:
        whole = apply("Add", whole, index)
    return [apply("Expand", index, sizes_of(whole)) for index in indices]
