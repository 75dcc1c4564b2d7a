"""Spread one run over frames: a layer at a time, or as many layers as fit into milliseconds."""

from __future__ import annotations

import numpy as np

import perframe as pf
from perframe.resources import resource

picture = np.random.default_rng(0).random((1, 3, 96, 160), np.float32)

with pf.Worker(resource("assets", "painter", "painter.onnx")) as worker:
    for frame, layer in enumerate(worker.schedule_iterable(picture)):
        print(f"frame {frame}: {layer}")  # draw the frame here

    for _ in range(3):  # the worker learns what layers take
        taken = [float(milliseconds) for milliseconds in worker.schedule_iterable(picture, budget_ms=1)]
        print(f"{len(taken)} frames with 1 ms for the network: {sum(taken):.1f} ms in all, at most {max(taken):.1f}")
    print("the painting:", worker.peek_output().download_to_array().shape)
