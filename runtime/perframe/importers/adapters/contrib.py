"""Adapters of com.microsoft: products, activations and small operators.

onnxruntime's tools and some exporters write operators of this domain.
"""

from __future__ import annotations

import numpy as np

from perframe.importers.adapters import adapter
from perframe.importers.adapters.chain import Chain
from perframe.importers.onnx_node import Node, constant
from perframe.ir import Value
from perframe.tensor import DataType

MICROSOFT = "com.microsoft::"
LARGEST_INVERSE = 8  # the side of a matrix; its inverse takes one minor for each element


def _activate(chain: Chain, x: Value, kind: str, alpha: float | None, beta: float | None) -> Value:
    """Add an activation by its name, with the numbers that it takes."""
    given = {name: value for name, value in (("alpha", alpha), ("beta", beta)) if value is not None}
    if kind in ("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "HardSwish", "Gelu"):
        return chain(kind, x)
    if kind in ("LeakyRelu", "Elu", "ThresholdedRelu"):
        return chain(kind, x, **{name: value for name, value in given.items() if name == "alpha"})
    if kind == "HardSigmoid":
        return chain(kind, x, **given)
    if kind == "Clip" and alpha is not None and beta is not None:
        like = chain.node.inputs[0]
        return chain("Clip", x, chain.number(alpha, like), chain.number(beta, like))
    if kind:
        raise NotImplementedError(f"activation={kind!r} is not supported")
    return x


@adapter(f"{MICROSOFT}FusedConv")
def _fused_conv(node: Node) -> list[Node]:
    """A convolution, plus Z, followed by an activation."""
    chain, attributes = Chain(node), dict(node.attributes)
    x, w, bias, z = chain.inputs(4)
    kind = attributes.pop("activation", "")
    alpha, beta = (*attributes.pop("activation_params", ()), None, None)[:2]
    result = chain("Conv", x, w, *([bias] if bias else []), **attributes)
    return chain.done(_activate(chain, chain.sum(result, z), kind, alpha, beta))


@adapter(f"{MICROSOFT}NhwcConv", f"{MICROSOFT}NhwcFusedConv")
def _nhwc_conv(node: Node) -> list[Node]:
    """A convolution of pictures with the channels last. `kernel_shape` tells whether the weights have them last too."""
    chain, attributes = Chain(node), dict(node.attributes)
    x, w, bias, z = chain.inputs(4)
    kind = attributes.pop("activation", "")
    alpha, beta = (*attributes.pop("activation_params", ()), None, None)[:2]
    rank, kernel = chain.rank(x), tuple(attributes.get("kernel_shape", ()))
    sizes = tuple(chain.spec(w).shape or ())
    if kernel and sizes[2:] != kernel and sizes[1:-1] == kernel:
        w = channels_first(chain, w, rank)
    result = chain("Conv", channels_first(chain, x, rank), w, *([bias] if bias else []), **attributes)
    return chain.done(_activate(chain, chain.sum(channels_last(chain, result, rank), z), kind, alpha, beta))


def channels_first(chain: Chain, x: Value | None, rank: int) -> Value:
    """Add a transposition from NHWC to NCHW."""
    return chain("Transpose", x, perm=(0, rank - 1, *range(1, rank - 1)))


def channels_last(chain: Chain, x: Value | None, rank: int) -> Value:
    """Add a transposition from NCHW to NHWC."""
    return chain("Transpose", x, perm=(0, *range(2, rank), 1))


@adapter(f"{MICROSOFT}FusedGemm")
def _fused_gemm(node: Node) -> list[Node]:
    chain, attributes = Chain(node), dict(node.attributes)
    kind, alpha, beta, _ = (
        attributes.pop(name, None) for name in ("activation", *(f"activation_{x}" for x in ("alpha", "beta", "gamma")))
    )
    result = chain("Gemm", *node.inputs, **attributes)
    return chain.done(_activate(chain, result, kind or "", alpha, beta))


@adapter(*(MICROSOFT + op for op in ("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation")))
def _fused_mat_mul(node: Node) -> list[Node]:
    """alpha * A B. The matrices may be transposed, and their rows may come before their batches."""
    chain = Chain(node)
    sides = list[Value | None]()
    for name, side in zip(node.inputs, "AB", strict=True):
        flipped, batched = chain.get(f"trans{side}", 0), chain.get(f"transBatch{side}", 0)
        rank = chain.rank(name) if flipped or batched else 1
        order = [*range(1, rank - 1), 0, rank - 1] if batched else list(range(rank))
        if flipped:
            order[-2:] = order[:-3:-1]
        sides.append(name if rank == 1 else chain("Transpose", name, perm=tuple(order)))
    result = chain("MatMul", *sides)
    if chain.get("alpha", 1.0) != 1.0:
        result = chain("Mul", result, chain.number(chain.get("alpha", 1.0), node.inputs[0]))
    kind, alpha, beta = (chain.get(f"activation{name}", None) for name in ("", "_alpha", "_beta"))
    return chain.done(_activate(chain, result, kind or "", alpha, beta))


@adapter(f"{MICROSOFT}Gelu", f"{MICROSOFT}BiasGelu")
def _gelu(node: Node) -> list[Node]:
    chain = Chain(node)
    return chain.done(chain("Gelu", chain.sum(*node.inputs)))


@adapter(f"{MICROSOFT}FastGelu")
def _fast_gelu(node: Node) -> list[Node]:
    chain = Chain(node)
    return chain.done(chain("Gelu", chain.sum(*node.inputs), approximate="tanh"))


@adapter(f"{MICROSOFT}QuickGelu")
def _quick_gelu(node: Node) -> list[Node]:
    chain = Chain(node)
    return chain.done(chain("Swish", node.inputs[0], alpha=chain.get("alpha", 1.702)))


@adapter(f"{MICROSOFT}BiasAdd")
def _bias_add(node: Node) -> list[Node]:
    chain = Chain(node)
    return chain.done(chain.sum(*node.inputs))


@adapter(f"{MICROSOFT}BiasSplitGelu")
def _bias_split_gelu(node: Node) -> list[Node]:
    """The left half of the last axis times the Gelu of the right one."""
    chain = Chain(node)
    left, right = chain.several(2, "Split", chain.sum(*node.inputs), axis=-1, num_outputs=2)
    return chain.done(chain("Mul", left, chain("Gelu", right)))


@adapter(f"{MICROSOFT}Trilu")
def _trilu(node: Node) -> list[Node]:
    return [node.like("Trilu", node.inputs, node.outputs, **node.attributes)]


@adapter(f"{MICROSOFT}ExpandDims")
def _expand_dims(node: Node) -> list[Node]:
    chain = Chain(node)
    x, axis = chain.inputs(2)
    return chain.done(chain("Unsqueeze", x, _list(chain, axis)))


@adapter(f"{MICROSOFT}Pad")
def _pad(node: Node) -> list[Node]:
    """The pads may be a matrix of one row."""
    chain = Chain(node)
    x, pads, value = chain.inputs(3)
    filler = [chain("Reshape", value, chain.ints())] if value else []
    return chain.done(chain("Pad", x, _list(chain, pads), *filler, **node.attributes))


def _list(chain: Chain, numbers: Value | None) -> Value:
    """Return integers of any shape as a list of int64."""
    if numbers is not None and numbers.constant is not None:
        return chain.ints(*numbers.constant.reshape(-1).tolist())
    return chain("Reshape", chain("Cast", numbers, to=DataType.INT64), chain.ints(-1))


@adapter(f"{MICROSOFT}Unique")
def _unique(node: Node) -> list[Node]:
    """The values keep the order in which they first occur."""
    chain = Chain(node)
    values, _, indices, counts = chain.several(4, "Unique", node.inputs[0], sorted=0)
    return chain.done(values, indices, counts)


@adapter(f"{MICROSOFT}Inverse")
def _inverse(node: Node) -> list[Node]:
    """The inverse of small matrices: the determinants of all minors, divided by the determinant of the matrix."""
    chain, (x,) = Chain(node), node.inputs
    side, rank = chain.size(x, -1), chain.rank(x)
    if x is not None and x.constant is not None:
        return chain.done(constant(np.linalg.inv(x.constant)))
    if side == 1:
        return chain.done(chain("Reciprocal", x))
    if side > LARGEST_INVERSE:
        raise NotImplementedError(f"its matrices have {side} rows; more than {LARGEST_INVERSE} are not supported")
    others = np.array([[i for i in range(side) if i != left] for left in range(side)])
    rows = chain("Gather", x, constant(others), axis=-2)  # ..., row left out, rows, columns
    minors = chain("Gather", rows, constant(others), axis=-1)  # ..., row, rows, column left out, columns
    batch = tuple(range(rank - 2))
    minors = chain("Transpose", minors, perm=(*batch, rank, rank - 2, rank - 1, rank + 1))  # column, row: transposed
    signs = 1 - 2 * (np.add.outer(np.arange(side), np.arange(side)) % 2)
    adjugate = chain("Mul", chain("Det", minors), chain.number(signs, x))
    whole = chain("Unsqueeze", chain("Det", x), chain.ints(-2, -1))
    return chain.done(chain("Div", adjugate, whole))
