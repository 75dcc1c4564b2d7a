"""The left operand of a product of bytes: the windows of pixels as rows."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.whole_vector import copy_bytes, fill_bytes
from perframe.backends.cpu.kernels.window import window_of


def gatherer(field: Any) -> Any:
    """Return the helper gather(n, x, block, pitch, first, last, flip, zero). `field` has the words of its kernel."""

    @inline
    def gather(n, x, block, pitch, first, last, flip, zero):
        """Copy the pixels' windows to rows of bytes `pitch` apart, tap after tap. Taps outside are the zero point."""
        height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
        x_pitch, channels = n[field.x_pitch], n[field.channels]
        line = kx * channels
        ox, rest = first % out_width, first // out_width
        oy, image = rest % out_height, rest // out_height
        runs = dx == 1 and channels == x_pitch  # neighboring taps follow each other
        for pixel in range(first, last):
            to, left = block + (pixel - first) * pitch, ox * sx - px
            for i in range(ky):
                y = oy * sy - py + i * dy
                if y < 0 or y >= height:
                    fill_bytes(to, zero, line)
                elif runs and left >= 0 and left + kx <= width:
                    copy_bytes(to, x + ((image * height + y) * width + left) * channels, line, flip)
                elif runs:
                    j0 = min(kx, max(0, -left))
                    j1 = max(j0, min(kx, width - left))
                    fill_bytes(to, zero, j0 * channels)
                    source = x + ((image * height + y) * width + left + j0) * channels
                    copy_bytes(to + j0 * channels, source, (j1 - j0) * channels, flip)
                    fill_bytes(to + j1 * channels, zero, (kx - j1) * channels)
                else:
                    for j in range(kx):
                        at = left + j * dx
                        if at < 0 or at >= width:
                            fill_bytes(to + j * channels, zero, channels)
                        else:
                            source = x + ((image * height + y) * width + at) * x_pitch
                            copy_bytes(to + j * channels, source, channels, flip)
                to += line
            ox += 1
            if ox == out_width:
                ox, oy = 0, oy + 1
                if oy == out_height:
                    oy, image = 0, image + 1

    return gather
