"""Starts beside onnxruntime: `python -m tests.benchmarks.starts FILE.onnx ... [--python VENV/bin/python]`.

The time is from the start of a process to the first result, on the CPU. In the first start the cache is empty; later
ones find kernels, and the model as the first one kept it. Both sides start in turns. Inputs are drawn once, or lie
beside a file as FILE.npz. A checkout compiles kernels: name the Python of an environment with a wheel.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

import perframe as pf
from perframe.command_line.sources import likely_arrays, likely_dims

READ = """
import sys
import numpy as np
with np.load(sys.argv[2]) as file:
    fed = {name: file[name] for name in file.files}
"""
SIDES = {
    "perframe": READ
    + """
import perframe as pf
model = pf.load(sys.argv[1])
worker = pf.Worker(model, "cpu")
result = worker.schedule({value.name: fed[value.name] for value in model.inputs}).peek_output().numpy()
print(result.shape, flush=True)
""",
    "onnxruntime": READ
    + """
import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
result = session.run(None, {value.name: fed[value.name] for value in session.get_inputs()})[0]
print(result.shape, flush=True)
""",
}


def seconds(side: str, python: str, file: Path, inputs: Path, cache: str) -> float:
    """The time of one start, up to the first byte that tells of a result."""
    left_out = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PERFRAME_KEEP_MODELS"}
    clean = {name: value for name, value in os.environ.items() if name not in left_out}
    begin = perf_counter()
    with subprocess.Popen(
        [python, "-c", SIDES[side], str(file.resolve()), str(inputs.resolve())],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean | {"PERFRAME_CACHE": cache},
        cwd=cache,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.read(1)
        taken = perf_counter() - begin
        process.stdout.read()
    if not first or process.returncode:
        raise typer.BadParameter(f"{side} fails on {file}")
    return taken


def inputs_of(file: Path, folder: str) -> Path:
    """The file of the inputs."""
    beside = file.with_suffix(".npz")
    if beside.exists():
        return beside
    model = pf.load(file)
    made = Path(folder) / beside.name
    np.savez(made, **likely_arrays(model, likely_dims(model.inputs)))
    return made


def main(files: list[Path], python: Annotated[str, typer.Option()] = sys.executable, rounds: int = 5) -> None:
    """Time the starts of models in ONNX files."""
    print("seconds cold (ours, onnxruntime), warm (ours, onnxruntime), and the ratio of those")
    ratios = []
    for file in files:
        with tempfile.TemporaryDirectory() as cache:
            inputs = inputs_of(file, cache)
            cold = [seconds(side, python, file, inputs, cache) for side in SIDES]
            pairs = [[seconds(side, python, file, inputs, cache) for side in SIDES] for _ in range(rounds)]
        warm = [statistics.median(column) for column in zip(*pairs, strict=True)]
        ratios.append(warm[0] / warm[1])
        print(f"{file.stem:48}", *(f"{time:6.2f}" for time in (*cold, *warm)), f"{ratios[-1]:6.2f}", flush=True)
    mean, over = statistics.geometric_mean(ratios), sum(ratio > 1.5 for ratio in ratios)
    print(f"ours / onnxruntime, warm: mean {mean:.2f}, largest {max(ratios):.2f}, over 1.5: {over} of {len(ratios)}")


if __name__ == "__main__":
    typer.run(main)
