"""A compute shader of one's own works on a worker's tensor, between two networks or before drawing."""

from __future__ import annotations

from typing import Any

import moderngl
import numpy as np

import perframe as pf

DOUBLE = """
#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Values { float values[]; };
uniform int count;
void main() {
    if (gl_GlobalInvocationID.x < count) values[gl_GlobalInvocationID.x] *= 2.0;
}
"""

graph = pf.FunctionalGraph()
x = graph.add_input(pf.DataType.FLOAT32, (1000,))
model = graph.compile(x + 1)

settings: dict[str, Any] = {"standalone": True, "backend": "egl", "require": 430}
ctx = moderngl.create_context(**settings)
with pf.Worker(model, "gpu_compute", ctx) as worker:
    given = worker.empty_input()  # in a storage buffer: float32 in the order of the array
    given.upload(np.arange(1000, dtype=np.float32))
    shader = ctx.compute_shader(DOUBLE)
    shader["count"] = 1000
    storage: Any = given.data_on_backend
    storage.memory.bind_to_storage_buffer(0)
    shader.run(-(-1000 // 64))
    ctx.memory_barrier()
    print(worker.schedule(given).peek_output().download_to_array()[:4], "= 2 x + 1")
