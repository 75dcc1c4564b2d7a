"""`perframe bench`: what its table says below the figures."""

from __future__ import annotations

import io

import pytest

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
