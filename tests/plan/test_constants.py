"""Workers of one model share the prepared model, its constants, and the constants in kernels' order."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import perframe as pf
from garbage import collect_garbage
from perframe.backends.cpu.lowering import gemm
from perframe.ir import Layer, Value
from perframe.passes.prepared import freeze
from perframe.plan.constants import UNCHANGED
from small import load, node

Array = NDArray[Any]
W = np.random.default_rng(5).standard_normal((24, 16, 1, 1)).astype(np.float32)
X = np.random.default_rng(6).standard_normal((1, 16, 5, 7)).astype(np.float32)
EXPECTED = np.einsum("oi,nihw->nohw", W[:, :, 0, 0], X)


def conv() -> pf.Model:
    return load([node("Conv", "x w", "y")], {"x": X.shape}, constants={"w": W})


def result(worker: pf.Worker, x: Array = X) -> Array:
    array: Array = worker.schedule(x).peek_output().download_to_array()
    return array


def packed(worker: pf.Worker) -> list[Array]:
    """The arrays that were made of a worker's constants."""
    (part,) = worker.parts._parts
    made = part.constants._made.items()  # type: ignore[attr-defined]
    return [operand.storage.memory for (_, _, kind), operand in made if kind != UNCHANGED]


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of all that is packed."""
    made: list[tuple[int, ...]] = []
    pack = gemm.pack

    def counting(matrices: Array) -> Array:
        made.append(matrices.shape)
        return pack(matrices)

    monkeypatch.setattr(gemm, "pack", counting)
    return made


def test_weights_are_packed_once(packs: list[tuple[int, ...]]) -> None:
    model = conv()
    with pf.Worker(model) as first, pf.Worker(model) as second:
        np.testing.assert_allclose(result(first), EXPECTED, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(result(second), result(first))
        assert len(packs) == 1
        assert len(packed(first)) > 0
        assert all(a is b for a, b in zip(packed(first), packed(second), strict=True))
        assert first.memory_use[0].packed == second.memory_use[0].packed == sum(a.nbytes for a in packed(first))


def test_models_of_their_own_share_nothing(packs: list[tuple[int, ...]]) -> None:
    with pf.Worker(conv()) as first, pf.Worker(conv()) as second:
        np.testing.assert_array_equal(result(first), result(second))
        assert len(packs) == 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_last_worker_frees_them(order: tuple[int, int]) -> None:
    model = conv()
    workers = [pf.Worker(model), pf.Worker(model)]
    for worker in workers:
        result(worker)
    made = [weakref.ref(array) for array in packed(workers[0])]
    gc.disable()  # it is not left to the collector
    try:
        workers[order[0]].release()
        assert all(array() is not None for array in made)
        np.testing.assert_allclose(result(workers[order[1]], 2 * X), 2 * EXPECTED, rtol=1e-4, atol=1e-5)
        workers[order[1]].release()
        assert all(array() is None for array in made)
    finally:
        gc.enable()
    with pf.Worker(model) as another:
        np.testing.assert_allclose(result(another), EXPECTED, rtol=1e-4, atol=1e-5)


def test_nothing_is_kept_for_workers_that_were_dropped() -> None:
    model = conv()
    worker = pf.Worker(model)
    result(worker)
    kept = [weakref.ref(worker.parts.model), *map(weakref.ref, packed(worker)), weakref.ref(model)]
    del worker, model
    collect_garbage()
    assert [reference() for reference in kept] == [None] * len(kept)


def test_workers_may_begin_at_once(packs: list[tuple[int, ...]]) -> None:
    model, results, errors = conv(), list[Array](), list[Exception]()
    gate = threading.Barrier(4)

    def begin() -> None:
        try:
            gate.wait(20)
            for _ in range(5):
                with pf.Worker(model) as worker:
                    results.append(result(worker))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(results) == 20
    for y in results:
        np.testing.assert_array_equal(y, results[0])


def replace_constant(model: pf.Model) -> None:
    model.value("w").constant = model.constants["w"] * 2


def change_in_place(model: pf.Model) -> None:
    np.multiply(model.constants["w"], 2, out=model.constants["w"])


def add_layer(model: pf.Model) -> None:
    two, last, result = model.add_constant("two", np.float32(2).reshape(())), model.layers[-1], model.outputs[0]
    last.outputs = [Value("half")]
    model.insert(Layer("Mul", "double", [last.output, two], [result]))


@pytest.mark.parametrize("change", [replace_constant, change_in_place, add_layer])
def test_a_model_that_was_changed_is_prepared_again(
    change: Callable[[pf.Model], None], backend: str, backend_context: Any
) -> None:
    """And the worker from before goes on as it was."""
    model = conv()
    if change is change_in_place:
        model.value("w").constant = np.array(W)
    with pf.Worker(model, backend, backend_context) as before:
        result(before)
        change(model)
        with pf.Worker(model, backend, backend_context) as after:
            np.testing.assert_allclose(result(after), 2 * EXPECTED, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(result(before), EXPECTED, rtol=1e-4, atol=1e-4)


def test_attributes_count(backend: str, backend_context: Any) -> None:
    model = load([node("Softmax", "x", "y", axis=1)], {"x": [2, 3]})
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with pf.Worker(model, backend, backend_context) as before:
        np.testing.assert_allclose(result(before, x).sum(1), 1, rtol=1e-5)
        model.layers[0].attributes["axis"] = 0
        with pf.Worker(model, backend, backend_context) as after:
            np.testing.assert_allclose(result(after, x).sum(0), 1, rtol=1e-5)


def test_workers_of_all_backends(backend: str, backend_context: Any) -> None:
    model = conv()
    with pf.Worker(model, backend, backend_context) as first:
        result(first)
        with pf.Worker(model, backend, backend_context) as second:
            assert second.parts.model is first.parts.model
        np.testing.assert_allclose(result(first), EXPECTED, rtol=1e-4, atol=1e-4)


def test_constants_of_a_loaded_model_need_no_copy() -> None:
    model = conv()
    assert not any(value.flags.writeable for value in model.constants.values())
    own, others = conv(), conv()
    own.value("w").constant = others.value("w").constant = np.array(W)
    lonely = conv()
    lonely.value("w").constant = np.array(W)
    for model in (own, lonely):
        freeze(model, besides=others)
    assert own.constants["w"].flags.writeable and not lonely.constants["w"].flags.writeable
