"""`pf.profile()`: what it sees of frames, schedules and layers, and that nothing is left of it afterwards."""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import InputError
from perframe.execution.worker import watchers
from perframe.host import App, ManualClock, Script
from perframe.host.surface import BlankSurface
from perframe.profiling.recording import Recorder, _medians
from perframe.profiling.table import shortened
from perframe.profiling.timeline import perfetto, tracks_of
from perframe.tensor.frames import frame_watchers
from small import load, node

SIDE = 48
X = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float32)


def product() -> pf.Model:
    """A product of two matrices, which counts operations, and a softmax, which does not."""
    weights = np.eye(SIDE, dtype=np.float32)
    return load([node("MatMul", "x w", "a"), node("Softmax", "a", "y")], {"x": [None, SIDE]}, "y", {"w": weights})


def run(worker: pf.Worker, x: Any = X) -> Any:
    return worker.schedule(x).peek_output().download_to_array()


def test_layers_have_times(backend: str, backend_context: Any) -> None:
    with pf.Worker(product(), backend, backend_context) as worker:
        expected = run(worker)
        with pf.profile() as profile:
            for _ in range(6):
                profile.frame()
                np.testing.assert_array_equal(run(worker), expected)
        assert {step.seconds for step in worker.schedule(X).report()} == {None}, "it times no more"
    layers = {layer.operator: layer for layer in profile.layers}
    matmul, softmax = layers["MatMul"], layers["Softmax"]
    assert matmul.backend == softmax.backend == backend
    assert matmul.operations == 2 * SIDE**3 and softmax.operations is None
    assert matmul.runs == softmax.runs == 6
    for layer in (matmul, softmax):
        assert layer.seconds is not None and 0 < layer.seconds < 10
        assert layer.bytes_a_second == layer.bytes / layer.seconds
    assert matmul.operations_a_second == matmul.operations / (matmul.seconds or 0)
    (times,) = profile.workers
    assert times.schedules is not None and times.schedules.count == 6 and times.fallbacks == []
    assert profile.frames is not None and profile.frames.count == 5
    assert 0 < profile.frames.p50 <= profile.frames.p95 <= profile.frames.p99
    assert "MatMul" in str(profile) and "schedule of" in str(profile)


def test_pieces_and_other_shapes(backend: str, backend_context: Any) -> None:
    """Runs that advance layer by layer, or within milliseconds, and a second shape, which has layers of its own."""
    with pf.Worker(product(), backend, backend_context) as worker:
        with pf.profile() as profile:
            for x in (X, X[:7]):
                for _ in worker.schedule_iterable(x):
                    pass
                run(worker, x)
                for _ in worker.schedule_iterable(x, budget_ms=1000):
                    pass
        sizes = {(layer.operator, layer.bytes): layer for layer in profile.layers if layer.operator == "Softmax"}
        assert len(sizes) == 2
        assert all(layer.runs >= 2 and layer.seconds for layer in sizes.values())
        assert profile.workers[0].schedules.count == 6  # type: ignore[union-attr]


@pytest.mark.slow
def test_divided_layers_have_times(backend: str, backend_context: Any) -> None:
    """A budget divides the products. A divided run has one time, and all runs of a whole layer are kept."""
    weights = np.eye(256, dtype=np.float32)
    nodes = [node("MatMul", "x w", "a"), node("MatMul", "a w", "b"), node("Softmax", "b", "y")]
    model = load(nodes, {"x": [256, 256]}, "y", {"w": weights}, optimize=False)
    x = np.ones((256, 256), np.float32)
    with pf.Worker(model, backend, backend_context) as worker:
        whole = min(step.seconds or 0 for step in worker.schedule(x).report(repeats=3) if step.operator == "MatMul")
        for _ in worker.schedule_iterable(x, budget_ms=1e3 * whole):
            pass
        with pf.profile() as profile:
            for _ in range(20):
                slices = sum(1 for _ in worker.schedule_iterable(x, budget_ms=1e3 * whole / 4))
    assert slices > 4
    assert all(layer.runs == 20 and layer.seconds for layer in profile.layers)
    parts = [run for runs in profile.recorder.records[id(worker)].segments.values() for run in runs.runs if run.rows]
    assert parts and all(run.rows[0] + run.rows[1] <= run.rows[2] for run in parts if run.rows)
    assert all(layer.seconds > whole / 2 for layer in profile.layers if layer.operator == "MatMul" and layer.seconds)


