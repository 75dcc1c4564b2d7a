"""Operators that move elements: other shapes, orders, pieces, borders and repetitions."""

from __future__ import annotations

import numpy as np

from perframe.importers.litert.node import LiteRTNode
from perframe.importers.litert.table import operator, rows
from perframe.ir import Value
from perframe.tensor import DataType

END = 2**31 - 1


@operator("RESHAPE", "STABLEHLO_RESHAPE", moves=True)
def _reshape(node: LiteRTNode) -> Value:
    if node.has(1):
        shape = node.long(node.raw(1))
    else:
        wanted = node.option("NewShape", ()) or node.output_shape()
        shape = node.ints(*(-1 if dim is None else int(dim) for dim in wanted))
    known = node.known(shape)
    return node("Reshape", node.x(0), shape, allowzero=int(known is None or -1 not in known))


@operator("TRANSPOSE", moves=True)
def _transpose(node: LiteRTNode) -> Value:
    return node("Transpose", node.x(0), perm=tuple(node.axes(1)))


@operator("STABLEHLO_TRANSPOSE", moves=True)
def _stablehlo_transpose(node: LiteRTNode) -> Value:
    return node("Transpose", node.x(0), perm=tuple(node.option("Permutation", ())))


@operator("SQUEEZE", moves=True)
def _squeeze(node: LiteRTNode) -> Value:
    axes = node.option("SqueezeDims", ())
    return node("Squeeze", node.x(0), *([node.ints(*axes)] if axes else []))


@operator("EXPAND_DIMS", moves=True)
def _expand_dims(node: LiteRTNode) -> Value:
    return node("Unsqueeze", node.x(0), node.ints(*node.axes(1)))


@operator("PACK", moves=True)
def _pack(node: LiteRTNode) -> Value:
    axis = int(node.option("Axis"))
    return node("Concat", *(node("Unsqueeze", name, node.ints(axis)) for name in node.all()), axis=axis)


@operator("UNPACK", moves=True)
def _unpack(node: LiteRTNode) -> list[Value]:
    axis, count = int(node.option("Axis")), len(node.operation.outputs)
    parts = node.several(count, "Split", node.x(0), axis=axis, num_outputs=count)
    return [node("Squeeze", part, node.ints(axis)) for part in parts]


def _concat(node: LiteRTNode, axis: str) -> Value:
    return node("Concat", *node.all(), axis=int(node.option(axis)))


@operator("SPLIT", moves=True)
def _split(node: LiteRTNode) -> list[Value]:
    (axis,), count = node.axes(0), len(node.operation.outputs)
    return node.several(count, "Split", node.x(1), axis=axis, num_outputs=count)


@operator("SPLIT_V", moves=True)
def _split_v(node: LiteRTNode) -> list[Value]:
    (axis,), sizes, count = node.axes(2), node.axes(1), len(node.operation.outputs)
    if -1 in sizes:
        rest = node.sizes(node.x(0), axis)[0] - sum(sizes) - 1
        sizes = [rest if size == -1 else size for size in sizes]
    return node.several(count, "Split", node.x(0), node.ints(*sizes), axis=axis, num_outputs=count)


@operator("SLICE", moves=True)
def _slice(node: LiteRTNode) -> Value:
    x, begin, size = node.x(0), node.long(node.raw(1)), node.long(node.raw(2))
    sizes = node.known(size)
    end = node("Add", begin, size)
    if sizes is None or (sizes < 0).any():
        rest = node("Less", size, node.constant(0, np.int64))
        end = node("Where", rest, node.constant(END, np.int64), end)
    return node("Slice", x, begin, end)


