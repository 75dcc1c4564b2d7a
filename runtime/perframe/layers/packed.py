"""Products with weights of 4 or 8 bits, which kernels turn into floats as they read them.

A weight is (code - zero point) * scale; a block of a column's depth has one zero point and one scale. Codes and zero
points are signed. A word of 32 bits holds codes of one column, the first in its lowest bits. The words lie in panels
of PANEL columns, as (panels, words of a column, PANEL); zero points lie like codes, and scales as (panels, blocks,
PANEL). What the last word or panel lacks is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InferenceError
from perframe.ir.attributes import Positive
from perframe.ir.declaration import Known, layer
from perframe.ir.form import Counted
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType

PANEL = 16
WORD = 32  # bits
BITS = (4, 8)


@dataclass(frozen=True)
class PackedProduct(Counted):
    """(rows, depth) by packed (depth, columns), plus a bias for each column."""

    rows: int
    columns: int
    depth: int
    bits: int
    block: int

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.rows * self.columns * self.depth

    @property
    def words(self) -> int:
        """The words of a column."""
        return words_of(self.depth, self.bits)

    @property
    def blocks(self) -> int:
        """The blocks of a column."""
        return -(-self.depth // self.block)


def words_of(count: int, bits: int) -> int:
    """Return the words that `count` codes fill."""
    return -(-count * bits // WORD)


def in_panels(values: NDArray[Any]) -> NDArray[Any]:
    """Arrange (rows, columns) as (panels, rows, PANEL)."""
    rows, columns = values.shape
    padded = np.zeros((rows, -(-columns // PANEL) * PANEL), values.dtype)
    padded[:, :columns] = values
    return np.ascontiguousarray(padded.reshape(rows, -1, PANEL).transpose(1, 0, 2))


def packed(codes: NDArray[Any], bits: int) -> NDArray[np.int32]:
    """Pack signed codes (count, columns) into words (panels, words of a column, PANEL)."""
    count, columns = codes.shape
    each = WORD // bits
    words = np.zeros((words_of(count, bits), columns), np.uint32)
    for place in range(each):
        part = codes[place::each].astype(np.int8).view(np.uint8) & np.uint8((1 << bits) - 1)
        words[: len(part)] |= part.astype(np.uint32) << np.uint32(bits * place)
    return in_panels(words).view(np.int32)


def unpacked(words: NDArray[Any], count: int, bits: int) -> NDArray[np.int8]:
    """Return the codes (count, columns of whole panels) of packed words."""
    panels, length, _ = words.shape
    each = WORD // bits
    codes = np.empty((length, each, panels, PANEL), np.int8)
    for place in range(each):
        codes[:, place] = (words << (WORD - bits * (place + 1)) >> (WORD - bits)).transpose(1, 0, 2)
    return codes.reshape(-1, panels * PANEL)[:count]


def _check(name: str, value: PartialTensor | None, shape: Sequence[int], dtype: DataType) -> None:
    """Raise InferenceError if an input has another shape or dtype: kernels would read beyond its end."""
    if value is None:
        return
    known = None if value.shape is None else tuple(value.shape)
    if known != tuple(shape) or value.dtype is not dtype:
        raise InferenceError(f"PackedMatMul takes {name} of {dtype} {tuple(shape)}, not {value}")


@layer()
def PackedMatMul(
    x: PartialTensor,
    words: PartialTensor,
    scales: PartialTensor,
    zeros: PartialTensor | None = None,
    bias: PartialTensor | None = None,
    *,
    depth: Positive,
    columns: Positive,
    bits: Positive,
    block: Positive,
) -> PartialTensor:
    each = WORD // bits
    if bits not in BITS or (block % each and block < depth):
        raise InferenceError(f"PackedMatMul has codes of 4 or 8 bits in blocks of whole words, not {bits} and {block}")
    panels, blocks = -(-columns // PANEL), -(-depth // block)
    _check("words", words, (panels, words_of(depth, bits), PANEL), DataType.INT32)
    _check("scales", scales, (panels, blocks, PANEL), DataType.FLOAT32)
    _check("zeros", zeros, (panels, words_of(blocks, bits), PANEL), DataType.INT32)
    _check("bias", bias, (columns,), DataType.FLOAT32)
    if x.shape is None:
        return x
    if not x.shape or (isinstance(x.shape[-1], int) and x.shape[-1] != depth):
        raise InferenceError(f"{x} cannot be multiplied with weights of {depth} rows")
    return x.with_shape((*x.shape[:-1], columns))


@PackedMatMul.form
def _product(
    inputs: Sequence[Known | None], outputs: Sequence[Known], *, depth: int, columns: int, bits: int, block: int
) -> PackedProduct:
    x = inputs[0]
    assert x is not None
    return PackedProduct(math.prod(x.shape[:-1]), columns, depth, bits, min(block, depth))
