"""`python -m tests.fuzz --count 10000 --seed 1 --save FOLDER` runs mutated models.

With `--graphs` it runs random valid graphs, and compares each with onnxruntime, which runs it without optimisations. A
graph that fails is made smaller, and saved with its inputs and a line on what went wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz import random_graphs
from fuzz.campaign import Settings, campaign
from fuzz.own_files import FORMATS

BACKENDS = ("cpu", "gpu_compute", "gpu_pixel")
PLAIN = ("numpy", "numpy:gpu_compute", "numpy:gpu_pixel")


def main() -> int:
    """Fuzz. Return 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="another one, other cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--graphs", action="store_true", help="random valid graphs, which must give the right results")
    parser.add_argument(
        "--backend",
        default="cpu",
        help=f"one of {', '.join(BACKENDS)}; graphs take several with commas, and numpy or numpy:gpu_compute, which "
        "are the passes of a backend without its kernels",
    )
    parser.add_argument(
        "--halves", action="store_true", help="a GPU keeps weights and values between layers in float16"
    )
    parser.add_argument("--format", default="onnx", choices=("onnx", "litert", "sentis", *FORMATS), help="of the files")
    parser.add_argument("--seconds", type=float, default=60, help="a case that takes longer hangs")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--save", type=Path, help="a folder for the cases that fail")
    given = parser.parse_args()
    began = time.monotonic()
    if given.graphs:
        return graphs(given, parser)
    if given.backend not in BACKENDS:
        parser.error(f"{given.backend} is none of {', '.join(BACKENDS)}")
    if given.halves and given.backend == "cpu":
        parser.error("--halves needs a GPU's backend")
    settings = Settings(given.seed, given.backend, given.seconds, format=given.format, halves=given.halves)
    report = campaign(given.count, settings, given.jobs, given.first, given.save, lambda text: print(text, flush=True))
    print(report.table())
    for reason, count in report.explained.most_common():
        print(f"{count:8}  explained: {reason}")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if report.failures else 0


def graphs(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Judge random graphs on some backends. Return 1 if one failed."""
    failed, backends = False, given.backend.split(",")
    for backend in backends:
        if backend not in BACKENDS + PLAIN:
            parser.error(f"{backend} is none of {', '.join(BACKENDS + PLAIN)}")
    for backend in backends:
        began = time.monotonic()
        settings = Settings(given.seed, backend, given.seconds, graphs=True, save=given.save)
        report = random_graphs.campaign(
            given.count, settings, given.jobs, given.first, lambda text: print(text, flush=True)
        )
        print(f"{backend}:\n{report.table()}\n{time.monotonic() - began:.0f} s")
        failed |= bool(report.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
