"""A new input shape is planned with little work: layers that are alike are worked out once, and sizes are followed."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from perframe.backends.cpu import backend as cpu
from perframe.backends.cpu.compile import jit
from perframe.ir.declaration import Declaration
from perframe.tensor import storage
from perframe.testing.checks import trace
from small import load, node

BLOCKS = 6


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """While kernels of arithmetic are being compiled, other sizes are planned."""
    for name in ("arithmetic", "arithmetic.write"):
        jit.kernel(name)
    jit.settle()


def forget(counted: dict[str, int], worker: pf.Worker) -> None:
    """Count anew after sizes are traced and all kernels are compiled."""
    trace(worker)
    counted.clear()


def network(seed: int = 0, pads: tuple[int, ...] = (1,) * BLOCKS) -> tuple[pf.Model, dict[str, Any]]:
    """Blocks of a product, an activation, padding and a slice, each with weights of its own."""
    random = np.random.default_rng(seed)
    constants: dict[str, Any] = {"starts": np.array([0]), "ends": np.array([8]), "axes": np.array([1])}
    nodes, last = [], "x"
    for index, pad in enumerate(pads):
        constants[f"w{index}"] = random.standard_normal((8, 8)).astype(np.float32)
        constants[f"b{index}"] = random.standard_normal((1, 8)).astype(np.float32)
        constants[f"p{index}"] = np.array([0, 0, 0, pad])
        nodes += [
            node("MatMul", f"{last} w{index}", f"m{index}"),
            node("Add", f"m{index} b{index}", f"a{index}"),
            node("Softmax", f"a{index}", f"s{index}"),
            node("Pad", f"s{index} p{index}", f"q{index}"),
            node("Slice", f"q{index} starts ends axes", f"c{index}"),
        ]
        last = f"c{index}"
    nodes.append(node("Neg", last, "y"))
    return load(nodes, {"x": ["n", 8]}, constants=constants), constants


def expected(x: Any, constants: dict[str, Any], count: int = BLOCKS) -> Any:
    for index in range(count):
        x = x @ constants[f"w{index}"] + constants[f"b{index}"]
        x = np.exp(x - x.max(1, keepdims=True))
        x = x / x.sum(1, keepdims=True)
    return -x


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often shapes were inferred and layers lowered, by operator."""
    counts: dict[str, int] = {}
    infer, lower = Declaration.outputs_for, cpu._lower

    def count_infer(self: Declaration, *given: Any) -> Any:
        counts[f"infer {self.name}"] = counts.get(f"infer {self.name}", 0) + 1
        return infer(self, *given)

    def count_lower(layer: Any, *given: Any) -> Any:
        counts[f"lower {layer.op}"] = counts.get(f"lower {layer.op}", 0) + 1
        return lower(layer, *given)

    monkeypatch.setattr(Declaration, "outputs_for", count_infer)
    monkeypatch.setattr(cpu, "_lower", count_lower)
    return counts


def test_layers_that_are_alike_are_worked_out_once(counted: dict[str, int]) -> None:
    model, constants = network()
    for rows in (3, 1, 40):
        with pf.Worker(model) as worker:
            x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
            forget(counted, worker)
            made = worker.schedule(x).peek_output().download_to_array()
            np.testing.assert_allclose(made, expected(x, constants), 1e-4, 1e-5)
            # the first product reads the input, and the last block's result is the output: those may differ; a slice
            # that is a range of its input has no steps at all
            counted.pop("lower Slice", None)
            assert counted and max(counted.values()) <= 2, counted


def test_a_size_that_would_be_planned_like_another_is_not_planned(counted: dict[str, int]) -> None:
    model, constants = network()
    with pf.Worker(model) as worker:
        first, others = (3, True), ((5, False), (7, False), (40, False), (2, False))
        for rows, planned in (first, *others, (1, True), (0, True), (0, False)):
            x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
            forget(counted, worker)
            made = worker.schedule(x).peek_output().download_to_array()
            np.testing.assert_allclose(made, expected(x, constants) if rows else x, 1e-4, 1e-5)
            assert bool(counted) == planned, (rows, counted)


