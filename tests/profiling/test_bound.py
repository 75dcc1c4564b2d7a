"""What bounds the frames of a profile: by the shares of a frame, and of real frames on every backend."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import perframe as pf
from perframe.command_line.cli import app
from perframe.profiling.bound import Shares, judged
from perframe.profiling.times import LayerTimes
from perframe.tensor import BackendType
from small import load, node


def layer(name: str, operator: str, backend: BackendType, seconds: float) -> LayerTimes:
    return LayerTimes("m", name, operator, backend, 5, seconds, 100, None)


LAYERS = [
    layer("small", "Relu", BackendType.CPU, 0.001),
    layer("large", "Conv", BackendType.CPU, 0.004),
    layer("on gpu", "Conv", BackendType.GPU_COMPUTE, 0.002),
    layer("moved", "", BackendType.CPU, 0.009),
]


@pytest.mark.parametrize(
    ("shares", "by", "says"),
    [
        (
            Shares(0.010, 0.006, 0.001, 0, 0),
            "cpu",
            "by the CPU, which takes 7.000 of 10.000 ms.*slowest layer is large",
        ),
        (Shares(0.010, 0.001, 0.006, 0, 0), "cpu", "schedule.. itself costs most"),
        (Shares(0.010, 0.001, 0.001, 0.007, 0), "gpu", "by the GPU.*slowest layer is on gpu.*perframe tune"),
        (Shares(0.010, 0.001, 0, 0.002, 0.006), "transfers", "transfers, which take 6.000.*2 layers .* Sort s first"),
        (Shares(0.016, 0.001, 0.001, 0.002, 0), "waiting", "by waiting, which takes 12.000 of 16.000 ms.*later frame"),
        (Shares(0.010, 0.008, 0, 0.009, 0), "gpu", "9.000 of 10.000"),  # both at once: nothing waits
    ],
)
def test_the_largest_share_bounds_a_frame(shares: Shares, by: str, says: str) -> None:
    bound = judged(shares, LAYERS, ["Sort s", "Sort t"])
    assert bound.by == by and "\n" not in str(bound)
    assert pytest.approx(bound.frame) == shares.frame and all(seconds >= 0 for seconds in bound.seconds.values())
    assert re.search(says, str(bound))


def test_smaller_weights_help_those_who_wait_for_weights() -> None:
    """Products of a few rows: they read each weight once."""
    shares = Shares(0.010, 0.006, 0.001, 0, 0)
    product = layer("product", "MatMul", BackendType.CPU, 0.008)
    assert "pf.quantize" in judged(shares, [*LAYERS, product]).advice
    assert "pf.quantize" not in judged(shares, LAYERS).advice


def test_an_emulated_gpu_is_named() -> None:
    assert "backend 'cpu'" in judged(Shares(0.01, 0, 0.001, 0.008, 0), LAYERS, emulated=True).advice
    assert "emulated" not in judged(Shares(0.01, 0.008, 0.001, 0.001, 0), LAYERS, emulated=True).advice


def products(side: int = 512, layers: int = 8) -> pf.Model:
    random = np.random.default_rng(0)
    weights = {f"w{at}": random.standard_normal((side, side), np.float32) / side for at in range(layers)}
    nodes = []
    for at in range(layers):  # the Relu keeps the weights from being multiplied with each other when the model loads
        nodes += [node("MatMul", f"{f'a{at}' if at else 'x'} w{at}", f"p{at}"), node("Relu", f"p{at}", f"a{at + 1}")]
    return load(nodes, {"x": [side, side]}, f"a{layers}", weights)


def profiled(worker: pf.Worker, x: Any, pause: float = 0.0) -> pf.profiling.Profile:
    with pf.profile() as profile:
        for _ in range(4):
            profile.frame()
            worker.schedule(x).peek_output().numpy()
            time.sleep(pause)
        profile.frame()
    return profile


@pytest.mark.slow  # seconds of a software driver's time
def test_heavy_layers_bound_their_device(backend: str, backend_context: Any) -> None:
    x = np.ones((512, 512), np.float32)
    with pf.Worker(products(), backend, backend_context) as worker:
        worker.warmup(x)
        bound = profiled(worker, x).bound
    assert bound is not None
    assert bound.by == ("cpu" if backend == "cpu" else "gpu"), bound
    assert bound.seconds[bound.by] <= bound.frame * 1.5  # of one frame, not of all


@pytest.mark.quick(cases=0)
def test_a_frame_that_sleeps_waits(backend: str, backend_context: Any) -> None:
    with pf.Worker(load([node("Relu", "x", "y")], {"x": [4]}), backend, backend_context) as worker:
        worker.warmup(np.ones(4, np.float32))
        profile = profiled(worker, np.ones(4, np.float32), 0.05)
    assert profile.bound is not None and profile.bound.by == "waiting"
    assert str(profile.bound) in str(profile).replace("\n", " ").replace("  ", " ")


def test_without_frames_or_runs_nothing_is_said() -> None:
    with pf.Worker(load([node("Relu", "x", "y")], {"x": [4]})) as worker:
        with pf.profile() as profile:
            worker.schedule(np.ones(4, np.float32))
        assert profile.bound is None and "bound by" not in str(profile)
        with pf.profile() as profile:
            profile.frame()
            profile.frame()
        assert profile.bound is None


def test_the_command_says_it_in_a_line() -> None:
    shown = CliRunner().invoke(app, ["profile", "digits", "--backend", "cpu", "--frames", "4"])
    assert shown.exit_code == 0 and "bound by " in shown.output
    facts = json.loads(CliRunner().invoke(app, ["profile", "digits", "--frames", "4", "--json"]).stdout)
    assert facts["bound"]["by"] in ("cpu", "gpu", "transfers", "waiting") and facts["bound"]["advice"]


def test_a_frame_and_its_shares_are_means() -> None:
    """One frame that is longer than the others, as the first often is, does not make a share larger than its frame."""
    with pf.Worker(load([node("Relu", "x", "y")], {"x": [4]})) as worker:
        worker.warmup(np.ones(4, np.float32))
        with pf.profile() as profile:
            for at in range(5):
                profile.frame()
                worker.schedule(np.ones(4, np.float32)).peek_output().numpy()
                time.sleep(0.2 if at == 0 else 0)
            profile.frame()
    assert profile.bound is not None and profile.frames is not None
    assert profile.bound.frame > 0.04 > profile.frames.p50 and "of an average frame" in str(profile.bound)
