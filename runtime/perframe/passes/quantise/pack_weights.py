"""Products and tables keep weights of 8 bits or less; kernels read them as floats.

A Gather reads rows of a table. The weights are dequantized constants, with a scale for each column, for each block of a
column, or for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.report import refuse
from perframe.layers.packed import WORD, in_panels, packed
from perframe.passes.fuse.fuse_transposes import turns
from perframe.passes.match import all_float32, constant_of, may_fold
from perframe.safety.records import dataclass
from perframe.tensor import DataType

# the bits of a code, and what is subtracted to make it signed
CODES = {
    DataType.INT2: (4, 0),
    DataType.UINT2: (4, 0),
    DataType.INT4: (4, 0),
    DataType.UINT4: (4, 8),
    DataType.INT8: (8, 0),
    DataType.UINT8: (8, 128),
}


@dataclass(frozen=True)
class _SmallWeights:
    """Quantized weights: codes (depth, columns), and scales and zero points (blocks, columns)."""

    codes: NDArray[Any]
    scales: NDArray[Any]
    zeros: NDArray[Any] | None
    bits: int
    block: int


@dataclass(frozen=True)
class _Packed:
    """The constants and attributes of a packed product."""

    constants: tuple[Value, Value, Value | None]
    attributes: dict[str, int]


def run(model: Model, evaluate: Evaluate) -> int:
    """Rewrite products, and return their number."""
    changed, known = 0, dict[tuple[Value, bool], _Packed | str]()
    for layer in model.walk():
        source, turned = _source(layer)
        if source is None:
            continue
        reason = _why_not(layer)
        if reason is None:
            key = source.output, turned
            if key not in known:
                known[key] = _packed(model, source, turned)
            made = known[key]
            reason = made if isinstance(made, str) else _rewrite(model, layer, made)
        if reason is None:
            changed += 1
        else:
            refuse(layer, reason)
    return changed


def _source(layer: Layer) -> tuple[Layer | None, bool]:
    """Return the layer that dequantizes a layer's weights, and whether these are (columns, depth)."""
    if layer.op not in ("MatMul", "Gemm", "Gather"):
        return None, False
    reads_table = layer.op == "Gather"
    made = layer.input(0 if reads_table else 1).producer
    turned = reads_table or bool(layer.transB)
    if made is not None and made.op == "Transpose" and not made.channels_last and turns(made):
        made, turned = made.input(0).producer, not turned
    if made is None or made.op != "DequantizeLinear" or made.epilogue or made.output.is_output:
        return None, turned
    return made, turned


def _why_not(layer: Layer) -> str | None:
    """Return why a layer cannot read packed weights, whatever they are."""
    if layer.op == "Gather":
        first, real = layer.axis in (0, -2), layer.output.spec.dtype is DataType.FLOAT32
        return None if first and real else "it does not read rows of float32"
    if layer.transA:
        return "its left operand is transposed"
    if not all_float32(layer) or layer.input(0).constant is not None:
        return "it is not a product of float32 values by weights"
    if layer.op == "Gemm" and (layer.alpha != 1 or layer.beta != 1):
        return "its operands have factors"
    return None


def _packed(model: Model, source: Layer, turned: bool) -> _Packed | str:
    """Return the constants for dequantized weights, or why there are none."""
    weights = _weights(source, turned)
    if isinstance(weights, str):
        return weights
    depth, columns = weights.codes.shape
    name = source.output.name
    zeros = None if weights.zeros is None else packed(weights.zeros, weights.bits)
    constants = (
        model.add_constant(f"{name}/packed", packed(weights.codes, weights.bits)),
        model.add_constant(f"{name}/scales", in_panels(weights.scales.astype(np.float32))),
        None if zeros is None else model.add_constant(f"{name}/zeros", zeros),
    )
    return _Packed(constants, {"depth": depth, "columns": columns, "bits": weights.bits, "block": weights.block})


def _weights(source: Layer, turned: bool) -> _SmallWeights | str:
    codes, scales, zeros = (constant_of(value) for value in (source.x, source.scale, source.zero_point))
    if codes is None or scales is None or (source.zero_point is not None and zeros is None):
        return "its weights are not constant"
    if codes.ndim != 2 or not codes.size:
        return f"its weights have the shape {codes.shape}"
    kind = DataType.of(codes.dtype)
    if kind not in CODES or scales.dtype != np.float32:
        return f"no kernel reads weights of {kind} with scales of {scales.dtype}"
    if not may_fold(scales):
        return "its scales are too large or too small to be multiplied after the sum"
    axis, depth_axis = source.axis % 2, int(turned)
    shape, block = codes.shape, source.block_size or codes.shape[depth_axis]
    if source.block_size and axis != depth_axis:
        return "a block holds weights of several columns"
    if not source.block_size and scales.size > 1:
        if axis == depth_axis:
            return "a scale belongs to a row of its weights"
        wanted = (shape[axis], 1) if turned else (1, shape[axis])
    else:
        blocks = -(-shape[depth_axis] // block)
        wanted = (shape[0], blocks) if turned else (blocks, shape[1])
    bits, middle = CODES[kind]
    if block % (WORD // bits) and block < shape[depth_axis]:
        return f"its blocks of {block} weights do not fill whole words"

    def by_depth(values: NDArray[Any], less: int = 0, shape: tuple[int, ...] = shape) -> NDArray[Any]:
        whole = values if values.dtype == np.float32 else (values.astype(np.int16) - less).astype(np.int8)
        whole = np.broadcast_to(whole if whole.ndim == 2 else whole.reshape(wanted if whole.size > 1 else ()), shape)
        return whole.T if turned else whole

    points = np.zeros((), codes.dtype) if zeros is None else zeros
    offsets = by_depth(points, middle, wanted)
    zero_points = offsets if offsets.any() else None
    return _SmallWeights(by_depth(codes, middle), by_depth(scales, 0, wanted), zero_points, bits, block)


def _rewrite(model: Model, layer: Layer, made: _Packed) -> str | None:
    """Let a layer read packed weights, or return why it does not."""
    words, scales, zeros = made.constants
    if layer.op == "Gather":
        layer.inputs = [words, scales, layer.input(1), *([] if zeros is None else [zeros])]
        layer.op, layer.attributes = "PackedGather", dict(made.attributes)
        return None
    columns = made.attributes["columns"]
    bias = layer.inputs[2] if layer.inputs[2:] else None
    if bias is not None:
        values = bias.constant
        if values is None or values.size not in (1, columns) or (values.ndim and values.shape[-1] != values.size):
            return "its addend does not have a constant for each column"
        row = np.ascontiguousarray(np.broadcast_to(values.reshape(-1), columns))
        bias = model.add_constant(f"{layer.name}/bias", row)
    rounds = int(layer.op == "MatMul" and layer.rounds)
    layer.op, layer.attributes = "PackedMatMul", {**made.attributes, "rounds": rounds}
    optional = [zeros] if bias is None else [zeros, bias]
    layer.inputs = [layer.input(0), words, scales, *([] if optional == [None] else optional)]
    return None
