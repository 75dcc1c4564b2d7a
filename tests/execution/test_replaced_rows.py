"""States of a fixed size of which runs replace rows: static caches, whose other rows no run writes again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf
from execution.recurrent import RNG, random
from perframe.safety.records import dataclass
from perframe.testing.checks import trace

KINDS = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
}
RUNS = 50


@dataclass(frozen=True)
class Cache:
    """A model with a cache `past` of `shape`. `rows` are the nodes that replace rows of it by `x` at `at`."""

    shape: tuple[int, ...]
    updates: tuple[Any, ...]
    at: tuple[Any, ...]
    rows: Callable[[], list[Any]]

    def model(self, dtype: str = "float32", reads_old: bool = False) -> pf.Model:
        """Return the model. It outputs sums, so that the cache is read too; with `reads_old`, of both caches."""
        nodes = self.rows()
        nodes.append(helper.make_node("ReduceSum", ["present"], ["y"], keepdims=0))
        if reads_old:
            nodes += [
                helper.make_node("ReduceMax", ["past"], ["old"], keepdims=0),
                helper.make_node("Mul", ["old", "y"], ["both"]),
            ]
        kind = KINDS[dtype]
        given = {"past": (kind, self.shape), "at": (TensorProto.INT64, self.at), "x": (kind, self.updates)}
        made = ["present", "y", *(["both"] if reads_old else [])]
        graph = helper.make_graph(
            nodes,
            "cache",
            [helper.make_tensor_value_info(name, *what) for name, what in given.items()],
            [helper.make_tensor_value_info(name, kind, None) for name in made],
        )
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
        return pf.load(onnx.shape_inference.infer_shapes(proto))

    def draw(self, count: int, dtype: str = "float32") -> dict[str, Any]:
        """Return inputs of one run, with `count` new rows: negative positions, and rows twice, are among them."""
        shape = [count if size == "n" else size for size in self.updates]
        x = RNG.integers(-99, 99, shape).astype(dtype)
        at = [count if size == "n" else size for size in self.at]
        if len(at) == 1:  # TensorScatter: the first row of each batch
            return {"at": RNG.integers(0, self.shape[self.axis] - count + 1, at), "x": x}
        dims = self.shape[: at[-1]]
        return {"at": np.stack([RNG.integers(-size, size, at[:-1]) for size in dims], -1), "x": x}

    @property
    def axis(self) -> int:
        """The axis of the new rows."""
        return self.updates.index("n")


def scattered() -> list[Any]:
    return [helper.make_node("ScatterND", ["past", "at", "x"], ["present"])]


def behind_views() -> list[Any]:
    sizes = [("flat", [-1, 5]), ("whole", [2, 7, 5])]
    tensors = [helper.make_tensor(name, TensorProto.INT64, [len(dims)], dims) for name, dims in sizes]
    return [
        *(helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in tensors),
        helper.make_node("Reshape", ["past", "flat"], ["rows"]),
        helper.make_node("ScatterND", ["rows", "at", "x"], ["changed"]),
        helper.make_node("Identity", ["changed"], ["same"]),
        helper.make_node("Reshape", ["same", "whole"], ["present"]),
    ]


def between_transposes() -> list[Any]:
    """PyTorch exports `cache[:, :, at] = rows` and `cache.index_copy(2, at, rows)` so."""
    return [
        helper.make_node("Transpose", ["past"], ["turned"], perm=[2, 0, 1, 3]),
        helper.make_node("ScatterND", ["turned", "at", "x"], ["changed"]),
        helper.make_node("Transpose", ["changed"], ["present"], perm=[1, 2, 0, 3]),
    ]


def tensor_scattered(axis: int, mode: str) -> Callable[[], list[Any]]:
    return lambda: [helper.make_node("TensorScatter", ["past", "x", "at"], ["present"], axis=axis, mode=mode)]


CACHES = {
    "rows": Cache((13, 7), ("n", 7), ("n", 1), scattered),
    "rows of heads": Cache((2, 3, 11, 8), ("n", 8), ("n", 3), scattered),
    "long rows": Cache((5, 67), ("n", 67), ("n", 1), scattered),
    "elements": Cache((7, 5), ("n",), ("n", 2), scattered),
    "behind views": Cache((2, 7, 5), ("n", 5), ("n", 1), behind_views),
    "between transposes": Cache((11, 3, 11, 4), ("n", 11, 3, 4), ("n", 1), between_transposes),
    "linear": Cache((2, 3, 11, 5), (2, 3, "n", 5), (2,), tensor_scattered(-2, "linear")),
    "circular": Cache((2, 3, 11, 4), (2, 3, "n", 4), (2,), tensor_scattered(2, "circular")),
    "the first axis": Cache((3, 7, 2, 3), (3, "n", 2, 3), (3,), tensor_scattered(1, "linear")),
    "the last axis": Cache((1, 3, 13), (1, 3, "n"), (1,), tensor_scattered(-1, "circular")),
}
HEADS = CACHES["rows of heads"]


def carrying(cache: Cache, backend: str, **more: Any) -> pf.Worker:
    return pf.Worker(cache.model(**more), backend, carry={"present": "past"})  # type: ignore[arg-type]


def last_storage(worker: pf.Worker) -> Any:
    """The storage that the last run wrote."""
    (part,) = worker.parts.planned_parts()
    assert part.latest_plan is not None and part.latest_plan.replaced
    return part.latest_plan.outputs["present"].data_on_backend


def same_by_hand(plain: pf.Worker, past: Any, given: dict[str, Any]) -> dict[str, Any]:
    plain.schedule({"past": past, **given})
    return {name: plain.peek_output(name).numpy() for name in plain.model.output_names}


OTHER_DTYPES = [  # they differ in elements alone
    (name, dtype) for dtype in KINDS if dtype != "float32" for name in ("rows", "rows of heads", "linear", "circular")
]


@pytest.mark.parametrize(("name", "dtype"), [*((name, "float32") for name in CACHES), *OTHER_DTYPES])
def test_results_are_those_without_carry(name: str, dtype: str, backend: str) -> None:
    cache = CACHES[name]
    with carrying(cache, backend, dtype=dtype) as worker, pf.Worker(cache.model(dtype), backend) as plain:
        past = np.zeros(cache.shape, dtype)
        for run in range(RUNS):
            given = cache.draw({30: 0, 40: 5}.get(run, 3 if run % 10 > 7 else 1), dtype)
            wanted = same_by_hand(plain, past, given)
            worker.schedule(given)
            if run % 7:
                np.testing.assert_array_equal(worker.peek_output("y").numpy(), wanted["y"])
                np.testing.assert_array_equal(worker.state().numpy(), wanted["present"])
            past = wanted["present"]
        np.testing.assert_array_equal(worker.peek_output("present").numpy(), past)
        if dtype != "int64" or backend == "cpu":  # numbers of 64 bits are on the CPU, and cross over whole
            last_storage(worker)


@pytest.mark.parametrize(
    "cache",
    [
        Cache((211, 8), ("n", 8), ("n", 1), scattered),
        Cache((1, 2, 151, 8), ("n", 8), ("n", 3), scattered),
        Cache((2, 2, 101, 8), (2, 2, "n", 8), (2,), tensor_scattered(-2, "circular")),
    ],
    ids=["rows", "rows of heads", "circular"],
)
def test_a_run_writes_replaced_rows_alone(cache: Cache, backend: str) -> None:
    """What another hand changes in the storage that the next run writes stays, apart from the last two runs' rows."""
    with carrying(cache, backend) as worker, pf.Worker(cache.model(), backend) as plain:  # type: ignore[arg-type]
        storages = []
        for _ in range(4):
            worker.schedule(cache.draw(1))
            storages.append(last_storage(worker))
        assert storages[1] is storages[3] and storages[0] is not storages[3]
        before, target, given = worker.state().numpy(), storages[2], cache.draw(1)
        changes, changed = target.changes, random(*cache.shape)
        target.upload(changed)
        target.changes = changes
        worker.schedule(given)
        assert last_storage(worker) is target
        made, rows = worker.state().numpy(), 2 * given["x"].size // 8
        texels = 2 * 31 if backend == "gpu_pixel" else 0  # it draws eight texels at once
        assert np.count_nonzero(made != changed) <= rows * (8 + texels) < made.size / 2
        wanted = same_by_hand(plain, before, given)["present"]
        np.testing.assert_array_equal(made[made != changed], wanted[made != changed])
        worker.reset(wanted)
        np.testing.assert_array_equal(worker.schedule(given).peek_output("present").numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_many_updates_are_not_searched_by_each_element(dtype: str, backend: str) -> None:
    """Tuples may name single elements, as of PyTorch's `cache[:, :, at] = rows`."""
    cache = Cache((2, 61, 37), ("n", 37), ("n", 37, 3), scattered)
    with carrying(cache, backend, dtype=dtype) as worker, pf.Worker(cache.model(dtype), backend) as plain:  # type: ignore[arg-type]
        past = np.zeros(cache.shape, dtype)
        for _ in range(9):
            x = RNG.integers(-99, 99, (2, 37)).astype(dtype)
            at = [np.arange(2)[:, None], RNG.integers(-61, 61, (2, 1)), np.arange(-37, 0)]
            given = {"at": np.stack(np.broadcast_arrays(*at), -1), "x": x}
            wanted = same_by_hand(plain, past, given)
            worker.schedule(given)
            np.testing.assert_array_equal(worker.state().numpy(), wanted["present"])
            past = wanted["present"]
        last_storage(worker)


def test_no_run_copies_the_state_after_the_second(backend: str, copies: list[int]) -> None:
    with carrying(HEADS, backend) as worker:
        for run in range(10):
            worker.schedule(HEADS.draw(1))
            assert last_storage(worker) is not None
            assert len(copies) <= min(run, 1)


@pytest.mark.parametrize("name", ["rows of heads", "between transposes", "linear"])
def test_the_old_state_may_be_read_after_the_new_one(name: str, backend: str) -> None:
    cache = CACHES[name]
    model = cache.model(reads_old=True)
    with carrying(cache, backend, reads_old=True) as worker, pf.Worker(model, backend) as plain:  # type: ignore[arg-type]
        past = np.zeros(cache.shape, np.float32)
        for _ in range(12):
            given = cache.draw(1)
            wanted = same_by_hand(plain, past, given)
            worker.schedule(given)
            past = wanted["present"]
            np.testing.assert_array_equal(worker.peek_output("both").numpy(), wanted["both"])
        last_storage(worker)
        np.testing.assert_array_equal(worker.state().numpy(), past)


@pytest.mark.parametrize("name", ["rows of heads", "between transposes", "circular"])
def test_whatever_ends_a_run_early_leaves_the_state(name: str, backend: str) -> None:
    """Runs that are dropped, resets and warm-ups, in any order, at any layer."""
    cache = CACHES[name]
    with carrying(cache, backend) as worker, pf.Worker(cache.model(), backend) as plain:  # type: ignore[arg-type]
        past, draw = np.zeros(cache.shape, np.float32), np.random.default_rng(3)
        for _ in range(120):
            what, given = draw.integers(8), cache.draw(draw.choice([0, 1, 1, 1, 1, 2]))
            if what == 0:
                past = random(*cache.shape)
                worker.reset(past)
            elif what == 1:
                worker.reset({"past": pf.Tensor(past)})
            elif what == 2:
                begun = worker.schedule_iterable(given)
                for _ in range(draw.integers(1, 3)):
                    next(begun)
            elif what == 3:
                worker.warmup(given)
            elif what == 4:
                worker.schedule(given)
                past = random(*cache.shape)
                if name == "between transposes":  # its state is read from a copy in the order of the file
                    worker.reset(past)
                else:
                    worker.state().upload(past)
            else:
                if what == 5:
                    for _ in worker.schedule_iterable(given, budget_ms=1000):
                        pass
                else:
                    worker.schedule(given)
                past = same_by_hand(plain, past, given)["present"]
            if what % 2:
                np.testing.assert_array_equal(worker.state().numpy(), past)
        worker.schedule(cache.draw(1))
        last_storage(worker)


@pytest.mark.parametrize("size", [8, 4001], ids=["at once", "in a job"])
def test_a_run_that_fails_leaves_the_last_good_state(size: int) -> None:
    """On the CPU an index is checked while the rows are written."""
    cache = Cache((3, size), ("n", size), ("n", 1), scattered)
    with carrying(cache, "cpu") as worker:
        past = np.zeros(cache.shape, np.float32)
        for run in range(40):
            x, at = random(2, size), np.array([[run % 3], [(run * 7) % 3]])
            wrong = run % 5 == 4
            for _ in range(1 + run % 3 if wrong else 1):
                worker.schedule(at=np.array([[1], [3]]) if wrong else at, x=x)
            last_storage(worker)
            if wrong:
                with pytest.raises(pf.PerframeError):
                    worker.peek_output("y").numpy()
            else:
                for index, row in zip(at[:, 0], x, strict=True):
                    past[index] = row
            if run % 3 or wrong:
                np.testing.assert_array_equal(worker.state().numpy(), past)


def test_workers_with_and_without_states_share_no_plan(backend: str) -> None:
    """One model: its plans for any number of rows differ, whether the cache is carried or not."""
    model = HEADS.model()
    with pf.Worker(model, backend) as plain, pf.Worker(model, backend, carry={"present": "past"}) as worker:  # type: ignore[arg-type]
        past = np.zeros(HEADS.shape, np.float32)
        for count in (1, 2, 3, 3, 5, 1, 4, 4, 4, 7, 2, 2, 6, 6):
            given, other = HEADS.draw(count), random(*HEADS.shape)
            wanted = same_by_hand(plain, past, given)
            worker.schedule(given)
            np.testing.assert_array_equal(worker.state().numpy(), wanted["present"])
            np.testing.assert_array_equal(worker.peek_output("y").numpy(), wanted["y"])
            same_by_hand(plain, other, given)
            past = wanted["present"]
            trace(plain)
            trace(worker)
            last_storage(worker)


def test_states_that_other_layers_make_are_written_as_a_whole(backend: str) -> None:
    """Two caches that change places, and one that an epilogue changes."""
    given = [("x", ["n", 4]), ("a", [6, 4]), ("b", [6, 4]), ("c", [6, 4])]
    nodes = [helper.make_node("ScatterND", [one, "at", "x"], [f"{one} new"]) for one in "abc"]
    nodes.append(helper.make_node("Relu", ["c new"], ["c next"]))
    graph = helper.make_graph(
        nodes,
        "others",
        [
            helper.make_tensor_value_info("at", TensorProto.INT64, ["n", 1]),
            *(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in given),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [6, 4]) for name in ("a new", "b new", "c next")],
    )
    model = pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))
    carry = {"a new": "b", "b new": "a", "c next": "c"}
    with pf.Worker(model, backend, carry=carry) as worker:  # type: ignore[arg-type]
        states = {name: np.zeros((6, 4), np.float32) for name in "abc"}
        for _ in range(9):
            at, x = RNG.integers(0, 6, (1, 1)), random(1, 4)
            for state in states.values():
                state[at[0, 0]] = x[0]
            states = {"a": states["b"], "b": states["a"], "c": np.maximum(states["c"], 0)}
            worker.schedule(at=at, x=x)
            for name, state in states.items():
                np.testing.assert_array_equal(worker.state(name).numpy(), state)
        (part,) = worker.parts.planned_parts()
        assert part.latest_plan is not None and not part.latest_plan.replaced


