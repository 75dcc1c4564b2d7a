"""The pictures that demos show: frames of video and arrays take turns in one place."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from media.yuv import random_frame, shown
from perframe.command_line.commands.demo import load_demo
from perframe.media import Picture
from perframe.media.planes import FrameReader


def test_frames_of_video_and_arrays_follow_each_other(gl_context: Any) -> None:
    load_demo("faces")
    generator = np.random.default_rng(8)
    seen = import_module("perframe_demos.common.seen").SeenPicture(gl_context)
    for index, (size, is_video) in enumerate(
        [((64, 48), True), ((64, 48), False), ((40, 30), True), ((63, 47), False)]
    ):
        frame = random_frame("yuv420p", size, 1, False, generator, "smooth")
        wanted = shown(frame, 1)
        seen.bring(Picture(FrameReader().read(frame) if is_video else wanted.astype(np.uint8), index, 0.0))
        target = gl_context.framebuffer([gl_context.texture(size, 4)])
        target.use()
        seen.draw(size)
        drawn = np.frombuffer(target.read(components=3, alignment=1), np.uint8).reshape(size[1], size[0], 3)[::-1]
        assert seen.size == size and np.abs(drawn - wanted).max() <= 1
        assert seen.pixels.shape == (size[1], size[0], 3)
    seen.release()