def test_layers_that_differ_in_a_constant_are_not_alike() -> None:
    """Each pads by another number, which is among the numbers of its kernel."""
    pads = (0, 1, 2, 3, 1, 2)
    constants = {f"p{index}": np.array([0, 0, 0, pad]) for index, pad in enumerate(pads)}
    nodes = [node("Pad", f"{'x' if not i else f'q{i - 1}'} p{i}", f"q{i}") for i in range(len(pads))]
    shrink = [node("ReduceSum", f"q{len(pads) - 1}", "y", keepdims=0)]
    model = load([*nodes, *shrink], {"x": ["n", 8]}, "y q5", constants=constants)
    with pf.Worker(model) as worker:
        for rows in (2, 3):
            x = np.ones((rows, 8), np.float32)
            worker.schedule(x)
            assert worker.peek_output("q5").download_to_array().shape == (rows, 8 + sum(pads))
            assert worker.peek_output("y").download_to_array() == 8 * rows


def test_values_that_a_lowering_reads_are_compared() -> None:
    """A kernel gets rows of constants repeated. A layer with another row is therefore lowered by itself."""
    random = np.random.default_rng(1)
    constants = {f"r{index}": random.standard_normal((1, 3)).astype(np.float32) for index in range(5)}
    nodes = [node("Mul", f"{'x' if not i else f'v{i - 1}'} r{i}", f"v{i}") for i in range(4)]
    nodes += [node("Softmax", "v3", "s"), node("Mul", "s r4", "y")]
    model = load(nodes, {"x": ["n", 3]}, constants=constants, optimize=False)
    x = random.standard_normal((64, 3)).astype(np.float32)
    product = x * np.prod([constants[f"r{index}"] for index in range(4)], axis=0)
    shares = np.exp(product) / np.exp(product).sum(1, keepdims=True)
    with pf.Worker(model) as worker:
        made = worker.schedule(x).peek_output().download_to_array()
        np.testing.assert_allclose(made, shares * constants["r4"], 1e-4)


def test_one_value_read_twice_makes_no_recipe_for_two() -> None:
    nodes = [node("Mul", "x x", "a"), node("Softmax", "a", "s"), node("Mul", "s x", "b"), node("Softmax", "b", "t")]
    model = load([*nodes, node("Mul", "t s", "y")], {"x": ["n", 4]})
    x = np.random.default_rng(2).standard_normal((5, 4)).astype(np.float32)

    def softmax(v: Any) -> Any:
        return np.exp(v) / np.exp(v).sum(1, keepdims=True)

    s = softmax(x * x)
    with pf.Worker(model) as worker:
        made = worker.schedule(x).peek_output().download_to_array()
    np.testing.assert_allclose(made, softmax(s * x) * s, 1e-4)


def test_shapes_that_are_refused_do_not_end_the_following(counted: dict[str, int]) -> None:
    model = load([node("Add", "x y", "s"), node("Softmax", "s", "z")], {"x": ["n", 4], "y": ["m", 4]}, "z")
    with pf.Worker(model) as worker:
        with pytest.raises(pf.InferenceError, match=r"\(2, 4\).*\(3, 4\)"):
            worker.schedule(np.ones((2, 4), np.float32), np.ones((3, 4), np.float32))
        worker.schedule(np.ones((5, 4), np.float32), np.ones((5, 4), np.float32))
        forget(counted, worker)
        worker.schedule(np.ones((7, 4), np.float32), np.ones((7, 4), np.float32))
        assert not counted
        np.testing.assert_allclose(worker.peek_output().download_to_array(), 0.25)
        with pytest.raises(pf.InferenceError, match=r"\(6, 4\).*\(7, 4\)"):
            worker.schedule(np.ones((6, 4), np.float32), np.ones((7, 4), np.float32))


def test_steps_in_numpy_parts_of_joins_and_several_outputs_follow_sizes(counted: dict[str, int]) -> None:
    """An Einsum has no kernel, the join's parts lie in its output, and the sum is read and given out."""
    nodes = [
        node("Relu", "x", "r"),
        node("Einsum", "r w", "e", equation="nd,de->ne"),
        node("Concat", "r e", "j", axis=1),
        node("Softmax", "j", "s"),
        node("ReduceSum", "s axes", "y", keepdims=1),
        node("Mul", "j y", "z"),
    ]
    w = np.random.default_rng(3).standard_normal((4, 5)).astype(np.float32)
    model = load(nodes, {"x": ["n", 4]}, "z y", constants={"w": w, "axes": np.array([0])})
    with pf.Worker(model) as worker:
        for rows in (6, 3, 40, 9, 9):
            x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
            forget(counted, worker)
            worker.schedule(x)
            assert (rows == 6) == bool(counted), counted
            r = np.maximum(x, 0)
            j = np.concatenate([r, r @ w], 1)
            s = np.exp(j) / np.exp(j).sum(1, keepdims=True)
            total = s.sum(0, keepdims=True)
            np.testing.assert_allclose(worker.peek_output("y").download_to_array(), total, 1e-4)
            np.testing.assert_allclose(worker.peek_output("z").download_to_array(), j * total, 1e-4, 1e-6)
            assert sum(size for _, size in worker.memory_use[0].live) > 0


