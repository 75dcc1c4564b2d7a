"""Where a model's time goes on the CPU: its layers by time, and what products reach against the best of one core.

`python tools/where_time_goes.py MODEL [LAYERS [OPEN_DIM]]`; dims that the model leaves open get OPEN_DIM, or 1. Run
with PERFRAME_THREADS=1: steps are timed alone, in CPU time, which other processes disturb little.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import perframe as pf
from perframe.command_line.sources import named_model, random_array
from perframe.model import Layer, Model, Value
from perframe.tensor import DataType
from perframe.tensor.partial import DynamicTensorShape

REPEATS = 20


def plans(worker: pf.Worker) -> Iterator[Any]:
    """The plans of a worker's parts."""
    for part in worker._parts._parts:
        yield from getattr(part, "_plans", {}).values()


def step_times(worker: pf.Worker) -> list[tuple[str, float]]:
    """(layer, seconds) of every step that the worker's plans run, the least of some runs of all of them in order: a
    step that writes over what it reads makes sense once.
    """
    found = []
    for plan in plans(worker):
        for stretch in plan.stretches:
            program = getattr(stretch, "program", None)
            best = [math.inf] * (len(program) if program is not None else 0)
            for _ in range(REPEATS):
                for index, least in enumerate(best):
                    start = time.process_time()
                    program.run(index, index + 1)
                    best[index] = min(least, time.process_time() - start)
            found += zip(stretch.layers, best, strict=True) if best else ()
    return found


def operations(worker: pf.Worker) -> dict[str, int]:
    """For each product and convolution its multiplications and additions, as the definition counts them."""
    found = {}
    for part in worker._parts._parts:
        model = getattr(part, "model", None)
        if not isinstance(model, Model):
            continue
        specs = model.infer()
        for layer in model.layers:
            shapes = [specs[name].shape if name else None for name in (*layer.inputs[:2], layer.outputs[0])]
            if layer.family not in ("conv", "matmul") or any(s is None or not s.is_static for s in shapes):
                continue
            a, b, y = (tuple(shape.to_shape()) for shape in shapes if shape is not None)
            found[layer.name] = 2 * math.prod(y) * (math.prod(b[1:]) if layer.family == "conv" else a[-1])
    return found


def best_rate() -> float:
    """Operations a second of one core on a product whose operands lie in its second cache."""
    shapes = {"x": (448, 512), "w": (512, 256), "y": (448, 256)}
    values = {name: Value(name, DataType.FLOAT32, DynamicTensorShape(shape)) for name, shape in shapes.items()}
    layers = [Layer("MatMul", "product", ["x", "w"], ["y"])]
    random = np.random.default_rng(0)
    weights = random.normal(size=shapes["w"]).astype(np.float32)
    with pf.Worker(Model([values["x"]], [values["y"]], layers, {"w": weights})) as worker:
        for _ in range(5):
            worker.schedule(random.normal(size=shapes["x"]).astype(np.float32))
            worker.peek_output().download_to_array()
        seconds = min(seconds for _, seconds in step_times(worker) * 5)
    return 2 * 448 * 512 * 256 / seconds


def main() -> None:
    """Print the layers that take most."""
    name, count = sys.argv[1], int((*sys.argv, "12")[2])
    model = pf.load(name if name.endswith(".onnx") else named_model(name))
    random = np.random.default_rng(0)
    fed = {
        v.name: random_array(random, [d if isinstance(d, int) else 1 for d in v.shape or ()], v.dtype)
        for v in model.inputs
    }
    peak = best_rate()
    with pf.Worker(model) as worker:
        worker.schedule(fed)
        worker.peek_output().download_to_array()
        times, work = step_times(worker), operations(worker)
        ops = {x.name: x.op for part in worker._parts._parts if hasattr(part, "model") for x in part.model.layers}
    total = sum(seconds for _, seconds in times)
    print(
        f"{name}: {total * 1e3:.3g} ms in {len(times)} steps on one core; a product reaches {peak / 1e9:.0f} GFLOP/s\n"
    )
    print("| layer | operator | time | share | GFLOP/s | of the best product |")
    print("|---|---|---|---|---|---|")
    for layer, seconds in sorted(times, key=lambda row: -row[1])[:count]:
        rate = work.get(layer, 0) / seconds
        reached = f"{rate / 1e9:.0f} | {rate / peak:.0%}" if rate else " | "
        print(f"| {layer} | {ops.get(layer, '')} | {seconds * 1e6:.0f} µs | {seconds / total:.0%} | {reached} |")


if __name__ == "__main__":
    main()