OTHER_READERS = {  # of the cache, and of what lies between its transposes: outputs, and nodes
    "none": (["present"], []),
    "an output between": (["changed", "present"], []),
    "the old rows": (["present", "turned"], []),
    "the cache": (["present", "s"], [helper.make_node("ReduceMax", ["past"], ["s"])]),
    "the turned cache": (["present", "s"], [helper.make_node("ReduceMax", ["turned"], ["s"])]),
    "the same again": (["present", "s"], [helper.make_node("Identity", ["present"], ["s"])]),
    "another order": (["present", "s"], [helper.make_node("Transpose", ["changed"], ["s"], perm=[3, 2, 1, 0])]),
}


@pytest.mark.parametrize("name", OTHER_READERS)
def test_others_may_read_what_lies_between_transposes(name: str, backend: str) -> None:
    outputs, nodes = OTHER_READERS[name]
    cache = CACHES["between transposes"]
    inputs = {"past": (TensorProto.FLOAT, cache.shape), "at": (TensorProto.INT64, cache.at)}
    inputs["x"] = TensorProto.FLOAT, cache.updates
    graph = helper.make_graph(
        [*between_transposes(), *nodes],
        "cache",
        [helper.make_tensor_value_info(name, *what) for name, what in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = pf.load(onnx.shape_inference.infer_shapes(proto))
    with pf.Worker(model, backend, carry={"present": "past"}) as worker, pf.Worker(model, backend) as plain:  # type: ignore[arg-type]
        past = np.zeros(cache.shape, np.float32)
        for _ in range(6):
            given = cache.draw(1)
            wanted = same_by_hand(plain, past, given)
            worker.schedule(given)
            past = wanted["present"]
            for output in outputs:
                np.testing.assert_array_equal(worker.peek_output(output).numpy(), wanted[output])
