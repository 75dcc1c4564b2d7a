"""Products of matrices and vectors, and attention."""

from __future__ import annotations

import math
from typing import Any

from perframe.errors import InputError
from perframe.functional.calls import apply, cast, function, in_floats, ints, number, together
from perframe.functional.elementwise import add, mul
from perframe.functional.moving import repeat_interleave, transpose, unsqueeze
from perframe.functional.reductions import sum_
from perframe.functional.sizes import sizes_of
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor
from perframe.tensor import DataType


def _with_rank(what: str, rank: int, *values: Given) -> list[FunctionalTensor]:
    tensors = together(*values)
    for x in tensors:
        if x.ndim != rank:
            raise InputError(f"{what} takes tensors of {rank} dim(s), not {x.spec}")
    return tensors


@function
def matmul(input: Given, other: Given) -> FunctionalTensor:
    """Return the matrix product; dims ahead of the last two broadcast, and a row counts as a vector."""
    return apply("MatMul", *together(input, other))


@function
def mm(input: Given, mat2: Given) -> FunctionalTensor:
    """Return the product of two matrices."""
    return apply("MatMul", *_with_rank("mm", 2, input, mat2))


@function
def bmm(input: Given, mat2: Given) -> FunctionalTensor:
    """Return the products of two stacks of matrices."""
    return apply("MatMul", *_with_rank("bmm", 3, input, mat2))


@function
def mv(input: Given, vec: Given) -> FunctionalTensor:
    """Return the product of a matrix and a vector."""
    return apply("MatMul", *together(input, vec))


@function
def dot(input: Given, tensor: Given) -> FunctionalTensor:
    """Return the product of two vectors: one number."""
    return apply("MatMul", *_with_rank("dot", 1, input, tensor))


@function
def inner(input: Given, other: Given) -> FunctionalTensor:
    """Return the sums of products along the last dims of both."""
    a, b = together(input, other)
    if not a.ndim or not b.ndim:
        return mul(a, b)
    letters = "abcdefghijklmnopqrstuvwxyz"
    first, second = letters[: a.ndim - 1], letters[a.ndim - 1 : a.ndim + b.ndim - 2]
    return apply("Einsum", a, b, equation=f"{first}z,{second}z->{first}{second}")


@function
def outer(input: Given, vec2: Given) -> FunctionalTensor:
    """Return the products of each element of one vector with each of another."""
    a, b = _with_rank("outer", 1, input, vec2)
    return mul(unsqueeze(a, 1), b)


@function
def addmm(input: Given, mat1: Given, mat2: Given, *, beta: float = 1, alpha: float = 1) -> FunctionalTensor:
    """Return beta * input + alpha * (mat1 @ mat2)."""
    return _added(input, mm(mat1, mat2), beta, alpha)


@function
def baddbmm(input: Given, batch1: Given, batch2: Given, *, beta: float = 1, alpha: float = 1) -> FunctionalTensor:
    """Return beta * input + alpha * (batch1 @ batch2), for each matrix of a stack. Sentis' AddBMM is this."""
    return _added(input, bmm(batch1, batch2), beta, alpha)


@function
def addbmm(input: Given, batch1: Given, batch2: Given, *, beta: float = 1, alpha: float = 1) -> FunctionalTensor:
    """Return beta * input + alpha * the sum of (batch1 @ batch2) over the stack. Sentis' AddBMM is `baddbmm`."""
    products = bmm(batch1, batch2)
    return _added(input, cast(sum_(products, 0), products.dtype), beta, alpha)


def _added(input: Given, product: FunctionalTensor, beta: float, alpha: float) -> FunctionalTensor:
    return add(input if beta == 1 else mul(input, beta), product, alpha=alpha)


@function
def linear(input: Given, weight: Given, bias: Given | None = None) -> FunctionalTensor:
    """Return input @ weight.T + bias; the weight is (outputs, inputs)."""
    x, w = together(input, weight)
    if w.ndim not in (1, 2):
        raise InputError(f"the weight is (outputs, inputs), not {w.spec}")
    made = apply("MatMul", x, transpose(w, 0, 1) if w.ndim == 2 else w)
    return made if bias is None else add(made, bias)


@function
def einsum(equation: str, *operands: Any) -> FunctionalTensor:
    """Return sums of products by Einstein's notation, as in einsum("bij,bjk->bik", x, y)."""
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return apply("Einsum", *together(*given), equation=equation)


@function
def det(input: Given) -> FunctionalTensor:
    """Return the determinants of square matrices."""
    return apply("Det", in_floats(input))


@function
def scaled_dot_product_attention(
    query: Given,
    key: Given,
    value: Given,
    attn_mask: Given | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> FunctionalTensor:
    """Return softmax(query @ key.T * scale + mask) @ value; a mask of bools tells what takes part."""
    if dropout_p:
        raise InputError("models here do not train: dropout_p is 0")
    if is_causal and attn_mask is not None:
        raise InputError("give attn_mask or is_causal, and not both")
    q, k, v = together(query, key, value)
    if enable_gqa:
        heads, kept = q.shape[-3], k.shape[-3]
        if not isinstance(heads, int) or not isinstance(kept, int) or heads % kept:
            raise InputError(f"{heads} heads of the query are not a multiple of {kept} heads of the key")
        k, v = (repeat_interleave(x, heads // kept, -3) for x in (k, v))
    depth = q.shape[-1]
    if scale is None and not isinstance(depth, int):
        raise InputError(f"the last dim of {q.spec} is unknown: give the scale")
    factor = 1 / math.sqrt(depth) if scale is None else scale  # type: ignore[arg-type]
    weights = mul(apply("MatMul", q, transpose(k, -2, -1)), factor)
    mask = _causal(weights) if is_causal else None if attn_mask is None else to_tensor(attn_mask)
    if mask is not None and mask.dtype is DataType.BOOL:
        weights = apply("Where", mask, weights, number(-math.inf, weights))
    elif mask is not None:
        weights = add(weights, mask)
    return apply("MatMul", apply("Softmax", weights, axis=-1), v)


def _causal(weights: FunctionalTensor) -> FunctionalTensor:
    """Return where a key is not later than the query."""
    rows, columns = sizes_of(weights, -2, -1), sizes_of(weights, -1)
    counts = []
    for row in (rows, columns):
        count = apply("Reshape", row, ints())
        counts.append(apply("Range", number(0, count), count, number(1, count)))
    return apply("GreaterOrEqual", unsqueeze(counts[0], 1), counts[1])
