"""Where a model's time goes on the CPU: its layers by time, and the rate of products against the best rate of one core.

`python tools/where_time_goes.py MODEL [LAYERS [NAME=N,...]]`, the numbers for the model's open dims. Run it with
PERFRAME_THREADS=1: each step is timed alone.
"""

from __future__ import annotations

import math
import sys

import numpy as np

import perframe as pf
from perframe.command_line.sources import input_arrays, named_model, parse_dims
from perframe.ir import Layer, Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType

REPEATS = 20


def best_rate() -> float:
    """Operations a second of one core on a product whose operands lie in its second cache."""
    shapes = {"x": (448, 512), "w": (512, 256), "y": (448, 256)}
    values = {name: Value(name, DataType.FLOAT32, DynamicTensorShape(shape)) for name, shape in shapes.items()}
    layers = [Layer("MatMul", "product", ["x", "w"], ["y"])]
    random = np.random.default_rng(0)
    weights = random.normal(size=shapes["w"]).astype(np.float32)
    with pf.Worker(Model([values["x"]], [values["y"]], layers, {"w": weights})) as worker:
        worker.schedule(random.normal(size=shapes["x"]).astype(np.float32)).peek_output().download_to_array()
        (product,) = worker.report(5 * REPEATS)
    return (product.operations or 0) / (product.seconds or math.inf)


def main() -> None:
    """Print the layers that take most."""
    name, count, dims = [*sys.argv[1:], *("", "12", "")[len(sys.argv) - 1 :]][:3]
    model = pf.load(named_model(name))
    fed = input_arrays(model.inputs, (), parse_dims(dims), 0)
    peak = best_rate()
    with pf.Worker(model) as worker:
        worker.schedule(fed).peek_output().download_to_array()
        steps = [(step, step.seconds) for step in worker.report(REPEATS) if step.seconds]
    total = sum(seconds for _, seconds in steps)
    print(
        f"{name}: {total * 1e3:.3g} ms in {len(steps)} steps on one core; a product reaches {peak / 1e9:.0f} GFLOP/s\n"
    )
    print("| layer | operator | time | share | GFLOP/s | of the best product |")
    print("|---|---|---|---|---|---|")
    for step, seconds in sorted(steps, key=lambda row: -row[1])[: int(count)]:
        rate = (step.operations or 0) / seconds
        reached = f"{rate / 1e9:.0f} | {rate / peak:.0%}" if rate else " | "
        print(f"| {step.layer} | {step.operator} | {seconds * 1e6:.0f} µs | {seconds / total:.0%} | {reached} |")


if __name__ == "__main__":
    main()
