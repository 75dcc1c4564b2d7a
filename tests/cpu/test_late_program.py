"""While kernels compile, NumPy computes their layers; between two runs the kernels take over."""

from __future__ import annotations

import importlib
import itertools
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from fresh import run_fresh
from garbage import collect_garbage
from perframe.backends.cpu import reference
from perframe.backends.cpu.compile import compilers, jit
from perframe.backends.cpu.lowering import gemm
from perframe.backends.cpu.program import late_program
from perframe.backends.cpu.program.late_program import LateProgram, Preparation
from perframe.backends.cpu.program.program import NativeStep, PythonStep
from perframe.errors import BackendError
from perframe.testing import Case, check
from small import load, node

TABLES = ("conv", "cumulative", "gather", "grid", "join", "matmul", "norm", "pad", "pool", "quantize")
TABLES += ("recurrent", "reduce", "resize", "rotary", "scatter", "select", "standardize", "deform_conv", "roi")
X = np.random.default_rng(5).normal(size=(1, 4, 12, 12)).astype(np.float32)


class Held:
    """Kernels that are compiled when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._interpreted = 0
        self._waiting: list[Preparation] = []
        self._come = False
        is_compiled, compute = jit.is_compiled, reference.Definition.run

        def counted(layer: Any, storages: Any) -> None:
            self._interpreted += 1
            compute(layer, storages)

        monkeypatch.delenv("PERFRAME_INTERPRET", raising=False)
        monkeypatch.setattr(jit, "is_compiled", lambda kernel: self._come and is_compiled(kernel))
        monkeypatch.setattr(jit, "all_compiled", lambda: self._come)
        monkeypatch.setattr(Preparation, "begin", lambda preparation: self._waiting.append(preparation))
        monkeypatch.setattr(reference.Definition, "run", counted)

    def come(self) -> None:
        """All kernels are there, and the native programs."""
        self._come = True
        for preparation in self._waiting:
            preparation._make()

    def take(self) -> int:
        """The number of layers that NumPy computed since the last call."""
        taken, self._interpreted = self._interpreted, 0
        return taken


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


@pytest.fixture
def never(held: Held, monkeypatch: pytest.MonkeyPatch) -> Held:
    """No kernel comes, even if a run wants to wait for it."""
    monkeypatch.setattr(Preparation, "result", lambda self, wait: None)
    return held


def network() -> pf.Model:
    """Layers of several kernels each, in an order of their own: a convolution with an epilogue, pools, a product."""
    draw = np.random.default_rng(3).normal
    constants = {
        "w": draw(size=(8, 4, 3, 3)).astype(np.float32),
        "b": draw(size=8).astype(np.float32),
        "d": draw(size=(8, 1, 3, 3)).astype(np.float32),
        "m": draw(size=(8, 5)).astype(np.float32),
    }
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("Conv", "r d", "e", group=8, pads=[1, 1, 1, 1]),
        node("Add", "e r", "a"),
        node("MaxPool", "a", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "p", "g"),
        node("Flatten", "g", "f"),
        node("MatMul", "f m", "s"),
        node("Softmax", "s", "y"),
    ]
    return load(nodes, {"x": [1, 4, 12, 12]}, "y", constants)


def result(worker: pf.Worker, x: Any = X) -> Any:
    return worker.schedule(x).peek_output().download_to_array()


def expected(x: Any = X) -> Any:
    with pf.Worker(network()) as worker:
        return result(worker, x)


def late_programs(worker: pf.Worker) -> list[LateProgram]:
    plans = [part.latest_plan for part in worker.parts.planned_parts()]
    programs = [segment.program for plan in plans if plan for segment in plan.segments if hasattr(segment, "program")]
    return [program for program in programs if isinstance(program, LateProgram)]


def tables() -> Iterator[Any]:
    """A part of the cases of each family."""
    for name in TABLES:
        module = importlib.import_module(f"layers.test_{name}")
        lists = [value for value in vars(module).values() if isinstance(value, list)]
        cases = [case for case in itertools.chain(*lists) if isinstance(case, Case)]
        assert cases, name
        yield from (pytest.param(case, id=f"{name}-{case}") for case in cases[:: max(1, len(cases) // 8)])


@pytest.mark.parametrize("case", [*tables()])
def test_definitions_agree_with_the_references(case: Case, never: Held) -> None:
    check(case, "cpu")


def test_numpy_stands_in_for_a_kernel_that_another_one_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The product's own kernel is there, and its epilogue's is a number that the product reads."""
    kernel, held = jit.kernel, jit._Pending("finish", "", tmp_path, compilers.Compilation("finish", "", tmp_path))
    monkeypatch.delenv("PERFRAME_INTERPRET", raising=False)
    monkeypatch.setattr(jit, "kernel", lambda name, text="": held if name == "finish" else kernel(name, text))
    monkeypatch.setattr(jit, "_pending", [held])
    m = np.random.default_rng(3).normal(size=(8, 40)).astype(np.float32)
    model = load([node("MatMul", "x m", "p"), node("Exp", "p", "y")], {"x": [6, 8]}, "y", {"m": m})
    x = np.random.default_rng(4).normal(size=(6, 8)).astype(np.float32)
    jit.kernel("gemm"), jit.settle()
    with pf.Worker(model) as worker:
        assert np.allclose(result(worker, x), np.exp(x @ m), rtol=1e-5)
        assert len(late_programs(worker)) == 1
        held._job.finish(None)  # no process could compile it: it is compiled here
        held._kernel = "finish", kernel_text(), tmp_path / "finish.o"
        late_programs(worker)[0].settle()
        assert np.allclose(result(worker, x), np.exp(x @ m), rtol=1e-5)


