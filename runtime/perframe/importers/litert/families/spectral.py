"""Fourier transforms. A complex tensor of the file is a tensor of pairs, real and imaginary, along a last dim."""

from __future__ import annotations

import numpy as np

from perframe.importers.litert.node import LiteRTNode
from perframe.importers.litert.table import operator
from perframe.ir import Value


@operator("RFFT2D")
def _rfft2d(node: LiteRTNode) -> Value:
    height, width = node.axes(1)
    x = node("Unsqueeze", node.x(0), node.ints(-1))
    rows = node("DFT", x, node.constant(width, np.int64), node.constant(-2, np.int64), onesided=1)
    return node("DFT", rows, node.constant(height, np.int64), node.constant(-3, np.int64))


@operator("REAL", "IMAG")
def _part(node: LiteRTNode) -> Value:
    return node("Gather", node.raw(0), node.constant(int(node.operation.code == "IMAG"), np.int64), axis=-1)


@operator("COMPLEX_ABS")
def _complex_abs(node: LiteRTNode) -> Value:
    return node("ReduceL2", node.raw(0), node.ints(-1), keepdims=0)
