"""`perframe bench`: what its table says below the figures, and the work between two runs."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perframe.command_line.bench_side import Answers
from perframe.command_line.commands import bench
from perframe.command_line.contest import Timing
from perframe.safety.console import SafeConsole


def shown(*timings: Timing) -> str:
    file = io.StringIO()
    bench.show(timings, SafeConsole(file=file, width=80))
    return file.getvalue()


def test_the_ratio_and_the_threads_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"load": 1.2, "first": 0.1, "new_shape": 0.1, "steady": 0.1}
    ours = Timing(
        "m", "gpu_compute", **times, memory=123 << 20, difference=1e-7, peer="onnxruntime", ratio={"steady": 2}
    )
    theirs = Timing("m", "onnxruntime", threads=1, **times, memory=1 << 20)
    monkeypatch.setattr(bench, "thread_counts", lambda: [1, 8])
    said = shown(ours, theirs)
    assert "×" not in said and max(map(len, said.splitlines())) <= 80
    assert "ratio: the steady time of onnxruntime / ours; above 1, perframe is faster" in said
    assert "onnxruntime ran with 1 thread, its fastest of 1 and 8" in said
    alone = shown(Timing("m", "cpu", **times))
    assert "ratio:" not in alone and "thread" not in alone
    monkeypatch.setattr(bench, "thread_counts", lambda: [1])
    assert "onnxruntime ran with 1 thread\n" in shown(ours, theirs)


def test_a_model_without_times_has_no_table() -> None:
    """An error that all sides have is printed once."""
    failed = [Timing("nope.onnx", side, error="there is no model") for side in ("cpu", "gpu_pixel")]
    assert shown(*failed) == "nope.onnx, cpu, gpu_pixel: there is no model\n"
    assert shown(failed[0]) == "nope.onnx, cpu: there is no model\n"
    said = shown(Timing("m", "cpu", load=1.0, steady=0.1), Timing("m", "gpu_pixel", error="no GL"), *failed)
    assert said.startswith("m ") and "steady" in said and "nope" not in said.partition("m, gpu_pixel: no GL\n")[0]


def test_a_missing_model_is_one_error(perframe: Callable[..., tuple[int, str, str]]) -> None:
    status, said, _ = perframe("bench", "nope.onnx")
    assert status == 1 and said.startswith("nope.onnx, cpu: there is no model or file 'nope.onnx'; ")


def test_it_works_between_runs(tmp_path: Path) -> None:
    begins: list[float] = []

    class Timed:
        def run(self, feed: Any) -> dict[str, Any]:
            begins.append(time.perf_counter())
            return {}

    np.savez(tmp_path / "feed.npz", x=np.zeros(3))
    answers = Answers()
    answers._side = Timed()
    timed = answers.run(str(tmp_path / "feed.npz"), 4, work=0.02)
    assert len(timed["wall"]) == 4 and np.diff(begins).min() >= 0.02 > min(timed["wall"])


@pytest.mark.slow
def test_it_tells_of_its_work(perframe: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    status, shown, error = perframe("bench", "digits", "--rounds", 1, "--work", 2.5, "--json", out)
    assert status == 0, shown + error
    assert json.loads(out.read_text(encoding="utf-8"))["settings"]["work"] == 2.5
    assert perframe("bench", "digits", "--work", -1)[0] == 2
