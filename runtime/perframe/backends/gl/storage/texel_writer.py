"""Writes of consecutive elements into an array texture, whose texels hold four each (see texels.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.gl.texels import SHEETS
from perframe.graphics.functions import get_four

_DRAW_FRAMEBUFFER, _COLOR, _SCISSOR_TEST, _SCISSOR_BOX = 0x8CA9, 0x1800, 0x0C11, 0x0C10
_INDEXED = 410  # the GL version from which each viewport has a scissor box


class TexelWriter:
    """Writes elements within one `device.using()` block. Texels that a run fills only in part are cleared with a mask:
    uploads of texels cannot leave channels out.
    """

    def __init__(self, gl: Any, texture: Any, framebuffer: int, kind: str, shift: int) -> None:
        self._gl, self._texture, self._framebuffer, self._shift = gl, texture, framebuffer, shift
        self._is_int = kind == "int"

    def write(self, begin: int, values: NDArray[Any]) -> None:
        """Write flat values from the element `begin` on."""
        end = begin + values.size
        first, last = -(-begin // 4), end // 4  # the whole texels
        if first > last:  # within one texel
            self._write_channels(begin // 4, begin % 4, values)
            return
        if begin % 4:
            self._write_channels(begin // 4, begin % 4, values[: first * 4 - begin])
        if end % 4:
            self._write_channels(last, 0, values[last * 4 - begin :])
        texels = values[first * 4 - begin : last * 4 - begin].reshape(-1, 4)
        for sheet in range(SHEETS):
            at = (sheet - first) % SHEETS  # of the first texel on this sheet
            if at < len(texels):
                self._write_places(sheet, (first + at) // SHEETS, texels[at::SHEETS])

    def _write_places(self, sheet: int, place: int, texels: NDArray[Any]) -> None:
        """Write texels at consecutive places of a sheet: the rest of a row, whole rows, and the begin of a row."""
        width, done = 1 << self._shift, 0
        while done < len(texels):
            column, row = (place + done) % width, (place + done) >> self._shift
            columns = min(width - column, len(texels) - done)
            rows = (len(texels) - done) // width if columns == width else 1
            area = (column, row, sheet, columns, rows, 1)
            self._texture.write(texels[done : done + columns * rows].tobytes(), viewport=area)
            done += columns * rows

    def _write_channels(self, texel: int, channel: int, values: NDArray[Any]) -> None:
        """Write some of the four elements of a texel."""
        gl, sheet, place = self._gl, texel % SHEETS, texel // SHEETS
        column, row = place % (1 << self._shift), place >> self._shift
        clear = gl.glClearBufferiv if self._is_int else gl.glClearBufferfv
        numbers = np.zeros(4, np.int32 if self._is_int else np.float32)
        numbers[channel : channel + values.size] = values
        gl.glBindFramebuffer(_DRAW_FRAMEBUFFER, self._framebuffer)
        box = get_four(gl, _SCISSOR_BOX)
        gl.glEnable(_SCISSOR_TEST)
        gl.glColorMaski(sheet, *(channel <= each < channel + values.size for each in range(4)))
        self._set_scissor(column, row, 1, 1)
        clear(_COLOR, sheet, numbers.ctypes.data)
        self._set_scissor(*box)
        gl.glColorMaski(sheet, 1, 1, 1, 1)
        gl.glDisable(_SCISSOR_TEST)

    def _set_scissor(self, *box: int) -> None:
        """Set the box of the first viewport, which clears obey."""
        if self._gl.version >= _INDEXED:
            self._gl.glScissorIndexed(0, *box)
        else:
            self._gl.glScissor(*box)
