"""What is sure of a layer's sizes in all runs. A faster variant of a kernel may need such sizes: if one depended on an
open dim, another shape could need another variant, and a frame would wait for its compilation.
"""

from __future__ import annotations

from perframe.backends.protocol import LayerLike, ValueLike
from perframe.ir.sizes.partial import DynamicTensorShape


def shape_of(value: ValueLike | None) -> DynamicTensorShape | None:
    """The shape in all runs; None if it is not known."""
    return value.shape if value is not None and value.is_inferred and not value.is_named_only else None


def is_fixed(layer: LayerLike) -> bool:
    """Whether all sizes are the same in all runs."""
    shapes = [shape_of(value) for value in (*layer.inputs, *layer.outputs) if value is not None]
    return all(shape is not None and shape.is_static for shape in shapes)


def is_one(value: ValueLike | None) -> bool:
    """Whether the value is one number in all runs."""
    shape = shape_of(value)
    return shape is not None and all(dim == 1 for dim in shape)


def is_like(value: ValueLike | None, other: ValueLike | None) -> bool:
    """Whether two values have the same shape in all runs."""
    shape = shape_of(value)
    return shape is not None and None not in shape and shape == shape_of(other)


def last_dim(value: ValueLike | None) -> int | None:
    """The size of a row in all runs; None if it may differ."""
    shape = shape_of(value)
    return shape[-1] if shape and isinstance(shape[-1], int) else None


def has_whole_rows(value: ValueLike | None) -> bool:
    """Whether rows are whole texels in all runs."""
    row = last_dim(value)
    return row is not None and row > 0 and row % 4 == 0
