"""Make a model smaller: weights of 8 bits, and what that costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import perframe as pf
from perframe.resources import resource

model = pf.load(resource("assets", "painter", "painter.onnx"))
picture = np.random.default_rng(0).random((1, 3, 96, 160), np.float32)
exact = pf.run(model, {"image": picture})["painting"]

for kind in ("float16", "int8"):
    small = pf.quantize(model, kind)
    pf.save(small, f"painter-{kind}.onnx")
    error = np.abs(pf.run(small, {"image": picture})["painting"] - exact).max()
    print(f"{kind}: {Path(f'painter-{kind}.onnx').stat().st_size:,} bytes, off by {error:.4f} at most")