def test_medians_leave_out_what_was_not_timed() -> None:
    random = np.random.default_rng(0)
    times = random.standard_normal((7, 40))
    times[random.random(times.shape) < 0.4] = np.nan
    times[:, 0], times[:6, 1] = np.nan, np.nan
    counts, medians = _medians(times)
    np.testing.assert_array_equal(counts, np.isfinite(times).sum(axis=0))
    assert np.isnan(medians[0]) and medians[1] == times[6, 1]
    np.testing.assert_allclose(medians[1:], np.nanmedian(times[:, 1:], axis=0), rtol=1e-12)
    assert np.isnan(_medians(times[:0])[1]).all()


def test_workers_that_end_within(backend: str, backend_context: Any) -> None:
    with pf.profile() as profile:
        for _ in range(2):
            with pf.Worker(product(), backend, backend_context) as worker:
                for _ in range(3):
                    run(worker)
    assert len(profile.workers) == 2
    assert all(layer.seconds and layer.runs == 3 for layer in profile.layers)
    assert len(profile.layers) == 2 * len({layer.layer for layer in profile.layers})


def test_nothing_is_left_of_it() -> None:
    worker = pf.Worker(product())
    with pytest.raises(RuntimeError, match="mine"), pf.profile() as broken:
        run(worker)
        raise RuntimeError("mine")
    broken.__exit__()  # a second end does nothing
    assert watchers == [] and frame_watchers == []
    assert broken.layers, "what was seen before the error is there"
    with pytest.raises(InputError, match="watches one block"), broken:
        pass
    with pytest.raises(InputError, match="has watched nothing"):
        _ = pf.profile().layers
    first, second = pf.profile(), pf.profile()
    first.__enter__()
    run(worker)
    second.__enter__()
    run(worker)
    first.__exit__()
    run(worker)
    second.__exit__()
    assert [profile.layers[0].runs for profile in (first, second)] == [2, 2]
    assert not worker.time_steps(False), "it times no more"
    worker.time_steps()
    with pf.profile():
        run(worker)
    assert worker.time_steps(False), "it times as it did before"
    worker.release()


def test_profiles_that_overlap_see_the_same_runs() -> None:
    """The first one asks for times before the second one has seen the plan of the run."""
    with pf.Worker(product()) as worker:
        for _ in range(9):
            run(worker)  # from now on a run ends before it is submitted
        first, second = pf.profile(), pf.profile()
        with first:
            run(worker)
            with second:
                run(worker)
                run(worker)
    assert [profile.layers[0].runs for profile in (first, second)] == [3, 2]


def test_threads_with_a_worker_each() -> None:
    failures = list[BaseException]()

    def use() -> None:
        try:
            with pf.Worker(product()) as worker:
                for _ in range(20):
                    run(worker)
        except BaseException as error:
            failures.append(error)

    with pf.profile() as profile:
        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert [times.schedules.count for times in profile.workers if times.schedules] == [20] * 3


def test_a_worker_of_a_gpu_in_a_thread_that_goes_on(gl_context: Any) -> None:
    """The thread that ends the profile may not ask the worker for times, and has those of the first runs."""
    has_run, is_over = threading.Event(), threading.Event()

    def use() -> None:
        with pf.Worker(product(), "gpu_pixel") as worker:
            for _ in range(9):
                run(worker)
            has_run.set()
            is_over.wait()
            run(worker)

    thread = threading.Thread(target=use)
    with pf.profile() as profile:
        thread.start()
        assert has_run.wait(60)
    is_over.set()
    thread.join()
    assert profile.workers[0].schedules.count == 9  # type: ignore[union-attr]
    assert all(7 <= layer.runs <= 8 and layer.seconds for layer in profile.layers)


def test_a_profile_shows_itself() -> None:
    profile = pf.profile()
    assert repr(profile) == str(profile) == "Profile(not begun)" and "not begun" in profile._repr_html_()
    with pf.Worker(product()) as worker, profile:
        run(worker)
    assert repr(profile) == str(profile) and "MatMul" in repr(profile)
    assert "backend" not in str(profile), "the row of the schedule names it"


