"""`python -m tests.fuzz --count 10000 --seed 1 --save FOLDER`: runs mutated models."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.campaign import Settings, campaign
from fuzz.own_files import FORMATS


def main() -> int:
    """Fuzz. Return 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="another one, other cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--backend", default="cpu", choices=("cpu", "gpu_compute", "gpu_pixel"))
    parser.add_argument(
        "--halves", action="store_true", help="a GPU keeps weights and values between layers in float16"
    )
    parser.add_argument("--format", default="onnx", choices=("onnx", "litert", *FORMATS), help="of the files")
    parser.add_argument("--seconds", type=float, default=60, help="a case that takes longer hangs")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--save", type=Path, help="a folder for the cases that fail")
    given = parser.parse_args()
    began = time.monotonic()
    if given.halves and given.backend == "cpu":
        parser.error("--halves needs a GPU's backend")
    settings = Settings(given.seed, given.backend, given.seconds, format=given.format, halves=given.halves)
    report = campaign(given.count, settings, given.jobs, given.first, given.save, lambda text: print(text, flush=True))
    print(report.table())
    for reason, count in report.explained.most_common():
        print(f"{count:8}  explained: {reason}")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
