"""Plans on GL follow sizes: one program serves other shapes, with other numbers."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from perframe import functional as F
from perframe.backends.gl.program import sequence
from perframe.plan import planner, tracing
from perframe.plan.refit import FittedPlan
from perframe.testing.checks import trace
from small import load, node
from support import GL_BACKENDS

pytestmark = [pytest.mark.parametrize("backend", GL_BACKENDS, indirect=True)]


def network(batch: Any = "batch") -> pf.Model:
    """Convolutions, a resize, products and a softmax over pictures of any size."""
    random = np.random.default_rng(4)

    def weights(*shape: int) -> Any:
        return (random.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)

    graph = pf.FunctionalGraph("sizes")
    x = graph.add_input("float32", (batch, 3, "height", "width"), "x")
    y = F.relu(F.conv2d(x, weights(8, 3, 3, 3), stride=2, padding=1))
    y = F.max_pool2d(y, 2) + F.avg_pool2d(y, 2)
    y = F.interpolate(y, scale_factor=2.0, mode="nearest")
    y = F.conv2d(y, weights(4, 8, 1, 1))
    pooled = F.reduce_mean(y, [2, 3])
    scores = F.softmax(F.matmul(pooled, weights(4, 5)), -1)
    return graph.compile(picture=F.transpose(y, 2, 3), scores=scores)


def values(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows with each plan that is made."""
    found: list[str] = []
    init = planner.Planner.__init__

    def counted(self: Any, *given: Any) -> None:
        if threading.current_thread() is threading.main_thread():  # jobs trace beside it
            found.append(given[0].name)
        init(self, *given)

    monkeypatch.setattr(planner.Planner, "__init__", counted)
    return found


def check(worker: pf.Worker, model: pf.Model, *shape: int) -> None:
    x = values(*shape)
    worker.schedule(x)
    for name, want in pf.run(model, x).items():
        np.testing.assert_allclose(worker.peek_output(name).numpy(), want, 2e-4, 2e-5, err_msg=f"{name} of {shape}")