@operator("STRIDED_SLICE", moves=True)
def _strided_slice(node: LiteRTNode) -> Value:
    """Each entry cuts a dim, adds one, drops one, or stands for all dims that no other entry names."""
    node.refuse("Offset")
    x, begin, end = node.x(0), node.long(node.raw(1)), node.long(node.raw(2))
    steps, rank = node.axes(3), node.rank(node.x(0))
    masks = {name: int(node.option(f"{name}Mask")) for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")}
    named = sum(not (masks["NewAxis"] | masks["Ellipsis"]) >> entry & 1 for entry in range(len(steps)))
    axis, chosen, added, dropped, made = 0, list[tuple[int, int]](), list[int](), list[int](), 0
    for entry in range(len(steps)):
        if masks["Ellipsis"] >> entry & 1:
            axis, made = axis + rank - named, made + rank - named
        elif masks["NewAxis"] >> entry & 1:
            added.append(made)
            made += 1
        else:
            chosen.append((entry, axis))
            if masks["ShrinkAxis"] >> entry & 1:
                dropped.append(axis)
            else:
                made += 1
            axis += 1
    x = _cut(node, x, begin, end, steps, chosen, masks)
    if dropped:
        x = node("Squeeze", x, node.ints(*dropped))
    return node("Unsqueeze", x, node.ints(*added)) if added else x


def _cut(
    node: LiteRTNode,
    x: Value,
    begin: Value,
    end: Value,
    steps: list[int],
    chosen: list[tuple[int, int]],
    masks: dict[str, int],
) -> Value:
    """Return the slice of the chosen (entry, axis) pairs."""
    if not chosen:
        return x
    bounds = []
    for name, bound, mask in (("begin", begin, masks["Begin"]), ("end", end, masks["End"])):
        known = node.known(bound)
        parts: list[int | None] = []
        for entry, _ in chosen:
            backward, shrinks = steps[entry] < 0, masks["ShrinkAxis"] >> entry & 1
            if shrinks and name == "end":  # one element, wherever it begins
                start = node.known(begin)
                if start is None:
                    raise NotImplementedError("the index of a dropped dim is not a constant")
                parts.append(END if int(start[entry]) == -1 else int(start[entry]) + 1)
            elif mask >> entry & 1 and not shrinks:
                parts.append((END if name == "begin" else -END) if backward else (0 if name == "begin" else END))
            else:
                parts.append(None if known is None else int(known[entry]))
        if None not in parts:
            bounds.append(node.ints(*(part for part in parts if part is not None)))
            continue
        pieces = [
            node("Slice", bound, node.ints(entry), node.ints(entry + 1)) if part is None else node.ints(part)
            for (entry, _), part in zip(chosen, parts, strict=True)
        ]
        bounds.append(pieces[0] if len(pieces) == 1 else node("Concat", *pieces, axis=0))
    axes = node.ints(*(axis for _, axis in chosen))
    jumps = [1 if masks["ShrinkAxis"] >> entry & 1 else steps[entry] for entry, _ in chosen]
    return node("Slice", x, *bounds, axes, node.ints(*jumps))


@operator("STABLEHLO_SLICE", moves=True)
def _stablehlo_slice(node: LiteRTNode) -> Value:
    starts, ends, steps = (node.option(name, ()) for name in ("StartIndices", "LimitIndices", "Strides"))
    return node(
        "Slice", node.x(0), node.ints(*starts), node.ints(*ends), node.ints(*range(len(starts))), node.ints(*steps)
    )


def _repeat(node: LiteRTNode, layer: str) -> Value:
    return node(layer, node.x(0), node.long(node.raw(1)))


@operator("STABLEHLO_BROADCAST_IN_DIM", moves=True)
def _broadcast_in_dim(node: LiteRTNode) -> Value:
    axes, wanted = node.option("BroadcastDimensions", ()), node.output_shape()
    if None in wanted or sorted(axes) != list(axes):
        raise NotImplementedError(f"a broadcast to {wanted} along {axes} is not supported")
    sizes = [1] * len(wanted)
    for axis, size in zip(axes, node.sizes(node.x(0), *range(len(axes))), strict=True):
        sizes[axis] = size
    return node("Expand", node("Reshape", node.x(0), node.ints(*sizes)), node.ints(*(int(dim or 0) for dim in wanted)))


@operator("PAD", "PADV2", moves=True)
def _pad(node: LiteRTNode) -> Value:
    """A quantized tensor is padded with its zero, which need not be stored as 0."""
    x = node.x(0)
    value = node("Reshape", node.x(2), node.ints()) if node.operation.code == "PADV2" else _zero(node, x)
    return node("Pad", x, _amounts(node), value)


def _zero(node: LiteRTNode, x: Value) -> Value | None:
    """Return the zero of a quantized tensor; None stands for 0."""
    scales = node.quantization(0) if node.exact else None
    return None if scales is None else node.constant(int(scales.zero[0]), x.spec.dtype.numpy)


def _amounts(node: LiteRTNode) -> Value:
    """Return the pads, of shape (rank, 2) in the file, as all begins and then all ends."""
    pads = node.long(node.raw(1))
    known = node.known(pads)
    if known is not None:
        return node.ints(*known.reshape(-1, 2).T.reshape(-1))
    return node("Reshape", node("Transpose", pads, perm=(1, 0)), node.ints(-1))


@operator("MIRROR_PAD", moves=True)
def _mirror_pad(node: LiteRTNode) -> Value:
    if node.option("Mode") == 0:
        return node("Pad", node.x(0), _amounts(node), mode="reflect")
    x = node.x(0)  # symmetric: the border is repeated too
    for axis, (before, after) in enumerate(node.value(1).reshape(-1, 2).tolist()):
        if before or after:
            (size,) = node.sizes(x, axis)
            if not 0 <= min(before, after) <= max(before, after) <= size:
                raise ValueError(f"pads of {before} and {after} on a dim of {size}")
            node.check_room(size + before + after)
            x = node("Gather", x, node.ints(*np.pad(np.arange(size), (before, after), "symmetric")), axis=axis)
    return x


@operator("STABLEHLO_PAD")
def _stablehlo_pad(node: LiteRTNode) -> Value:
    low, high, inner = (
        node.option(f"{name}Padding{end}", ()) for name, end in (("Edge", "Low"), ("Edge", "High"), ("Interior", ""))
    )
    if any(inner) or min((*low, *high), default=0) < 0:
        raise NotImplementedError(f"pads {low} and {high} with {inner} between elements are not supported")
    return node("Pad", node.x(0), node.ints(*low, *high), node("Reshape", node.x(1), node.ints()))


def _blocks(node: LiteRTNode, layer: str) -> Value:
    return node.last(node(layer, node.first(node.x(0)), blocksize=int(node.option("BlockSize"))))


rows({"CONCATENATION": "Axis", "STABLEHLO_CONCATENATE": "Dimension"}, _concat, __name__, moves=True)
rows({"TILE": "Tile", "BROADCAST_TO": "Expand"}, _repeat, __name__, moves=True)
rows({"SPACE_TO_DEPTH": "SpaceToDepth", "DEPTH_TO_SPACE": "DepthToSpace"}, _blocks, __name__, moves=True)


@operator("REVERSE_V2", moves=True)
def _reverse(node: LiteRTNode) -> Value:
    axes = node.axes(1)
    ends = [node.ints(*(value for _ in axes)) for value in (-1, -END)]
    return node("Slice", node.x(0), *ends, node.ints(*axes), node.ints(*(-1 for _ in axes)))


@operator("REVERSE_SEQUENCE", moves=True)
def _reverse_sequence(node: LiteRTNode) -> Value:
    batch, time = int(node.option("BatchDim")), int(node.option("SeqDim"))
    return node("ReverseSequence", node.x(0), node.long(node.raw(1)), batch_axis=batch, time_axis=time)


@operator("FILL", moves=True)
def _fill(node: LiteRTNode) -> Value:
    return node("Expand", node("Reshape", node.x(1), node.ints()), node.long(node.raw(0)))


@operator("ZEROS_LIKE", moves=True)
def _zeros_like(node: LiteRTNode) -> Value:
    x = node.x(0)
    return node("ConstantOfShape", node("Shape", x), value=np.zeros(1, x.spec.dtype.numpy))


@operator("SHAPE")
def _shape(node: LiteRTNode) -> Value:
    return node.cast(node("Shape", node.raw(0)), node.output_dtype())


@operator("RANK")
def _rank(node: LiteRTNode) -> Value:
    return node.constant(node.rank(node.raw(0)), np.int32)


@operator("RANGE")
def _range(node: LiteRTNode) -> Value:
    return node("Range", *(node("Reshape", name, node.ints()) for name in node.all()))


@operator("STABLEHLO_IOTA")
def _iota(node: LiteRTNode) -> Value:
    shape, axis = node.output_shape(), int(node.option("IotaDimension"))
    if None in shape:
        raise NotImplementedError(f"its output's shape {shape} is not known")
    sizes = [int(dim or 0) for dim in shape]
    node.check_room(sizes[axis])
    line = np.arange(sizes[axis], dtype=np.int64).reshape([-1 if at == axis else 1 for at in range(len(sizes))])
    return node.cast(node("Expand", node.constant(line, np.int64), node.ints(*sizes)), node.output_dtype())


@operator("BROADCAST_ARGS")
def _broadcast_args(node: LiteRTNode) -> Value:
    """The shape to which two shapes broadcast: of each pair of dims the one that is not 1."""
    a, b = (node.long(node.raw(index)) for index in (0, 1))
    (first,), (second,) = node.sizes(a, 0), node.sizes(b, 0)
    rank, one = max(first, second), node.constant(1, np.int64)
    a, b = (
        name if size == rank else node("Pad", name, node.ints(rank - size, 0), one)
        for name, size in ((a, first), (b, second))
    )
    return node.cast(node("Where", node("Equal", a, one), b, a), node.output_dtype())


@operator("SPACE_TO_BATCH_ND", moves=True)
def _space_to_batch(node: LiteRTNode) -> Value:
    blocks, pads = node.axes(1), node.value(2).reshape(-1, 2)
    x, count = node.x(0), len(blocks)
    rank = node.rank(x)
    around = np.zeros((rank, 2), np.int64)
    around[1 : 1 + count] = pads
    x = node("Pad", x, node.ints(*around.T.reshape(-1)), _zero(node, x))
    sizes = node.sizes(x, *range(1, rank))
    parts = [number for size, block in zip(sizes, blocks, strict=False) for number in (size // block, block)]
    if any(size % block for size, block in zip(sizes, blocks, strict=False)):
        raise ValueError(f"blocks of {blocks} do not divide {sizes[:count]}")
    x = node("Reshape", x, node.ints(-1, *parts, *sizes[count:]))
    inner = [2 + 2 * axis for axis in range(count)]
    outer = [1 + 2 * axis for axis in range(count)]
    x = node("Transpose", x, perm=(*inner, 0, *outer, *range(1 + 2 * count, rank + count)))
    made = [size // block for size, block in zip(sizes, blocks, strict=False)]
    return node("Reshape", x, node.ints(-1, *made, *sizes[count:]))


@operator("BATCH_TO_SPACE_ND", moves=True)
def _batch_to_space(node: LiteRTNode) -> Value:
    blocks, crops = node.axes(1), node.value(2).reshape(-1, 2)
    x, count = node.x(0), len(blocks)
    rank = node.rank(x)
    sizes = node.sizes(x, *range(1, rank))
    x = node("Reshape", x, node.ints(*blocks, -1, *sizes))
    pairs = [axis for at in range(count) for axis in (count + 1 + at, at)]
    x = node("Transpose", x, perm=(count, *pairs, *range(2 * count + 1, rank + count)))
    whole = [size * block for size, block in zip(sizes, blocks, strict=False)]
    x = node("Reshape", x, node.ints(-1, *whole, *sizes[count:]))
    if not crops.any():
        return x
    ends = [size - int(after) for size, (_, after) in zip(whole, crops, strict=True)]
    return node("Slice", x, node.ints(*crops[:, 0]), node.ints(*ends), node.ints(*range(1, 1 + count)))


@operator("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def _resize(node: LiteRTNode) -> Value:
    bilinear = node.operation.code == "RESIZE_BILINEAR"
    corners, centers = bool(node.option("AlignCorners")), bool(node.option("HalfPixelCenters"))
    how = "align_corners" if corners else "half_pixel" if centers else "asymmetric"
    rounding = "round_prefer_ceil" if corners or centers else "floor"
    x = node.first(node.x(0))
    sizes = node.cast(node.raw(1), DataType.INT64)
    attributes = {"mode": "linear" if bilinear else "nearest", "nearest_mode": rounding, "axes": (2, 3)}
    return node.last(node("Resize", x, None, None, sizes, coordinate_transformation_mode=how, **attributes))