def kernel_text() -> str:
    return "@inline\ndef epilogue(x, p):\n    return exp(x)\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["blaze_face_short_range", "mnist-12", "selfie_segmentation", "silero_vad"])
def test_models_compute_the_same(name: str, shared: Path, held: Held) -> None:
    """With the forms that the passes prepare: channels last, packed weights, epilogues, gates."""
    model = pf.load(shared / "models" / f"{name}.onnx")
    draw = np.random.default_rng(1)
    given: dict[str, Any] = {}
    for value in model.inputs:
        shape = tuple(size if isinstance(size, int) else 1 for size in value.shape or ())
        if name == "silero_vad":
            shape = {"input": (1, 576), "state": (2, 1, 128)}.get(value.name, ())
        given[value.name] = draw.normal(size=shape).astype(value.dtype.numpy)
    if "sr" in given:
        given["sr"] = np.array(16000, np.int64)
    with pf.Worker(model) as worker:
        runs = []
        for _ in range(2):
            worker.schedule(given)
            runs.append([worker.peek_output(name).download_to_array() for name in model.output_names])
            counted = held.take()
            assert (counted > 0) == (len(runs) == 1)
            held.come()
    for interpreted, compiled in zip(*runs, strict=True):
        np.testing.assert_allclose(interpreted, compiled, rtol=2e-4, atol=2e-4)


def test_kernels_take_over_between_two_runs(held: Held) -> None:
    with pf.Worker(network()) as worker:
        first = result(worker)
        assert held.take()
        (program,) = late_programs(worker)
        assert program.is_provisional and program.nanoseconds is None and not program.is_brief
        held.come()
        second = result(worker)
        assert not held.take() and not program.is_provisional
    np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-6)


def test_weights_are_packed_when_the_kernels_come(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    packed, pack = [], gemm.pack
    monkeypatch.setattr(gemm, "pack", lambda matrix: (packed.append(matrix.shape), pack(matrix))[1])
    with pf.Worker(network()) as worker:
        before = result(worker)
        assert not packed
        held.come()
        assert len(packed) == 2, "of a convolution and of a product"
        np.testing.assert_allclose(result(worker), before, rtol=1e-5, atol=1e-6)
        assert len(packed) == 2


def test_a_run_ends_as_it_began(held: Held) -> None:
    with pf.Worker(network()) as worker:
        steps = worker.schedule_iterable(X)
        for _ in itertools.islice(steps, 3):
            pass
        worker._own.host.wait_for_jobs()
        held.come()
        for _ in steps:
            pass
        (program,) = late_programs(worker)
        np.testing.assert_allclose(worker.peek_output().download_to_array(), expected(), rtol=1e-5, atol=1e-6)
        assert program.is_provisional
        result(worker)
        assert not program.is_provisional


def test_the_exchange_while_runs_are_under_way(held: Held) -> None:
    """Runs follow each other, with arrays and tensors in turns: each has its own input, before and after."""
    given = [X * scale for scale in (0.5, 1, -1, 2)]
    wanted = [expected(x) for x in given]
    held.take()
    tensors = [pf.Tensor(x) for x in given]
    with pf.Worker(network()) as worker:
        requests = []
        for turn in range(60):
            at = turn % 4
            value = tensors[at] if turn % 3 else given[at]
            requests.append((at, worker.schedule(value).peek_output().readback_request()))
            if turn == 20:
                threading.Thread(target=held.come).start()
        for at, request in requests:
            np.testing.assert_allclose(request.result(wait=True), wanted[at], rtol=1e-5, atol=1e-6)


def test_single_kernels_are_used_when_they_come(held: Held) -> None:
    with pf.Worker(network()) as worker:
        first = result(worker)
        assert held.take()
        held._come = True  # the kernels, and no program yet
        second = result(worker)
        assert not held.take() and late_programs(worker)[0].is_provisional
    np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-6)


def test_one_missing_kernel_leaves_the_other_layers_to_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, held = expected(), Held(monkeypatch)
    monkeypatch.setattr(jit, "is_compiled", lambda kernel: True)
    monkeypatch.setattr(NativeStep, "missing", property(lambda step: [step.kernel] if step.layer == "p" else []))
    with pf.Worker(network()) as worker:
        np.testing.assert_allclose(result(worker), wanted, rtol=1e-5, atol=1e-6)
        (program,) = late_programs(worker)
        assert program._interpreted is not None and held.take() == 1
        kinds = {step.layer: type(step) for step in program._interpreted.steps}
        assert kinds.pop("p") is PythonStep and set(kinds.values()) == {NativeStep}


