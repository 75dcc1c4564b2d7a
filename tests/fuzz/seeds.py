"""The models that are mutated: ONNX's own cases, and small graphs in which layers meet, as fusing them needs."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Given = dict[str, Any]

MAX_BYTES = 1 << 16  # of a model and of its inputs; larger ones teach nothing more and take longer


@dataclass(frozen=True)
class Seed:
    """A model that runs without changes, and inputs for it."""

    name: str
    data: bytes
    inputs: Given
    own: bool = False  # of the project, and not of ONNX


def write(path: Path, kind: str = "onnx") -> int:
    """Collect all seeds of a format into a file, which a child reads in no time; returns how many."""
    if kind == "litert":
        from fuzz.litert import litert_seeds

        seeds = list(litert_seeds())
    elif kind == "sentis":
        from fuzz.sentis import sentis_seeds

        seeds = list(sentis_seeds())
    else:
        from fuzz.graphs import graphs

        seeds = [*graphs(), *onnx_cases()]
    path.write_bytes(pickle.dumps(seeds))
    return len(seeds)


def read(path: Path) -> list[Seed]:
    """Read the seeds that `write` wrote."""
    found: list[Seed] = pickle.loads(path.read_bytes())
    return found


def onnx_cases() -> Iterator[Seed]:
    """ONNX's own cases that perframe passes, with their first inputs."""
    from conformance.suite import all_cases, not_passed

    failing = {name for _, name in not_passed()}
    for case in all_cases():
        if case.name in failing or "random" in case.name or "dropout" in case.name or "bernoulli" in case.name:
            continue
        if case.case.model_dir and sum(f.stat().st_size for f in Path(case.case.model_dir).rglob("*.*")) > MAX_BYTES:
            continue
        data = case.model.SerializeToString()
        inputs, _ = next(case.data_sets())
        if len(data) < MAX_BYTES and sum(map(_bytes, inputs.values())) < MAX_BYTES:
            yield Seed(case.name, data, inputs)


def _bytes(value: Any) -> int:
    return sum(map(_bytes, value)) if isinstance(value, list) else np.asarray(value).nbytes
