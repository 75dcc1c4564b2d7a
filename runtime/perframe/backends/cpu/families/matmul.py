"""Matrix products on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels.fields import BATCH_STEPS, MATMUL
from perframe.backends.cpu.lowering import gemm
from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.cpu.lowering.lowering import all_float32, epilogue, float_array, step, strided_copy
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.geometry import row_major
from perframe.ir.sizes.size import specialized
from perframe.layers.matmul import Product

FEW_ROWS = 4  # of a product whose right operand is no constant: packing that would cost more than it saves


def _matrices(array: Any, batch: Sequence[int], rows: int, columns: int, strides: Sequence[int]) -> Any:
    flat = np.ascontiguousarray(array).reshape(-1)
    if not flat.size or not rows or not columns or 0 in batch:
        return np.zeros((*batch, rows, columns), flat.dtype)
    return np.lib.stride_tricks.as_strided(
        flat, (*batch, rows, columns), tuple(step * flat.itemsize for step in strides)
    )


def _product(left: Any, right: Any, depth: int) -> Any:
    """NumPy's matmul; integers in float64 where that is exact, because only floats have fast products."""
    if left.dtype.kind not in "iu":
        wide = accumulator(left.dtype)
        return np.matmul(left.astype(wide, copy=False), right.astype(wide, copy=False))
    largest = [max(abs(int(x.min())), abs(int(x.max()))) if x.size else 0 for x in (left, right)]
    if largest[0] * largest[1] * depth >= 2**53:
        return np.matmul(left, right)
    return np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)


