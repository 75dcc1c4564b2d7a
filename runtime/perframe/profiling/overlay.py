"""Figures over the picture: frame times and the slowest layers, while the program runs."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from perframe.host import Frame, KeyEvent, Script
from perframe.host.input import Event
from perframe.profiling.profile import Profile
from perframe.profiling.times import Quantiles

SECONDS = 0.5  # between two updates: figures that change faster cannot be read
FRAMES = 120  # the last ones count
LAYERS = 6
_PAPER, _INK, _BAR = (16, 18, 24), (236, 238, 242), (70, 110, 200)


class ProfileOverlay(Script):
    """A script that shows frame times, schedules and the slowest layers of all workers over the picture.

    `key` shows and hides it. While it is hidden nothing is measured.
    """

    is_overlay = True

    def __init__(self, key: str = "f1", shown: bool = False) -> None:
        self.key = key
        self._shown_first = shown
        self._profile: Profile | None = None
        self._picture: NDArray[np.uint8] | None = None
        self._updated = 0.0

    @property
    def shown(self) -> bool:
        """Whether the figures are on the screen."""
        return self._profile is not None

    def start(self) -> None:
        """Show it, if it is to be shown from the beginning."""
        if self._shown_first:
            self.toggle()

    def toggle(self) -> None:
        """Show it, and begin to measure; or hide it, and end."""
        if self._profile is None:
            self._profile = Profile().__enter__()
            self._picture, self._updated = None, perf_counter()
        else:
            ended, self._profile = self._profile, None
            ended.__exit__()

    def on_event(self, event: Event) -> None:
        """Toggle on the key."""
        if isinstance(event, KeyEvent) and event.key == self.key and event.pressed and not event.repeat:
            self.toggle()

    def render(self, _frame: Frame) -> None:
        """Draw the figures, and make them again where the last ones have been read."""
        if self._profile is None:
            return
        now = perf_counter()
        if self._picture is None or now - self._updated >= SECONDS:
            self._profile.recorder.keep_last(FRAMES)
            self._picture = _draw(rows_of(self._profile), self.app.size)
            self._updated = 0.0 if self._profile.frames is None else now  # the first figures come as soon as they exist
        self.app.surface.draw_over(self._picture)

    def destroy(self) -> None:
        """End the measuring."""
        if self._profile is not None:
            self.toggle()


Row = tuple[str, str, float]  # a name, its figures, and the length of its bar from 0 to 1


def rows_of(profile: Profile) -> list[Row]:
    """The text of the overlay."""
    rows: list[Row] = []
    if (frames := profile.frames) is not None:
        rows.append((f"frame  {1 / frames.p50:.0f} /s" if frames.p50 else "frame", _three(frames), 0))
    for worker in profile.workers:
        if worker.schedules is not None:
            rows.append((f"{worker.model} on {worker.backend}", f"schedule {_three(worker.schedules)}", 0))
    layers = sorted(profile.layers, key=lambda layer: -(layer.seconds or 0))
    whole = sum(layer.seconds or 0 for layer in layers)
    for layer in layers[:LAYERS]:
        if layer.seconds:
            rows.append((f"{layer.layer}  {layer.operator}", f"{layer.seconds * 1e3:.2f} ms", layer.seconds / whole))
    return rows or [("no frame yet", "", 0)]


def _three(quantiles: Quantiles) -> str:
    return f"{quantiles.p50 * 1e3:.2f}  {quantiles.p95 * 1e3:.2f}  {quantiles.p99 * 1e3:.2f} ms (p50, p95, p99)"


def _draw(rows: list[Row], size: tuple[int, int]) -> NDArray[np.uint8]:
    """The rows as a picture, H×W×3, that fits into a surface of this size."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=min(15, max(10, size[1] // 45)))
    pad, line = 8, int(font.getbbox("Áy")[3]) + 4
    names = max(int(font.getlength(name)) for name, _, _ in rows)
    width = min(size[0], names + max(int(font.getlength(figures)) for _, figures, _ in rows) + 4 * pad)
    height = min(size[1], len(rows) * line + 2 * pad)
    picture = Image.new("RGB", (width, height), _PAPER)
    pen = ImageDraw.Draw(picture)
    for index, (name, figures, share) in enumerate(rows):
        top = pad + index * line
        if share:
            pen.rectangle((0, top, int(share * (width - 1)), top + line - 2), fill=_BAR)
        pen.text((pad, top), name, fill=_INK, font=font)
        pen.text((width - pad, top), figures, fill=_INK, font=font, anchor="ra")
    return np.asarray(picture)
