"""How the cost of a run grows, beside onnxruntime.

`PYTHONPATH=tests python -m tests.benchmarks.scale [CURVE...] [--json FILE]` measures curves by the begin of a name.

Curves go over the batch, the side of a picture, the length of a sequence, and the number of workers that run in turns.
Both sides run on the CPU in turns, with random weights and as many threads; `tools/curves.py` draws the figures. The
networks come from torchvision and transformers (the extra `zoo`). Compare figures within one run only.
"""

from __future__ import annotations

import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import onnxruntime
import typer

import perframe as pf
from perframe.backends.cpu.threads.helpers import thread_count

SPENT, MOST_RUNS = 0.3, 30  # seconds that a side runs in a round, and its most runs
PAUSE = 0.05  # seconds in which the threads of the side before fall asleep
Feed = Mapping[str, Any]


@dataclass(frozen=True)
class Curve:
    """A network, its inputs for each size, and whether a size counts workers."""

    network: str
    along: str
    sizes: tuple[int, ...]
    feed: Callable[[int], Feed]
    counts_workers: bool = False


def _picture(batch: int, height: int, width: int) -> Feed:
    return {"x": np.random.default_rng(0).random((batch, 3, height, width), np.float32)}


def _words(length: int) -> Feed:
    return {"words": np.random.default_rng(0).integers(0, 1000, (1, length))}


CURVES = {
    "batch, mobilenet_v2": Curve("mobilenet_v2", "pictures", (1, 2, 4, 8, 16, 32, 64), lambda n: _picture(n, 224, 224)),
    "batch, resnet50": Curve("resnet50", "pictures", (1, 2, 4, 8, 16), lambda n: _picture(n, 224, 224)),
    "side, mobilenet_v2": Curve(
        "mobilenet_v2", "pixels a side", (64, 128, 256, 512, 1024, 2048), lambda n: _picture(1, n, n)
    ),
    "sequence, bert": Curve("bert", "words", (8, 32, 128, 512, 2048, 8192), _words),
    "workers, mobilenet_v2": Curve("mobilenet_v2", "workers", (1, 3, 10, 30, 100), lambda n: _picture(1, 96, 96), True),
}


def export(network: str, file: Path) -> None:
    """Write a network with open dims."""
    import torch

    from models.architectures.torchvision_operators import library

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    dim, given, name = torch.export.Dim, torch.zeros((2, 3, 96, 96)), "x"
    shapes = {0: dim("batch", min=1, max=64), 2: dim("height", min=32), 3: dim("width", min=32)}
    if network == "bert":
        transformers: Any = library("transformers")
        sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
        config = transformers.BertConfig(vocab_size=1000, max_position_embeddings=8192, **sizes)
        module, given, name = transformers.BertModel(config), torch.zeros((1, 16), dtype=torch.int64), "words"
        shapes = {1: dim("length", min=2, max=8192)}
    else:
        module = getattr(library("torchvision").models, network)(weights=None)
    torch.onnx.export(
        module.eval(), (given,), file, dynamo=True, verbose=False, input_names=[name], dynamic_shapes=(shapes,)
    )


def _ours(file: Path, feed: Feed, workers: int) -> Callable[[], Any]:
    model = pf.load(file)
    made = [pf.Worker(model) for _ in range(workers)]
    for worker in made:
        worker.warmup(feed)

    def run() -> list[Any]:
        return [worker.schedule(feed).peek_output().numpy() for worker in made]

    return run


def _theirs(file: Path, feed: Feed, workers: int) -> Callable[[], Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = thread_count()
    made = [onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"]) for _ in range(workers)]
    return lambda: [session.run(None, dict(feed))[0] for session in made]


def seconds(run: Callable[[], Any]) -> float:
    """The median time of some runs, after one that does not count."""
    time.sleep(PAUSE)
    run()
    times = list[float]()
    while sum(times) < SPENT and len(times) < MOST_RUNS:
        begin = perf_counter()
        run()
        times.append(perf_counter() - begin)
    return statistics.median(times)


def measured(file: Path, curve: Curve, size: int, rounds: int) -> dict[str, Any]:
    """The milliseconds of both sides, for all workers or for one run, and the median ratio of the rounds."""
    feed, workers = curve.feed(size), size if curve.counts_workers else 1
    sides = [make(file, feed, workers) for make in (_ours, _theirs)]
    ours, theirs = (side()[0] for side in sides)
    largest = float(np.abs(theirs).max())
    assert np.abs(ours - theirs).max() <= 1e-3 * largest, f"{file.stem}, {size}: the results differ"
    pairs = [[seconds(side) * 1000 for side in sides] for _ in range(rounds)]
    ratio = statistics.median(other / own for own, other in pairs)
    own, other = (statistics.median(each) for each in zip(*pairs, strict=True))
    return {"size": size, "threads": thread_count(), "perframe": own, "onnxruntime": other, "ratio": ratio}


def measure(names: list[str], rounds: int) -> dict[str, Any]:
    """The points of each curve, by its name, on as many threads as this process may use."""
    found = dict[str, Any]()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            curve, points = CURVES[name], list[dict[str, Any]]()
            file = Path(folder, f"{curve.network}.onnx")
            if not file.exists():
                export(curve.network, file)
            for size in curve.sizes:
                points.append(point := measured(file, curve, size, rounds))
                print(name, *(f"{key} {value:.4g}" for key, value in point.items()), flush=True)
            found[name] = {"network": curve.network, "along": curve.along, "points": points}
    return found


def main(
    curves: Annotated[list[str] | None, typer.Argument(help="names, or the begin of names.")] = None,
    threads: Annotated[str, typer.Option(help="numbers of threads, each in a process of its own.")] = "1,2",
    rounds: int = 3,
    out: Annotated[Path, typer.Option("--json", help="the file of the figures.")] = Path("scale.json"),
) -> None:
    """Write the figures of the curves, and print them as they come."""
    names = [name for name in CURVES if not curves or any(name.startswith(begin) for begin in curves)]
    if "," not in threads and os.environ.get("PERFRAME_THREADS") == threads:
        out.write_text(json.dumps(measure(names, rounds), indent=1))
        return
    found = dict[str, Any]()
    for count in threads.split(","):
        part = out.with_suffix(f".{count}.json")
        command = [sys.executable, "-m", "tests.benchmarks.scale", *names, "--threads", count, "--json", str(part)]
        environment = {**os.environ, "PERFRAME_THREADS": count}
        subprocess.run([*command, "--rounds", str(rounds)], check=True, env=environment)
        for name, curve in json.loads(part.read_text()).items():
            found.setdefault(name, {**curve, "points": []})["points"] += curve["points"]
        part.unlink()
    out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    typer.run(main)
