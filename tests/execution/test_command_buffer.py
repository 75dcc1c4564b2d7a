"""A command buffer replays conversions and schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import perframe as pf


def brighten() -> pf.Model:
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "two"], ["y"])],
        "brighten",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 4, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 3, 4, 6))],
        [helper.make_tensor("two", TensorProto.FLOAT, (), [2.0])],
    )
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


@pytest.mark.parametrize("backend_name", ["gpu_compute", "gpu_pixel"])
def test_a_recorded_frame_is_replayed_on_new_pixels(gl_context: Any, backend_name: str) -> None:
    if backend_name == "gpu_compute" and gl_context.version_code < 430:
        pytest.skip("compute shaders need GL 4.3")
    source, target = gl_context.texture((6, 4), 4), gl_context.texture((6, 4), 4)
    with pf.Worker(brighten(), backend_name, gl_context) as worker, pf.CommandBuffer(gl_context) as commands:
        x = worker.empty_input()
        y = worker.schedule(x).peek_output()
        commands.to_tensor(source, x).schedule_worker(worker, x).to_texture(y, target)
        assert len(commands) == 3
        for value in (10, 60, 100):
            source.write(np.full((4, 6, 4), value, np.uint8).tobytes())
            commands.execute()
            pixels = np.frombuffer(target.read(), np.uint8).reshape(4, 6, 4)
            assert (pixels[..., :3] == 2 * value).all() and (pixels[..., 3] == 255).all()
    with pytest.raises(pf.ClosedError):
        commands.execute()