def test_a_profile_is_saved_under_a_name_that_says_so(tmp_path: Path) -> None:
    with pf.Worker(product()) as worker, pf.profile() as profile:
        run(worker)
    for name in ("frames", "frames.png"):
        with pytest.raises(InputError, match=r"frames.* the suffix \.html or \.json"):
            profile.save(tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_the_tables_fit_eighty_columns() -> None:
    """Long names are shortened in the middle, and numbers are whole."""
    names = ["/backbone/stage.2/block.3/attention/self/query/MatMul_output_0", "y"]
    operators = ["AnOperatorWithALongName", "Add"]
    numbers = ["123.456 ms", "100.0%", "1234.56 MB", "123.4", "12345.6", "gpu_compute"]
    layers, kinds = shortened([names, operators], [numbers, numbers], 80)
    assert max(map(len, layers)) + max(map(len, kinds)) + 2 + sum(len(number) + 2 for number in numbers) == 80
    assert layers[0].startswith("/ba") and "…" in layers[0] and layers[0].endswith("_0")
    assert (layers[1], kinds[1]) == ("y", "Add")
    assert shortened([names], [["1"], ["2"]], 80) == [names]

    nodes = [node("MatMul", "x w", names[0]), node("Softmax", names[0], "y")]
    weights = np.eye(4, dtype=np.float32)
    model = load(nodes, {"x": [4, 4]}, "y", {"w": weights}, optimize=False)
    with pf.Worker(model) as worker, pf.profile() as profile:
        for _ in range(3):
            profile.frame()
            worker.schedule(np.ones((4, 4), np.float32)).peek_output().numpy()
    assert max(map(len, str(profile).splitlines())) <= 80


def test_layers_without_a_time_are_explained() -> None:
    with pf.Worker(product()) as worker, pf.profile() as profile:
        run(worker)
    for record in profile.recorder.records.values():
        for runs in record.segments.values():
            runs.runs.clear()
    assert "– marks layers that no run timed" in str(profile)


def test_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perframe.profiling.recording.MOST_RUNS", 5)
    with pf.Worker(product()) as worker, pf.profile() as profile:
        for _ in range(20):
            profile.frame()
            run(worker)
    (record,) = profile.recorder.records.values()
    assert len(record.schedules) == len(profile.recorder.frames) == 5
    assert {len(runs.runs) for runs in record.segments.values()} == {5}


@pytest.mark.parametrize("gpu", ["gpu_compute", "gpu_pixel"])
def test_fallbacks_and_transfers(gpu: str, gl_context: Any) -> None:
    """float64 stays on the CPU: the values cross twice."""
    nodes = [node("Exp", "x", "a"), node("Cast", "a", "b", to=11), node("Erf", "b", "c"), node("Cast", "c", "d", to=1)]
    model = load([*nodes, node("Neg", "d", "y")], {"x": [64]}, optimize=False)
    if gpu == "gpu_compute" and gl_context.version_code < 430:
        pytest.skip("gpu_compute needs GL 4.3")
    with pf.Worker(model, gpu, gl_context) as worker, pf.profile() as profile:
        for _ in range(3):
            run(worker, np.ones(64, np.float32))
    assert any(fallback.layer == "c" for fallback in profile.workers[0].fallbacks)
    transfers = [layer for layer in profile.layers if layer.operator == "" and layer.layer.startswith("transfer")]
    assert transfers and all(layer.seconds and layer.runs == 3 for layer in transfers)
    assert {layer.backend for layer in profile.layers} == {"cpu", gpu}


class Looker(Script):
    def start(self) -> None:
        self.worker = pf.Worker(product())

    def update(self, _frame: Any) -> None:
        self.worker.schedule(X)

    def destroy(self) -> None:
        self.worker.release()


def test_the_frames_of_an_app(tmp_path: Path) -> None:
    with App(surface=BlankSurface((8, 8)), clock=ManualClock(step=1 / 60)) as app:
        with pf.profile() as profile:
            app.run(Looker(), frames=12)
        assert profile.frames is not None and profile.frames.count == 11
        assert profile.workers[0].schedules is not None and profile.workers[0].schedules.count == 12
    path = tmp_path / "trace.json"
    profile.save(path)
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert {event["cat"] for event in events} == {"frame", "schedule", "MatMul", "Softmax"}
    frames = [event for event in events if event["cat"] == "frame"]
    assert all(one["ts"] + one["dur"] <= two["ts"] + 0.01 for one, two in pairwise(frames))
    first = next(event for event in events if event["cat"] == "schedule")
    assert frames[0]["ts"] <= first["ts"] and first["dur"] <= frames[0]["dur"]


def test_steps_follow_each_other_on_the_timeline(backend: str, backend_context: Any) -> None:
    with pf.Worker(product(), backend, backend_context) as worker, pf.profile() as profile:
        for _ in range(3):
            run(worker)
    (steps,) = [track.events for track in tracks_of(profile) if track.name.endswith(backend)]
    assert len(steps) >= 6
    ends = [event.begin + event.length for event in steps]
    assert all(end <= later.begin + 1 for end, later in zip(ends, steps[1:], strict=False)), "within a microsecond"
    assert steps[0].begin > -1e6 and perfetto(profile)["displayTimeUnit"] == "ms"


def test_a_recorder_hears_of_a_run_that_began_before_it() -> None:
    """A run that advances layer by layer may begin before the profile, and end within."""
    with pf.Worker(product()) as worker:
        steps = worker.schedule_iterable(X)
        next(steps)
        with pf.profile() as profile:
            for _ in steps:
                pass
    assert profile.workers == [] and isinstance(profile.recorder, Recorder)
