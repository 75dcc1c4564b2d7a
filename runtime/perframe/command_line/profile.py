"""What `perframe profile` measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perframe.backends import BackendName
from perframe.command_line.progress import progress_bar
from perframe.execution.worker import Worker
from perframe.model import Model
from perframe.profiling.profile import Profile


def measure(model: Model, inputs: Mapping[str, Any], backend: BackendName, frames: int) -> Profile:
    """Warm up, and profile `runs` runs with these inputs; each is read back before the next begins."""
    profile = Profile()
    with progress_bar() as step, Worker(model, backend) as worker:
        step("compiles and warms up", 0.0)
        worker.warmup(dict(inputs))
        with profile:
            for frame in range(frames):
                profile.frame()
                step("runs", frame / frames)
                worker.schedule(dict(inputs))
                for name in model.output_names:
                    output = worker.peek_output(name)
                    if hasattr(output, "readback_request"):
                        output.readback_request().result(wait=True)
            profile.frame()
    return profile
