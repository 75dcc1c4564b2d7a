"""The words that kernels read, by name. A lowering writes a word under the name by which the kernel reads it.

This file does without Numba, since lowerings import it in the process with the frame loop. Numba takes the tuple `at`
of a `Fields` for constants.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Sequence
from typing import Any, TypeVar

Value = TypeVar("Value")

WINDOW = "height width out_height out_width kernel_y kernel_x stride_y stride_x dilation_y dilation_x pad_y pad_x"

# the same words for the dim before the last two
WINDOW_Z = "size_z out_z kernel_z stride_z dilation_z pad_z"

ENDS = "end_z end_y end_x"  # the padding at the end of each dim


class Fields:
    """The words of a kernel in order: the addresses of its operands, then its numbers.

    Numbers without names, such as the dims of a shape, may follow from index `rest` on.
    """

    def __init__(self, operands: str, numbers: str, tables: str = "") -> None:
        self._operands, self._tables, self._numbers = operands.split(), tables.split(), numbers.split()
        self.rest = len(self._operands) + len(self._tables) + len(self._numbers)

    @functools.cached_property
    def at(self) -> Any:
        """The index of each name."""
        names = [*self._operands, *self._tables, *self._numbers]
        return namedtuple("at", names)(*range(len(names)))

    def operands(self, **given: Value) -> list[Value]:
        """Return the operands in their order. Raises TypeError for a missing or an unknown name."""
        return _ordered(self._operands, given)

    def tables(self, **given: Value) -> list[Value]:
        """Return the tables in their order. Their addresses come before the numbers. Raises TypeError, as above."""
        return _ordered(self._tables, given)

    def numbers(self, **given: int) -> list[int]:
        """Return the numbers in their order. Raises TypeError for a missing or an unknown name."""
        return _ordered(self._numbers, given)


def _ordered(names: Sequence[str], given: dict[str, Value]) -> list[Value]:
    if given.keys() != set(names):
        wrong = sorted(given.keys() ^ set(names))
        raise TypeError(f"a kernel's words are {', '.join(names)}; missing or unknown: {', '.join(wrong)}")
    return [given[name] for name in names]


POOL = Fields(
    "x out",
    f"counts_padding {WINDOW} {WINDOW_Z} {ENDS} in_place line_block column_block line_items column_items",
)
LINES_POOL = Fields(
    "x out", f"counts_padding {WINDOW} {WINDOW_Z} {ENDS} channels x_pitch out_pitch x_offset out_offset"
)
BYTE_POOL = Fields("x out", f"{WINDOW} channels")
DEPTHWISE = Fields(
    "x weights bias out",
    f"limits finish parameters {WINDOW} {WINDOW_Z} channels x_pitch out_pitch x_offset out_offset",
)
BYTE_DEPTHWISE = Fields("x weights bias factors offsets x_zero y_zero out", f"limits band {WINDOW} channels")
CONV = Fields("x weights bias out", f"parameters channels outputs groups {WINDOW}")
# the operands of a product, in the order of their steps along a batch
BATCH_STEPS = Fields("x weights bias out addend", "")
# After the words with names come the dims of the batch, and the steps of BATCH_STEPS along it. An item is `line_block`
# output lines, `line_step` apart, by `pixel_block` pixels of a line by `column_block` columns.
GEMM = Fields(
    "x weights bias addend out",
    "limits finish parameters images depth columns x_pitch out_pitch addend_pitch has_bias has_addend line_block"
    " pixel_block column_block channel_block line_items pixel_items column_items copies copy_pitch out_line out_image"
    f" addend_columns line_step {WINDOW} {WINDOW_Z} channels x_offset out_offset rank",
)
PACK = Fields("b packed", "depth columns depth_step column_step panels offset rank")  # then the batch, and steps of b
SCALE = Fields("packed factors out", "depth columns")
FINISH = Fields("out", "pitch columns parameters")
# As for GEMM, the batch and its steps follow; the steps of the bias are those of all numbers that columns have. An item
# is `pixel_block` pixels by `column_block` columns.
QUANTIZED = Fields(
    "x weights sums w_zeros bias factors offsets x_zero x_scale y_zero out",
    "limits finish parameters x_pitch out_pitch pixels depth columns pixel_block column_block pixel_items column_items"
    f" steps groups copy_pitch in_place flip sums_rows x_bytes {WINDOW} channels x_offset out_offset rank",
)
# As for QUANTIZED, for numbers of bfloat16. The sizes of x and the depth are in bytes. Where the kernel copies lines, a
# block of pixels is one of lines.
BFLOAT = Fields(
    "x weights bias addend out",
    "limits finish parameters x_pitch out_pitch addend_pitch pixels depth columns pixel_block column_block pixel_items"
    " column_items steps groups panel_depth copy_pitch is_plain has_bias addend_columns images"
    f" {WINDOW} channels x_offset out_offset rank",
)
BFLOAT_ROWS = Fields("x out", "size pitch elements")  # rows of `size` lie `pitch` apart in x, and together in out
# x has contiguous rows of `depth`, and out of `columns`. An item is `row_block` rows by a panel of columns, which
# becomes floats `depth_block` rows at a time.
PACKED = Fields(
    "x words scales zeros bias out",
    "limits finish parameters rows columns depth block words_each blocks zero_words has_bias panels row_block"
    " depth_block",
)
ROUNDED = Fields("x out", "depth block blocks words_each")  # from rows of floats to those of rounded_tile.py
PACKED_TABLE = Fields("words scales zeros indices out", "error is_short size depth block words_each blocks zero_words")
MOVE = Fields("x out", "x_offset out_offset rank")  # then the shape, and the strides of x and of out
REDUCE = Fields("x out", "kept_rank reduced_rank")  # then shape and strides of the kept dims, and of the reduced ones
REDUCE_COLUMNS = Fields("x out", "rows pitch columns group_step")
RESIZE = Fields("x out", "size inner outputs taps", tables="indices weights")
RESIZE_PLANES = Fields(
    "x out",
    "height width out_height out_width row_taps column_taps blocks",
    tables="rows row_weights columns column_weights",
)
REPEAT = Fields("x out", "height width out_height out_width inner", tables="rows columns times")
STANDARDIZE = Fields(
    "x scale bias out", "epsilon size is_centered has_bias scale_inner scale_count bias_inner bias_count"
)
ARG = Fields("x out", "size inner outer takes_largest takes_last")
SORT = Fields("x values indices keys", "size inner count takes_largest")
MARKS = Fields("positions out", "size inner")
CUMULATE = Fields("x out", "size inner is_exclusive is_reverse")
TOP = Fields("x values indices", "size inner count takes_largest")
BYTE_ADD = Fields("a b out", "factors zeros limits elements chunk")
BYTE_TABLE = Fields("x table out", "elements chunk")
BYTE_MEAN = Fields("x factor zeros out", "pixels channels")
PAD = Fields("x out", "value mode before size rank")  # then the shapes of out and of x, and the elements before x
GATHER_ERROR = Fields("", "is_wrong index size")  # a wrong index, and the size that it exceeds
# all gathers begin with the same words
GATHER = Fields("x indices out", "error is_short size inner count")
GATHER_ELEMENTS = Fields("x indices out", "error is_short size step rank")  # then the shape, and the strides of x
GATHER_TUPLES = Fields("x indices out", "error is_short count inner rows rank")  # then dims, and their strides in rows
# `keys`, `kept`, `highest` and `links` are scratch: a heap of candidates, the chosen boxes in blocks, the highest y of
# each cell, and the chains of its blocks
NMS = Fields(
    "boxes scores overlap least keys kept highest links out", "classes box_count picks cells is_centered has_least"
)
PICK = Fields("boxes scores classes limits out owners", "box_count picks has_classes")  # limits: of overlaps and scores
# then dims without the axis and the last, their strides in the data, and in the updates
SCATTER_ELEMENTS = Fields("indices updates out", "error is_short size step count update_step inner blocks rank")
# as for GATHER_TUPLES; with `notes` the numbers of the replaced rows go to `replaced`
SCATTER_TUPLES = Fields("indices updates replaced out", "error is_short notes count inner rank")
SCATTER_ROWS = Fields("begins updates replaced out", "error is_short notes has_begin lines size inner count most")
SCATTER_AGAIN = Fields("x replaced out", "rows inner")
GRID = Fields("x grid out", "mode padding align_corners channels points dims depth height width")
ROI = Fields(
    "x regions pictures out",
    "scale error count channels height width out_height out_width samples is_half_pixel",
)
# `matrix` is the address of float64 numbers, `colors` of float32. Behind come channels of the picture, one for each of
# the tensor.
SAMPLE = Fields(
    "x out",
    "matrix colors height width channels row_step column_step channel_step left top wide high is_linear has_depth"
    " out_width out_channels out_row_step out_column_step out_channel_step",
)
# then the dims of the rows, and the strides of cos and of sin along them
ROTARY = Fields("x cos sin out", "size interleaved by_pair rank")
SOFTMAX = Fields("x out", "size inner takes_logarithm outer")
NEIGHBOURS = Fields("x out", "parameters channels inner before after")
QUANTIZE = Fields("x scale zero out", "inner size chunks chunk")
QUANTIZE_COLUMNS = Fields("x scale zero out", "size")
EXTENT = Fields("x pairs", "elements chunk")
OWN_RANGE = Fields("pairs scale zero", "chunks")
MATMUL = Fields("a b bias out", "parameters scales has_bias rows columns depth rank")  # then the batch, and strides
WINOGRAD = Fields(
    "x weights bias addend out transformed",
    "limits finish parameters height width out_height out_width pad_y pad_x channels columns x_pitch out_pitch"
    " addend_pitch has_addend tiles_across image_tiles tiles tile_block column_block column_items point_step zeros"
    " rooms room_words",
)
RECURRENT = Fields(
    "projected weights late_weights late_bias h c out last_h last_c",
    "parameters steps batch hidden directions goes_backwards block writes_last_h writes_last_c resets_after"
    " rounds_state has_h has_c",
)
# Queries are (rows, size), keys (size, keys) and values (keys, columns). The words with names are followed by the dims
# of the batch, and by the strides along them of query, keys, values, added, kept, dropped and out.
ATTENTION = Fields(
    "query keys values added kept dropped out",
    "parameters rows key_count size columns row_block key_block row_items query_offset key_offset value_offset"
    " has_added has_kept has_dropped keeps query_row query_column key_row key_column value_row value_column"
    " added_row added_column kept_row kept_column dropped_row out_row rank",
)


@functools.cache
def elementwise(count: int) -> Fields:
    """The words of a formula of `count` operands, x0 and on. After them come the shape, and each operand's strides."""
    return Fields(" ".join([*(f"x{k}" for k in range(count)), "out"]), "parameters rank chunks chunk pitch")