def test_runs_that_frames_cut_anywhere_have_the_numbers_of_their_sizes(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program keeps some command lists only, and records the others again."""
    monkeypatch.setattr(sequence, "MOST_LISTS", 2)
    model = network()
    with pf.Worker(model, backend, strict=True) as worker:
        check(worker, model, 1, 3, 32, 48)
        (part,) = trace(worker)
        part.evict_all()
        for shape in [(2, 3, 64, 80), (1, 3, 24, 28), (3, 3, 36, 44)]:
            x = values(*shape)
            assert sum(1 for _ in worker.schedule_iterable(x)) > 2
            for name, want in pf.run(model, x).items():
                np.testing.assert_allclose(worker.peek_output(name).numpy(), want, 2e-4, 2e-5, err_msg=f"{name}")


def test_new_shapes_are_not_planned(backend: str, planned: list[str]) -> None:
    model = network()
    shapes = [(1, 3, 32, 48), (1, 3, 36, 48), (2, 3, 64, 80), (1, 3, 24, 28), (3, 3, 36, 44), (1, 3, 120, 96)]
    with pf.Worker(model, backend, strict=True) as worker:
        for shape in shapes:
            check(worker, model, *shape)
            (part,) = trace(worker)
        part.evict_all()
        expected = [pf.run(model, values(*shape)) for shape in shapes]
        planned.clear()
        for _ in range(2):
            for shape, outputs in zip(shapes, expected, strict=True):
                worker.schedule(values(*shape))
                for name, want in outputs.items():
                    np.testing.assert_allclose(worker.peek_output(name).numpy(), want, 2e-4, 2e-5)
        assert not planned


def test_many_shapes_need_no_limit_of_plans(backend: str, planned: list[str]) -> None:
    heights = range(32, 68, 3)
    with pf.Worker(network(1), backend) as worker:
        for height in heights:
            worker.schedule(values(1, 3, height, 40))
            (part,) = trace(worker)
        part.evict_all()
        planned.clear()
        for _ in range(2):
            for height in heights:
                worker.schedule(values(1, 3, height, 40)).peek_output().numpy()
        assert not planned
        assert len(part._plans) < len(heights) // 2, "a plan for each kind of sizes"


@pytest.mark.quick(cases=0)
def test_workers_share_templates_and_not_numbers(backend: str) -> None:
    """Two workers run one model with different sizes in turns, with runs that end early between."""
    model = network()
    with pf.Worker(model, backend) as one, pf.Worker(model, backend) as other:
        check(one, model, 1, 3, 32, 32)
        trace(one)
        for height in (16, 40, 24, 64):
            check(one, model, 1, 3, height, 32)
            steps = other.schedule_iterable(values(2, 3, 32, height))
            next(steps)
            check(other, model, 1, 3, 32, height + 4)
            check(one, model, 1, 3, height, 32)


@pytest.mark.quick(cases=0)
def test_inputs_that_wait_keep_their_values(backend: str) -> None:
    """A run with another shape comes between the begin of a run and its first step."""
    model = network()
    with pf.Worker(model, backend) as worker:
        check(worker, model, 1, 3, 32, 32)
        trace(worker)
        check(worker, model, 1, 3, 36, 32)
        x = values(1, 3, 36, 32)
        steps = worker.schedule_iterable(x)
        check(worker, model, 1, 3, 64, 64)
        check(worker, model, 1, 3, 36, 32)
        for _ in steps:
            pass
        for name, want in pf.run(model, x).items():
            np.testing.assert_allclose(worker.peek_output(name).numpy(), want, 2e-4, 2e-5)


@pytest.mark.quick(cases=0)
def test_budgets_divide_steps_of_any_size(backend: str) -> None:
    model = network()
    with pf.Worker(model, backend) as worker:
        check(worker, model, 1, 3, 32, 32)
        trace(worker)
        for shape in ((1, 3, 64, 64), (1, 3, 128, 160), (1, 3, 64, 64)):
            x = values(*shape)
            expected = pf.run(model, x)
            for _ in range(3):
                for _ in worker.schedule_iterable(x, budget_ms=0.05):
                    pass
                for name, want in expected.items():
                    np.testing.assert_allclose(worker.peek_output(name).numpy(), want, 2e-4, 2e-5)


def test_a_released_plan_is_made_again(backend: str) -> None:
    model = network()
    with pf.Worker(model, backend) as worker:
        check(worker, model, 1, 3, 32, 32)
        (part,) = trace(worker)
        for height in (32, 36):
            check(worker, model, 1, 3, height, 32)
            part.evict_all()
            part._plans.evict_old()
        check(worker, model, 1, 3, 40, 32)
        report = worker.report(repeats=1)
        assert report and all(step.seconds is not None for step in report)


@pytest.mark.quick(cases=0)
def test_nothing_holds_plans_that_were_evicted(backend: str) -> None:
    model, heights = network(), (32, 36)
    with pf.Worker(model, backend) as worker:
        for height in heights:
            check(worker, model, 1, 3, height, 48)
            (part,) = trace(worker)
        plans = []
        for height in heights * 2:
            part.evict_all()
            part._plans.evict_old()
            check(worker, model, 1, 3, height, 48)
            assert isinstance(part.latest_plan, FittedPlan)
            plans.append(weakref.ref(part.latest_plan))
        collect_garbage()
        assert [plan() is None for plan in plans] == [True, True, True, False]


def test_a_trace_waits_for_a_second_shape(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most models have open dims and always see one shape: a trace would take time from their frames for nothing."""
    with pf.Worker(network(), backend) as worker:
        begun: list[Any] = []
        monkeypatch.setattr(tracing, "trace_later", lambda trace, in_job: begun.append(trace))
        for _ in range(3):
            worker.schedule(values(1, 3, 32, 32))
        assert not begun
        for height in (36, 40, 44):
            worker.schedule(values(1, 3, height, 32))
        assert begun


@pytest.mark.quick(cases=0)
def test_each_context_has_templates_of_its_objects(backend: str, gl_context: Any) -> None:
    """A template knows the names of weights in its context, which are other objects in another one."""
    import moderngl

    model = network()
    contexts = [moderngl.create_context(standalone=True, backend="egl", require=gl_context.version_code) for _ in "ab"]
    try:
        for index, ctx in enumerate(contexts):
            with ctx:
                fillers = [ctx.buffer(reserve=64) for _ in range(5 * index)]  # so that names differ
                with pf.Worker(model, backend, ctx) as worker:
                    for height in (32, 36):
                        x = values(1, 3, height, 32)
                        worker.schedule(x)
                        found = {name: worker.peek_output(name).numpy() for name in model.output_names}
                        for name, want in pf.run(model, x).items():
                            np.testing.assert_allclose(found[name], want, 2e-4, 2e-5)
                        trace(worker)
                assert len(fillers) == 5 * index
    finally:
        gl_context.__enter__()
        for ctx in contexts:
            ctx.release()
        gl_context.__enter__()


@pytest.mark.quick(cases=0)
def test_the_last_worker_takes_templates_and_weights_along(backend: str) -> None:

    from perframe.backends.gl.context.devices import device_for

    model, device = network(), device_for(None)
    for _ in range(2):
        with pf.Worker(model, backend) as worker:
            for height in (32, 36, 32):
                worker.schedule(values(1, 3, height, 32)).peek_output().numpy()
                (part,) = trace(worker)
            assert any(device.templates.values())
        del worker, part
        collect_garbage()
        assert not any(len(known) for known in device.templates.values())


def test_a_trace_asks_for_constants_that_only_the_host_had(backend: str, planned: list[str]) -> None:
    """Rows at known positions are copied when planned. For any size the device reads the whole table, which the next
    run uploads.
    """
    table = np.random.default_rng(3).standard_normal((600, 64)).astype(np.float32)
    numbers = {"table": table, "zero": np.int64(0), "one": np.int64(1), "first": np.int64([0])}
    nodes = [
        *(node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Range", "zero n one", "at")),
        *(node("Gather", "table at", "rows"), node("Add", "x rows", "sum")),
        *(node("Unsqueeze", "n first", "n1"), node("Gather", "table n1", "row"), node("Add", "sum row", "y")),
    ]
    model = load(nodes, {"x": ["n", 64]}, constants=numbers)
    with pf.Worker(model, backend) as worker:
        for size in (3, 4, 5):
            worker.schedule(values(size, 64))
            (part,) = trace(worker)
        part.evict_all()
        planned.clear()
        for size in (3, 30, 7):
            x = values(size, 64)
            want = x + table[:size] + table[size]
            np.testing.assert_array_equal(worker.schedule(x).peek_output().numpy(), want)
        assert not planned
