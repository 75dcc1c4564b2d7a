"""Products with weights of 4 or 8 bits, and rows of tables of them. Kernels turn codes into floats as they read them.

A weight is (code - zero point) * scale; a block of a column's depth has one zero point and one scale. Codes and zero
points are signed. A word of 32 bits holds codes of one column, the first in its lowest bits. The words lie in panels
of PANEL columns, as (panels, words of a column, PANEL); zero points lie like codes, and scales as (panels, blocks,
PANEL). What the last word or panel lacks is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag, Positive
from perframe.ir.bounds import Bounds
from perframe.ir.declaration import Known, layer
from perframe.ir.form import Bounded, Counted
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType

PANEL = 16
WORD = 32  # bits
BITS = (4, 8)


@dataclass(frozen=True)
class _PackedWeights:
    """Packed weights of (depth, columns)."""

    columns: int
    depth: int
    bits: int
    block: int

    @property
    def words(self) -> int:
        """The words of a column."""
        return words_of(self.depth, self.bits)

    @property
    def blocks(self) -> int:
        """The blocks of a column."""
        return -(-self.depth // self.block)


@dataclass(frozen=True)
class PackedProduct(_PackedWeights, Counted):
    """(rows, depth) by packed weights, plus a bias for each column.

    With `rounds`, a kernel may round rows to 8 bits: it divides each block of a row by the largest element in it.
    """

    rows: int
    rounds: bool

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.rows * self.columns * self.depth


@dataclass(frozen=True)
class PackedTable(_PackedWeights, Bounded):
    """The columns of packed weights at `count` indices, as (count, depth). A negative index counts from the end."""

    count: int

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of the indices."""
        return (Bounds(2, (self.columns,)),)


def words_of(count: int, bits: int) -> int:
    """Return the words that `count` codes fill."""
    return -(-count * bits // WORD)


def in_panels(values: NDArray[Any]) -> NDArray[Any]:
    """Arrange (rows, columns) as (panels, rows, PANEL)."""
    rows, columns = values.shape
    padded = np.zeros((rows, -(-columns // PANEL) * PANEL), values.dtype)
    padded[:, :columns] = values
    return np.ascontiguousarray(padded.reshape(rows, -(-columns // PANEL), PANEL).transpose(1, 0, 2))


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
        raise InferenceError(f"packed weights take {name} as {dtype} {tuple(shape)}, not {value}")


def _check_weights(
    words: PartialTensor,
    scales: PartialTensor,
    zeros: PartialTensor | None,
    depth: int,
    columns: int,
    bits: int,
    block: int,
) -> None:
    if bits not in BITS or (block % (WORD // bits) and block < depth):
        raise InferenceError(f"packed weights have 4 or 8 bits, and blocks of whole words, not {bits} and {block}")
    panels, blocks = -(-columns // PANEL), -(-depth // block)
    _check("words", words, (panels, words_of(depth, bits), PANEL), DataType.INT32)
    _check("scales", scales, (panels, blocks, PANEL), DataType.FLOAT32)
    _check("zeros", zeros, (panels, words_of(blocks, bits), PANEL), DataType.INT32)


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
    rounds: Flag = 0,
) -> PartialTensor:
    _check_weights(words, scales, zeros, depth, columns, bits, block)
    _check("bias", bias, (columns,), DataType.FLOAT32)
    if x.shape is None:
        return x
    if not x.shape or (isinstance(x.shape[-1], int) and x.shape[-1] != depth):
        raise InferenceError(f"{x} cannot be multiplied with weights of {depth} rows")
    return x.with_shape((*x.shape[:-1], columns))


@PackedMatMul.form
def _product(
    inputs: Sequence[Known | None],
    outputs: Sequence[Known],
    *,
    depth: int,
    columns: int,
    bits: int,
    block: int,
    rounds: int,
) -> PackedProduct:
    x = inputs[0]
    assert x is not None
    return PackedProduct(columns, depth, bits, min(block, depth), math.prod(x.shape[:-1]), bool(rounds))


@layer()
def PackedGather(
    words: PartialTensor,
    scales: PartialTensor,
    indices: PartialTensor,
    zeros: PartialTensor | None = None,
    *,
    depth: Positive,
    columns: Positive,
    bits: Positive,
    block: Positive,
) -> PartialTensor:
    _check_weights(words, scales, zeros, depth, columns, bits, block)
    return scales.with_shape(None if indices.shape is None else (*indices.shape, depth))


@PackedGather.form
def _table(
    inputs: Sequence[Known | None], outputs: Sequence[Known], *, depth: int, columns: int, bits: int, block: int
) -> PackedTable:
    indices = inputs[2]
    assert indices is not None
    return PackedTable(columns, depth, bits, min(block, depth), math.prod(indices.shape))
