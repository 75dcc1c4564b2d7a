"""The text over the picture, and the frame time in it."""

from __future__ import annotations

from collections import deque
from statistics import median
from time import perf_counter

from PIL import Image, ImageDraw, ImageFont

_WIDEST = "gpu_compute  ·  0000 x 0000  ·  00000.0 ms"
_PAPER, _INK = (12, 14, 20, 165), (255, 255, 255, 255)


class Label:
    """One line of text on dark paper, sized for a surface. Its `size` does not depend on the text."""

    def __init__(self, surface: tuple[int, int]) -> None:
        self.surface, height = surface, min(surface[1], surface[0] * 9 // 16)
        self.margin = max(6, height // 45)
        self._font = ImageFont.load_default(size=max(11, height // 36))
        _, _, right, bottom = self._font.getbbox(_WIDEST)
        self._pad = max(4, height // 80)
        self.size = (int(right) + 4 * self._pad, int(bottom) + 2 * self._pad)

    def draw(self, text: str, whole: bool = False) -> Image.Image:
        """The label as an RGBA picture, transparent beside the text; `whole` makes it as wide as the text."""
        length = int(self._font.getlength(text)) + 4 * self._pad
        size = (length, self.size[1]) if whole else self.size
        width = min(size[0], length)
        large = Image.new("L", (size[0] * 4, size[1] * 4))  # and then small, for smooth corners
        box = (0, 0, width * 4 - 1, self.size[1] * 4 - 1)
        ImageDraw.Draw(large).rounded_rectangle(box, radius=self.size[1] * 2, fill=_PAPER[3])
        picture = Image.new("RGBA", size, _PAPER)
        picture.putalpha(large.resize(size, Image.Resampling.BOX))
        pen = ImageDraw.Draw(picture)
        pen.text((2 * self._pad, self.size[1] / 2), text, fill=_INK, font=self._font, anchor="lm")
        return picture


class FrameTimer:
    """The time from one painting to the next: the median of the last ones, so that one that compiles does not count."""

    def __init__(self, kept: int = 31, seconds_between_updates: float = 0.3) -> None:
        self._times: deque[float] = deque(maxlen=kept)
        self._interval = seconds_between_updates
        self._last: float | None = None
        self._updated: float | None = None

    def tick(self) -> None:
        """A painting is there."""
        now = perf_counter()
        if self._last is not None:
            self._times.append(now - self._last)
        self._last = now

    @property
    def milliseconds(self) -> float | None:
        """The time of a painting; None before the second one."""
        return 1000 * median(self._times) if self._times else None

    def is_due(self) -> bool:
        """Whether it is time to show it anew: a few times a second, and as soon as there is something to show."""
        now = perf_counter()
        if self._updated is not None and now - self._updated < self._interval and len(self._times) != 1:
            return False
        self._updated = now
        return True
