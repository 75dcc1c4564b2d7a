"""Weights lie in a context once, and the values of plans that never run together share storage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from gl.graphs import graph
from perframe.backends.gl.compute import BufferStorage
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.pixel import TextureStorage

random = np.random.default_rng(7)
WEIGHTS = {
    "w": random.uniform(-1, 1, (64, 3, 3, 3)).astype(np.float32),
    "b": random.uniform(-1, 1, 64).astype(np.float32),
    "scale": random.uniform(1, 2, (64, 1, 1)).astype(np.float32),
    "matrix": random.uniform(-1, 1, (64, 48)).astype(np.float32),
}


def network() -> pf.Model:
    """A convolution with bias, a product with a constant, a mean over pixels, and a product with a matrix."""
    return graph(
        [
            ("Conv", ["x", "w", "b"], ["c"], {"pads": [1, 1, 1, 1]}),
            ("Softmax", ["c"], ["s"], {"axis": 1}),
            ("Mul", ["s", "scale"], ["m"]),
            ("GlobalAveragePool", ["m"], ["g"]),
            ("Flatten", ["g"], ["f"]),
            ("MatMul", ["f", "matrix"], ["y"]),
        ],
        {"x": ("n", 3, "height", "width")},
        constants=WEIGHTS,
    )


def expected(x: Any) -> Any:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    c = np.einsum("nchwij,ocij->nohw", windows, WEIGHTS["w"]) + WEIGHTS["b"][:, None, None]
    e = np.exp(c - c.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True) * WEIGHTS["scale"]).mean((2, 3)) @ WEIGHTS["matrix"]


def picture(*size: int) -> Any:
    return random.uniform(-1, 1, (1, 3, *size)).astype(np.float32)


@pytest.fixture
def uploads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes of each upload to the GPU."""
    made: list[int] = []
    for kind in (BufferStorage, TextureStorage):
        upload = kind.upload

        def counted(storage: Any, array: Any, upload: Any = upload) -> None:
            made.append(np.asarray(array).nbytes)
            upload(storage, array)

        monkeypatch.setattr(kind, "upload", counted)
    yield made


def run(worker: pf.Worker, x: Any) -> None:
    found = worker.schedule(x).peek_output().download_to_array()
    np.testing.assert_allclose(found, expected(x), rtol=1e-4, atol=1e-4)


def test_another_shape_uploads_its_input_alone(where: str, gl_context: Any, uploads: list[int]) -> None:
    with pf.Worker(network(), where, gl_context, strict=True) as worker:
        run(worker, picture(6, 5))
        weights = sum(value.nbytes for value in WEIGHTS.values())
        first = sum(uploads) - 4 * 3 * 6 * 5
        assert weights <= first < 2 * weights, "each is uploaded once, in the order of its kernel"
        for size in ((7, 5), (3, 9), (12, 20)):
            uploads.clear()
            run(worker, picture(*size))
            assert uploads == [4 * 3 * size[0] * size[1]]


def test_workers_in_a_context_share_weights(where: str, gl_context: Any, uploads: list[int]) -> None:
    model, x = network(), picture(4, 4)
    with pf.Worker(model, where, gl_context, strict=True) as first:
        run(first, x)
        with pf.Worker(model, where, gl_context, strict=True) as second:
            uploads.clear()
            run(second, x)
            assert uploads == [x.nbytes]
        run(first, x)  # the weights are still there
    uploads.clear()
    with pf.Worker(model, where, gl_context, strict=True) as third:
        run(third, x)
    assert len(uploads) > 1, "the last worker has freed them"


def test_another_context_has_weights_of_its_own(where: str, gl_context: Any, uploads: list[int]) -> None:
    model, x = network(), picture(4, 4)
    with pf.Worker(model, where, gl_context, strict=True) as first:
        run(first, x)
        count = len(uploads)
        with pf.Worker(model, where, strict=True) as second:  # in a headless context
            run(second, x)
        run(first, x)
    assert len(uploads) == 2 * count + 1
    collect_garbage()


def chain(layers: int = 6) -> pf.Model:
    """Softmaxes over pictures of any size, one after the other."""
    names = ["x", *(f"t{k}" for k in range(1, layers)), "y"]
    nodes = [("Softmax", [a], [b], {"axis": k % 3 + 1}) for k, (a, b) in enumerate(pairwise(names))]
    return graph(nodes, {"x": (1, "channels", "height", "width")})