def test_a_plan_whose_kernels_are_being_compiled_leaves_formulas(
    counted: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, constants = network()
    busy = True
    monkeypatch.setattr(jit, "busy", lambda: busy)
    with pf.Worker(model) as worker:
        for rows in (3, 5, 7):
            x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
            trace(worker)
            counted.clear()
            made = worker.schedule(x).peek_output().download_to_array()
            np.testing.assert_allclose(made, expected(x, constants), 1e-4, 1e-5)
            assert bool(counted) == busy, counted
            busy = rows < 5


def test_sizes_that_may_come_are_expected(counted: dict[str, int]) -> None:
    """A product of few rows takes another kernel than one of many, a batch of one is planned as such."""
    nodes = [node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), node("MaxPool", "r", "y", **POOL)]
    random = np.random.default_rng(3)
    w = random.standard_normal((4, 3, 3, 3)).astype(np.float32)
    model = load(nodes, {"x": ["n", 3, "h", "w"]}, constants={"w": w})
    with pf.Worker(model) as worker:
        for shape in ((1, 3, 32, 32), (2, 3, 64, 64), (2, 3, 32, 32), (1, 3, 64, 64), (1, 3, 16, 16), (1, 3, 40, 24)):
            x = random.standard_normal(shape).astype(np.float32)
            forget(counted, worker)
            made = worker.schedule(x).peek_output().download_to_array()
            assert bool(counted) == (shape == (1, 3, 32, 32)), (shape, counted)
            np.testing.assert_allclose(made, pooled(x, w), 1e-4, 1e-4)


POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}


