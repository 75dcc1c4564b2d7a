"""A texture becomes a tensor, a network works on it, and the result becomes a texture. Nothing leaves the GPU."""

from __future__ import annotations

from typing import Any

import moderngl
import numpy as np

import perframe as pf
from perframe.resources import resource

settings: dict[str, Any] = {"standalone": True, "backend": "egl"}
ctx = moderngl.create_context(**settings)  # or your window's
colours = np.random.default_rng(0).integers(0, 256, (96, 160, 4), np.uint8)
source, target = ctx.texture((160, 96), 4, colours.tobytes()), ctx.texture((160, 96), 4)

with pf.Worker(resource("assets", "painter", "painter.onnx"), "gpu_pixel", ctx) as worker:
    converter, how = pf.TextureConverter(ctx), pf.TextureTransform(coord_origin="top_left")
    picture = worker.empty_input(shape=(1, 3, 96, 160))
    converter.to_tensor(source, picture, how)
    converter.to_texture(worker.schedule(picture).peek_output(), target, how)
    converter.release()

painted = np.frombuffer(target.read(), np.uint8).reshape(96, 160, 4)
print("before:", colours[0, 0], "after:", painted[0, 0])