def test_a_long_layer_waits_for_its_kernel(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "LONG", 0)
    with pf.Worker(
        load([node("MatMul", "x w", "y")], {"x": [2, 3]}, "y", {"w": np.ones((3, 4), np.float32)})
    ) as worker:
        assert (result(worker, np.ones((2, 3), np.float32)) == 3).all()
    assert not held.take()


def test_release_while_kernels_compile(held: Held) -> None:
    worker = pf.Worker(network())
    result(worker)
    program = weakref.ref(late_programs(worker)[0])
    worker.release()
    del worker
    collect_garbage()
    assert program() is None
    held.come()  # no program waits for it


def test_an_error_of_the_compiler_ends_the_next_run(held: Held) -> None:
    with pf.Worker(network()) as worker:
        result(worker)
        held._waiting[0]._kernels = [Broken()]  # type: ignore[list-item]
        held.come()
        with pytest.raises(BackendError, match="the kernel 'conv' could not be compiled"):
            result(worker)


class Broken:
    def __int__(self) -> int:
        raise compilers.compile_error("conv", "TypingError")


def test_times_of_numpy_are_no_costs(held: Held) -> None:
    with pf.Worker(network()) as worker:
        for _ in worker.schedule_iterable(X, budget_ms=1000):
            pass
        (program,) = late_programs(worker)
        segment = next(part.latest_plan for part in worker.parts.planned_parts()).segments[0]
        assert program.is_provisional and not np.isfinite(segment.costs.seconds).any()
        held.come()
        for _ in worker.schedule_iterable(X, budget_ms=1000):
            pass
        for _ in worker.schedule_iterable(X, budget_ms=1000):
            pass
        assert np.isfinite(segment.costs.seconds).all()


@pytest.mark.slow
def test_a_warm_up_of_slices_runs_once_until_the_kernels_are_there(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    share = [0.5]
    monkeypatch.setattr("perframe.execution.inspected.kernel_progress", lambda: share[0])
    with pf.Worker(network()) as worker:
        for _ in range(30):
            assert not worker.warmup(X, budget_ms=5)
        worker._own.host.wait_for_jobs()
        once = held.take()
        for _ in range(30):
            assert not worker.warmup(X, budget_ms=5)
            result(worker, X)  # runs come in between
        assert once and held.take() == 30 * once
        held.come()
        share[0] = 1.0
        while not worker.warmup(X, budget_ms=5):
            pass
        worker._own.host.wait_for_jobs()
        assert not late_programs(worker)[0].is_provisional and not held.take()


def test_a_report_with_repeats_is_of_kernels(held: Held) -> None:
    with pf.Worker(network()) as worker:
        result(worker)
        assert all(step.seconds is None for step in worker.report())
        threading.Timer(0.2, held.come).start()
        assert all(step.seconds for step in worker.report(2))


FIRST = """
import numpy as np, perframe as pf
from perframe.backends import settle_kernels
graph = pf.FunctionalGraph()
x = graph.add_input(pf.DataType.FLOAT32, (8, 16))
model = graph.compile(pf.functional.softmax(pf.functional.tanh(x) * 2 + x, 1))
values = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
with pf.Worker(model) as worker:
    first = worker.schedule(values).peek_output().download_to_array()
    print(worker.ready)
    settle_kernels()
    again = worker.schedule(values).peek_output().download_to_array()
    np.testing.assert_allclose(first, again, rtol=1e-5, atol=1e-6)
    (part,) = worker.parts.planned_parts()
    print(worker.ready, part.latest_plan.is_provisional)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("compilers", "ready"), [("1", "False"), ("0", "True")])
def test_the_first_result_comes_before_the_kernels(tmp_path: Path, compilers: str, ready: str) -> None:
    """Unless no other process may compile them."""
    options = {"PERFRAME_CACHE": str(tmp_path), "PERFRAME_COMPILERS": compilers, "PERFRAME_INTERPRET": "1"}
    assert run_fresh(FIRST, **options).split() == [ready, "True", "False"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_has_kernels_of_its_own(tmp_path: Path) -> None:
    code = FIRST.replace("    print(worker.ready)\n    settle", "    import os\n    child = os.fork()\n    settle")
    code = code.replace("    print(", "    if child:\n        assert os.waitpid(child, 0)[1] == 0\n    print(")
    options = {"PERFRAME_CACHE": str(tmp_path), "PERFRAME_COMPILERS": "1", "PERFRAME_INTERPRET": "1"}
    assert "True False" in run_fresh(code, **options)


def test_no_steps_are_kept_for_programs_that_are_ready() -> None:
    """A definition costs nothing where kernels are in the cache."""
    expected()
    with pf.Worker(network()) as worker:
        result(worker)
        assert not late_programs(worker)


def test_only_late_programs_start_threads(held: Held) -> None:
    with pf.Worker(network()) as worker:
        result(worker)
        held.come()
        result(worker)
    assert not late_program._preparing
