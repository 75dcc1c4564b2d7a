"""A failing graph in files: the smallest that fails alike, its inputs, and what went wrong."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from fuzz.random_graphs.graph import RandomGraph
from fuzz.random_graphs.judge import Verdict, culprit, judged
from fuzz.random_graphs.minimise import Feeds, minimised, one_line


def reduced_and_saved(graph: RandomGraph, verdict: Verdict, backend: str, ctx: Any, folder: Path, label: str) -> str:
    """Make a graph smaller and save it; returns a line about it."""
    both = verdict.where == "as it is"

    def fails(model: onnx.ModelProto, feeds: Feeds) -> bool:
        try:
            again = judged(model, feeds, backend, ctx, both=both)
        except Exception:
            return False
        return again.key == verdict.key and again.where == verdict.where

    model, feeds = minimised(graph.model, graph.feeds, fails)
    final = judged(model, feeds, backend, ctx, both=both)
    at = "" if both else culprit(model, feeds, backend, ctx)
    line = one_line(model)
    ops = "-".join(node.op_type for node in model.graph.node if node.op_type != "Constant")[:80]
    mark = hashlib.sha256(f"{final.key}{final.where}{at.split('(')[0]}{ops}".encode()).hexdigest()[:6]
    place = folder / f"{final.kind}-{ops}-{mark}"
    said = f"{final.kind} on {label}, {final.where}: {final.what}"
    text = f"{said}\npass: {at or '-'}\n{line}\nfrom {graph.name} {graph.blocks}"
    with_count = place / "count"
    if place.exists():
        with_count.write_text(str(int(with_count.read_text() or 1) + 1) if with_count.exists() else "2")
        return text
    place.mkdir(parents=True)
    (place / "model.onnx").write_bytes(model.SerializeToString())
    for index, feed in enumerate(feeds):
        np.savez(place / f"inputs{index or ''}.npz", **feed)
    (place / "README.txt").write_text(text + "\n")
    return text
