"""Put something before and after a model: bytes in, and the strongest colour of each pixel out."""

from __future__ import annotations

import numpy as np

import perframe as pf
from perframe import functional as F
from perframe.resources import resource

painter = pf.load(resource("assets", "painter", "painter.onnx"))

graph = pf.FunctionalGraph("painter of bytes")
pixels = graph.add_input(pf.DataType.UINT8, (1, "height", "width", 3), name="pixels")
picture = F.permute(pixels.float() / 255, (0, 3, 1, 2))
(painting,) = F.forward(painter, picture)
strongest = F.argmax(painting, dim=1)
model = graph.compile(painting=painting, strongest=strongest)
print(len(painter.layers), "layers become", len(model.layers))

photo = np.random.default_rng(0).integers(0, 256, (1, 96, 160, 3), np.uint8)
for name, value in pf.run(model, {"pixels": photo}).items():
    print(name, value.shape, value.dtype)
