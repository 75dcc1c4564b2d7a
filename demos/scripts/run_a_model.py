"""Load a model, run it, and read the result."""

from __future__ import annotations

import numpy as np

import perframe as pf
from perframe.resources import resource

model = pf.load(resource("assets", "painter", "painter.onnx"))
print("inputs:", *map(str, model.inputs))
print("outputs:", *map(str, model.outputs))

picture = np.random.default_rng(0).random((1, 3, 96, 160), np.float32)

with pf.Worker(model, pf.BackendType.CPU) as worker:
    worker.schedule(picture)  # returns at once
    output = worker.peek_output("painting")  # the worker owns it; its values may still be pending
    painting = output.download_to_array()  # waits
    kept = output.readback_and_clone()  # a tensor that outlives the worker

print("the painting:", painting.shape, painting.dtype, f"mean {painting.mean():.3f}")
print("the copy:", kept)