def pooled(x: Any, w: Any) -> Any:
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    made = np.maximum(np.einsum("nchwij,ocij->nohw", windows, w, optimize=True), 0)
    n, channels, height, width = made.shape
    return made.reshape(n, channels, height // 2, 2, width // 2, 2).max((3, 5))


@pytest.mark.parametrize("as_tensors", [False, True])
def test_plans_are_fitted_again_and_again(as_tensors: bool) -> None:
    """More sizes than plans are kept, forth and back, large ones whose memory is not kept; what is read back late is
    still right.
    """
    model = load([node("Add", "x y", "s"), node("Softmax", "s", "z")], {"x": ["n", 4], "y": ["n", 4]}, "z s")
    random, late = np.random.default_rng(4), []
    with pf.Worker(model) as worker:
        for rows in [*range(2, 40), *range(40, 2, -1), *random.integers(2, 3000, 30), *(20000, 1, 3, 30000) * 6]:
            x, y = random.standard_normal((2, rows, 4)).astype(np.float32)
            worker.schedule(*((pf.Tensor(x), pf.Tensor(y)) if as_tensors else (x, y)))
            late.append((worker.peek_output("s").readback_request(), x + y))
            shares = np.exp(x + y)
            made = worker.peek_output("z").download_to_array()
            np.testing.assert_allclose(made, shares / shares.sum(1, keepdims=True), 1e-4)
        for request, expected in late:
            np.testing.assert_array_equal(request.result(wait=True), expected)


def test_a_tensor_keeps_its_shape_when_its_plan_is_fitted_to_others() -> None:
    model = load([node("Softmax", "x", "y")], {"x": ["n", 4]})
    with pf.Worker(model) as worker:
        outputs = [worker.schedule(np.zeros((rows, 4), np.float32)).peek_output() for rows in range(2, 60)]
        assert [tensor.shape for tensor in outputs] == [(rows, 4) for rows in range(2, 60)]


def test_an_output_of_other_shapes_keeps_its_values_while_its_plan_is_kept() -> None:
    model = load([node("Softmax", "x", "y")], {"x": ["n", 4]})
    with pf.Worker(model) as worker, pf.Worker(load([node("Neg", "x", "y")], {"x": ["n", 4]})) as other:
        worker.schedule(np.zeros((7, 4), np.float32))
        trace(worker)
        output = worker.schedule(np.zeros((500_000, 4), np.float32)).peek_output()
        for rows in range(2, 9):
            worker.schedule(np.full((rows, 4), rows, np.float32)).peek_output().download_to_array()
        np.testing.assert_array_equal(other.schedule(output).peek_output().download_to_array(), -0.25)
        for rows in range(9, 12):
            worker.schedule(np.zeros((rows, 4), np.float32)).peek_output().download_to_array()
        with pytest.raises(pf.ClosedError, match=r"'y' \(500000, 4\) was released"):
            output.download_to_array()
        with pytest.raises(pf.ClosedError, match=r"'y' \(500000, 4\) was released"):
            other.schedule(output)


def test_a_plan_that_is_not_used_keeps_nothing_alive() -> None:
    model = load([node("Softmax", "x", "y")], {"x": ["n", 4]})
    with pf.Worker(model) as worker:
        tensor = pf.Tensor(np.zeros((5, 4), np.float32))
        storage = weakref.ref(tensor.data_on_backend)
        worker.schedule(np.zeros((3, 4), np.float32))
        worker.schedule(tensor).peek_output().download_to_array()
        del tensor
        for rows in range(6, 20):
            worker.schedule(np.zeros((rows, 4), np.float32)).peek_output().download_to_array()
        collect_garbage()
        assert storage() is None


def test_sizes_for_which_there_is_no_memory_leave_the_worker_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    model, constants = network()
    x = np.random.default_rng(5).standard_normal((4, 8)).astype(np.float32)
    with pf.Worker(model) as worker:
        worker.schedule(x).peek_output().download_to_array()
        arena = worker._own.backend.arena  # type: ignore[attr-defined]
        before = len(arena.workspaces)
        with monkeypatch.context() as context:
            context.setattr(storage, "aligned_bytes", out_of_memory)
            with pytest.raises(pf.BackendError):
                worker.schedule(np.zeros((3000, 8), np.float32))
            with pytest.raises(pf.BackendError):
                worker.schedule(np.zeros((1, 8), np.float32))
        assert len(arena.workspaces) == before
        made = worker.schedule(x + 1).peek_output().download_to_array()
        np.testing.assert_allclose(made, expected(x + 1, constants), 1e-4, 1e-5)


def test_memory_runs_out_halfway(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run finds the values that were moved before memory ran out."""
    model = load([node("Add", "x y", "s"), node("Softmax", "s", "z")], {"x": ["n", 4], "y": ["n", 4]}, "s z")
    random, allocate = np.random.default_rng(5), storage.aligned_bytes

    def schedule(worker: pf.Worker, rows: int) -> None:
        x, y = random.standard_normal((2, rows, 4)).astype(np.float32)
        made = worker.schedule(x, y).peek_output("s").download_to_array()
        np.testing.assert_array_equal(made, x + y)

    def some(size: int) -> Any:
        return allocate(size * left.pop()) if left else out_of_memory(size)

    for count in range(4):
        left = [1] * count
        with pf.Worker(model) as worker:
            schedule(worker, 100)
            trace(worker)
            schedule(worker, 90)
            with monkeypatch.context() as context:
                context.setattr(storage, "aligned_bytes", some)
                with pytest.raises(pf.BackendError):
                    worker.schedule(*np.zeros((2, 5000, 4), np.float32))
            for rows in (1000, 80, 1010, 2000, 5000):
                schedule(worker, rows)


def out_of_memory(size: int) -> Any:
    raise pf.BackendError(f"there is no memory for {size} bytes")


def test_a_crop_to_the_size_of_another_value_follows_the_sizes(counted: dict[str, int]) -> None:
    constants = {"starts": np.array([0]), "axes": np.array([0])}
    nodes = [
        node("Concat", "x x", "twice", axis=0),
        node("Softmax", "twice", "s"),
        node("Shape", "x", "rows", start=0, end=1),
        node("Slice", "s starts rows axes", "c"),
        node("Neg", "c", "y"),
    ]
    model = load(nodes, {"x": ["n", 8]}, constants=constants)
    with pf.Worker(model) as worker:
        for rows, planned in ((3, True), (5, False), (40, False)):
            x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
            forget(counted, worker)
            made = worker.schedule(x).peek_output().download_to_array()
            powers = np.exp(x)
            np.testing.assert_allclose(made, -powers / powers.sum(1, keepdims=True), 1e-4, 1e-5)
            assert bool(counted) == planned, (rows, counted)
