"""Models and scripts for films."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INVERTER = """
import numpy as np
import perframe as pf

class Inverter(pf.Script):
    '''Inverts each picture with a network, and polls for the result as a frame loop does.'''

    def __init__(self, model, source, backend="cpu"):
        self.source, self.asked = source, None
        self.model, self.backend = model, backend

    def start(self):
        self.worker = pf.Worker(self.model, self.backend, None if self.backend == "cpu" else self.app.ctx)
        self.count = 0

    def update(self, frame):
        if self.asked is None:
            self.picture = self.source.picture_at(frame.time)
            x = self.picture.pixels.astype(np.float32).transpose(2, 0, 1)[None] / 255
            self.asked = self.worker.schedule(x).peek_output().readback_request()
        if self.asked.done:
            inverted = self.asked.result()[0].transpose(1, 2, 0)
            pixels = (inverted.clip(0, 1) * 255).round().astype(np.uint8)
            pixels[0, :8] = self.count  # the frames since the script's start
            self.app.surface.present(pixels)
            self.asked = None
        self.count += 1

    def destroy(self):
        self.worker.release()

if __name__ == "__main__":
    raise SystemExit("a loop of its own")
"""


def save_inverter(path: Path, last: bool = False, outputs: int = 1) -> Path:
    """A model that inverts a picture; with two outputs it also gives the mean colour."""
    dims = [1, "h", "w", 3] if last else [1, 3, "h", "w"]
    nodes = [helper.make_node("Sub", ["one", "x"], ["y"])]
    if outputs == 2:
        nodes.append(helper.make_node("ReduceMean", ["x", "axes"], ["mean"], keepdims=0))
    graph = helper.make_graph(
        nodes,
        "inverter",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [onnx.ValueInfoProto(name=name) for name in ("y", "mean")[:outputs]],
        [
            numpy_helper.from_array(np.float32(1), "one"),
            numpy_helper.from_array(np.array([1, 2] if last else [2, 3]), "axes"),
        ],
    )
    proto: Any = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(onnx.shape_inference.infer_shapes(proto), path)
    return path


ON_THE_GPU = """
import perframe as pf

class Textures(pf.Script):
    '''Takes each picture from a texture to the screen through a network; nothing comes back to host memory.'''

    def __init__(self, model, source, backend):
        self.model, self.source, self.backend = model, source, backend

    def start(self):
        ctx = self.app.ctx
        self.worker, self.converter = pf.Worker(self.model, self.backend, ctx), pf.TextureConverter(ctx, self.backend)
        self.texture, self.tensor = ctx.texture(self.app.size, 3), pf.Tensor.empty((1, 3, 36, 64))

    def update(self, frame):
        self.converter.upload(self.source.picture_at(frame.time).pixels, self.texture)
        self.worker.schedule(self.converter.to_tensor(self.texture, self.tensor))

    def render(self, frame):
        self.converter.render_to_screen(self.worker.peek_output())

    def destroy(self):
        for owned in (self.worker, self.converter, self.tensor, self.texture):
            owned.release()
"""