def compute(layer: LayerLike, form: Product, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """NumPy's matmul of strided matrices."""
    a, b, bias = inputs
    left = _matrices(a, form.batch, form.rows, form.depth, form.a_strides)
    right = _matrices(b, form.batch, form.depth, form.columns, form.b_strides)
    result = _product(left, right, form.depth)
    if form.alpha != 1.0:
        result = result * result.dtype.type(form.alpha)
    if bias is not None:
        result = result + bias.astype(result.dtype) * result.dtype.type(form.beta)
    return [result]


def lower(
    layer: LayerLike, form: Product, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """float32: over packed panels, or row by row where packing would not pay."""
    a, b, bias = inputs
    if a is None or b is None or not all_float32(inputs):
        return None
    copied: list[NativeStep] = []
    if form.a_strides[-1] != 1 and form.depth and form.rows > FEW_ROWS and form.columns > 1:
        a_in_rows, form_in_rows, copied = _in_rows(layer, form, a, scratch)
        packed = _over_panels(layer, form_in_rows, (a_in_rows, b, bias), outputs[0], scratch)
    else:
        packed = _over_panels(layer, form, (a, b, bias), outputs[0], scratch)
    if not b.is_constant:  # the number of rows decides, and another shape may have another
        jit.kernel("matmul", jit.epilogue_text(layer.epilogue))
        gemm.finishing(layer)
        for name in ("gemm", "gemm.pack"):
            jit.kernel(name)
    if packed:
        return [*copied, *packed]
    return [_by_rows(layer, form, a, b, bias, outputs[0])]


def lower_rounded(
    layer: LayerLike, form: Product, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """Products of bfloat16 with constant weights."""
    a, b, bias = inputs
    if a is None or b is None or not b.is_constant or not all_float32(inputs):
        return None
    return _over_panels(layer, form, (a, b, bias), outputs[0], scratch, rounds=True)


def _in_rows(
    layer: LayerLike, form: Product, a: Operand, scratch: Scratch
) -> tuple[Operand, Product, list[NativeStep]]:
    """A copy of a transposed left operand with contiguous rows, the product of it, and the step that copies."""
    *steps, row, element = form.a_strides
    kept = [axis for axis, stride in enumerate(steps) if stride]
    shape = (*(form.batch[axis] for axis in kept), form.rows, form.depth)
    made = row_major(shape)
    batch = [0] * len(steps)
    for axis, stride in zip(kept, made, strict=False):
        batch[axis] = stride
    copy = scratch((math.prod(shape),), a.dtype)
    step_of_copy = strided_copy(layer, a, copy, shape, (*(steps[axis] for axis in kept), row, element), made)
    return copy, replace(form, a_strides=(*batch, *made[-2:])), [step_of_copy]


def _by_rows(layer: LayerLike, form: Product, a: Operand, b: Operand, bias: Operand | None, out: Operand) -> NativeStep:
    text, parameters = epilogue(layer)
    scales = float_array((form.alpha, form.beta))
    addresses = {"parameters": parameters.ctypes.data, "scales": scales.ctypes.data}
    sizes = {"rows": form.rows, "columns": form.columns, "depth": form.depth, "rank": len(form.batch)}
    numbers = MATMUL.numbers(**addresses, has_bias=int(bias is not None), **sizes)
    numbers += [*form.batch, *form.a_strides, *form.b_strides, *form.bias_strides]
    operands = MATMUL.operands(a=a, b=b, bias=a if bias is None else bias, out=out)
    return step(layer, "matmul", operands, numbers, form.batches * form.rows, text, [parameters, scales])


def _over_panels(
    layer: LayerLike,
    form: Product,
    operands: tuple[Operand, Operand, Operand | None],
    out: Operand,
    scratch: Scratch,
    rounds: bool = False,
) -> list[NativeStep] | None:
    """Steps for contiguous rows of a; b is packed once where it is constant, for each run else."""
    a, b, bias = operands
    constant = b.is_constant
    if form.a_strides[-1] != 1 or not form.depth or form.beta != 1.0 or not (constant or form.rows > FEW_ROWS):
        return None
    if form.alpha != 1.0 and not constant:
        return None
    if bias is not None and form.bias_strides not in ((0, 1), (form.columns, 1)):
        return None
    addend = bias if bias is not None and form.bias_strides != (0, 1) else None
    if addend is not None and form.batch:
        return None
    row = bias if addend is None else None
    batch, a_steps, b_steps = form.batch, form.a_strides[:-2], form.b_strides[:-2]
    rows, pitch = form.rows, form.a_strides[-2]
    merged = None if any(b_steps) else _merged_rows(form)
    if merged is not None:
        batch, a_steps, b_steps, rows = (), (), (), merged
    size = form.depth * gemm.padded(form.columns)
    kept = [axis for axis, step in enumerate(b_steps) if step]
    strides = dict(zip(kept, row_major([batch[axis] for axis in kept]), strict=True))
    product = gemm.Multiplication(
        images=1,
        columns=form.columns,
        x_pitch=pitch,
        out_pitch=form.columns,
        addend_pitch=form.columns,
        window=gemm.window_of_rows(rows),
        channels=form.depth,
        batch=batch,
        steps=BATCH_STEPS.operands(
            x=a_steps,
            weights=tuple(strides.get(axis, 0) * size for axis in range(len(batch))),
            bias=(0,) * len(batch),
            out=tuple(step * rows * form.columns for step in row_major(batch)),
            addend=(0,) * len(batch),
        ),
    )
    made: list[NativeStep] = []
    if constant:
        key = f"panels of {form.b_strides} {form.columns} {form.depth} {form.alpha}"
        repeats = [specialized(batch[k]) for k in kept]
        matrices = partial(_constant_matrices, form=form, batch=repeats)
        if rounds:
            from perframe.backends.cpu.lowering import bfloat_product  # late: few workers round

            if not bfloat_product.suits(product):
                return None
            return bfloat_product.multiply(layer, product, a, (b, key, matrices), row, addend, out, scratch)
        sizes = specialized(form.depth), specialized(form.columns)
        packed = b.derived(key, gemm.panels_of(matrices, math.prod(repeats), *sizes))
    else:
        packed = scratch((math.prod(batch[k] for k in kept), size), b.dtype)
        of_batch = ([batch[axis] for axis in kept], [b_steps[axis] for axis in kept])
        made = [gemm.pack_step(layer, b, packed, form.depth, form.columns, form.b_strides[-2:], *of_batch)]
    return [*made, gemm.multiply(layer, product, a, packed, row, addend, out)]


def _merged_rows(form: Product) -> int | None:
    """The rows of all the batch, where they follow each other in a; None where they do not."""
    expected = form.rows * form.a_strides[-2]
    for size, stride in zip(reversed(form.batch), reversed(form.a_strides[:-2]), strict=True):
        if size > 1 and stride != expected:
            return None
        expected *= size
    return form.rows * form.batches


def _constant_matrices(value: Any, form: Product, batch: Sequence[int]) -> Any:
    """b as (batch..., depth, columns), scaled by alpha."""
    flat = np.ascontiguousarray(value).reshape(-1)
    strides = [step for step in form.b_strides[:-2] if step] + list(form.b_strides[-2:])
    shape = (*batch, form.depth, form.columns)
    matrices = np.lib.stride_tricks.as_strided(flat, shape, [step * flat.itemsize for step in strides])
    return matrices if form.alpha == 1.0 else matrices * np.float32(form.alpha)
