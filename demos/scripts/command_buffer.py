"""Record work once, and execute it as often as wanted."""

from __future__ import annotations

from typing import Any

import moderngl
import numpy as np

import perframe as pf
from perframe.resources import resource

settings: dict[str, Any] = {"standalone": True, "backend": "egl"}
ctx = moderngl.create_context(**settings)
colours = np.random.default_rng(0).integers(0, 256, (96, 160, 4), np.uint8)
source, target = ctx.texture((160, 96), 4, colours.tobytes()), ctx.texture((160, 96), 4)

with pf.Worker(resource("assets", "painter", "painter.onnx"), "gpu_pixel", ctx) as worker:
    picture = worker.empty_input(shape=(1, 3, 96, 160))
    output = worker.schedule(picture).peek_output()  # a first run, so that the output is there
    commands = pf.CommandBuffer(ctx)
    commands.to_tensor(source, picture).schedule_worker(worker, picture).to_texture(output, target)
    for frame in range(3):
        source.write(np.roll(colours, frame, 1).tobytes())
        commands.execute()
        print(f"frame {frame}:", np.frombuffer(target.read(), np.uint8)[:4])
    commands.release()