def softmaxes(x: Any, layers: int = 6) -> Any:
    for k in range(layers):
        e = np.exp(x.astype(np.float64) - x.max(k % 3 + 1, keepdims=True))
        x = e / e.sum(k % 3 + 1, keepdims=True)
    return x


def pool_bytes(worker: pf.Worker) -> int:
    backend: Any = worker._own.backend
    return sum(slot.bytes for slot in backend.pool.slots)


def test_plans_share_storage(where: str, gl_context: Any) -> None:
    """Plans need the memory of the largest, in whatever order they are made, and each still computes its own values."""
    sizes = ((16, 20), (64, 64), (3, 5), (40, 30))
    alone = []
    for size in sizes:
        with pf.Worker(chain(), where, gl_context, strict=True) as worker:
            worker.schedule(picture(*size))
            alone.append(pool_bytes(worker))
            assert worker.memory_use[0].workspace <= alone[-1]
    with pf.Worker(chain(), where, gl_context, strict=True) as worker:
        for turn in range(3):
            for size in sizes:
                x = picture(*size)
                found = worker.schedule(x).peek_output().download_to_array()
                np.testing.assert_allclose(found, softmaxes(x), rtol=1e-4, err_msg=f"{size} in turn {turn}")
        assert 0 < pool_bytes(worker) <= max(alone)


def test_a_later_run_of_another_shape_ends_a_run(where: str, gl_context: Any) -> None:
    small, large = picture(4, 4), picture(33, 40)
    with pf.Worker(chain(), where, gl_context, strict=True) as worker:
        steps = worker.schedule_iterable(small)
        next(steps)
        found = worker.schedule(large).peek_output().download_to_array()
        np.testing.assert_allclose(found, softmaxes(large), rtol=1e-4)
        with pytest.raises(pf.InputError, match="another run began"):
            next(steps)
        list(worker.schedule_iterable(small))
        np.testing.assert_allclose(worker.peek_output().download_to_array(), softmaxes(small), rtol=1e-4)


def test_a_worker_frees_the_pool(where: str, gl_context: Any) -> None:
    with pf.Worker(chain(), where, gl_context, strict=True) as worker:
        worker.schedule(picture(4, 4))
        backend: Any = worker._own.backend
        storages = [slot.storage for slot in backend.pool.slots]
        assert storages and all(storage.is_open for storage in storages)
    assert not any(storage.is_open for storage in storages)


def test_steps_of_a_recurrent_layer_share_storage(where: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An LSTM needs gates and cells of one step, not of all steps."""
    hidden, inputs = 8, 4
    weights = {
        "w": random.uniform(-1, 1, (1, 4 * hidden, inputs)).astype(np.float32),
        "r": random.uniform(-1, 1, (1, 4 * hidden, hidden)).astype(np.float32),
    }
    model = graph(
        [("LSTM", ["x", "w", "r"], ["y"], {"hidden_size": hidden})],
        {"x": ("steps", 1, inputs)},
        constants=weights,
    )
    counts, device = list[int](), device_for(gl_context)
    for steps in (10, 20):
        with pf.Worker(model, where, gl_context, strict=True) as worker:
            before = device.allocations
            worker.schedule(np.ones((steps, 1, inputs), np.float32)).peek_output().download_to_array()
            counts.append(device.allocations - before)
    assert counts[1] - counts[0] <= 1.3 * 10, "a step has a state of its own, and a part in joining them"


def test_planning_leaves_a_run_alone(where: str, gl_context: Any) -> None:
    """A plan that needs more room is made while a run of another shape is under way."""
    small, large = picture(8, 8), picture(40, 50)
    with pf.Worker(chain(), where, gl_context, strict=True) as worker:
        worker.schedule(small)
        steps = worker.schedule_iterable(small)
        for _ in range(3):
            next(steps)
        (part,) = worker.parts.planned_parts()
        part._plan_for({"x": pf.Tensor(large)})
        list(steps)
        np.testing.assert_allclose(worker.peek_output().download_to_array(), softmaxes(small), rtol=1e-4)
        found = worker.schedule(large).peek_output().download_to_array()
        np.testing.assert_allclose(found, softmaxes(large), rtol=1e-4)
