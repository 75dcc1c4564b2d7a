"""A second input shape compiles nothing, and a frame allocates nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import perframe as pf
from gl.graphs import graph, network
from perframe.backends.cpu import jit

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Growing:
    """A model with open dims, and shapes of its input x to run it with, one after the other."""

    name: str
    model: Callable[[], pf.Model]
    expected: Callable[[Any], Any]
    shapes: tuple[Shape, ...]

    def __str__(self) -> str:
        return self.name


def random(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype(np.float32)


KERNEL, WEIGHTS, SCALE = random(4, 3, 3, 3), random(6, 5), random(3, 1, 1)
ANY_PICTURE = ("batch", 3, "height", "width")


def one(op: str, dims: tuple[int | str, ...], constants: dict[str, Any] | None = None, **attributes: Any) -> pf.Model:
    """A model of one layer: x and the constants in, y out."""
    return graph([(op, ["x", *(constants or {})], ["y"], attributes)], {"x": dims}, constants=constants)


def softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def conv(x: Any) -> Any:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.maximum(np.einsum("nchwij,ocij->nohw", windows, KERNEL), 0)


def pool(x: Any) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))[:, :, ::2, ::2].max((-2, -1))


def broadcast() -> pf.Model:
    nodes = [("Mul", ["x", "s"], ["a"]), ("ReduceMean", ["x", "axes"], ["m"]), ("Sub", ["a", "m"], ["y"])]
    return graph(nodes, {"x": ANY_PICTURE}, constants={"s": SCALE, "axes": np.array([2, 3])}, optimize=False)


def joined(x: Any) -> Any:
    return np.concatenate([x * k for k in range(1, 9)], 1)


def joining() -> pf.Model:
    names = [f"x{k}" for k in range(1, 9)]
    nodes: list[Any] = [("Mul", ["x", f"k{k}"], [f"x{k}"]) for k in range(1, 9)]
    constants = {f"k{k}": np.float32(k) for k in range(1, 9)}
    return graph([*nodes, ("Concat", names, ["y"], {"axis": 1})], {"x": ("n", "m")}, constants=constants)


def sliced() -> pf.Model:
    nodes = [("Slice", ["x", "from", "to"], ["a"]), ("Transpose", ["a"], ["y"], {"perm": [2, 0, 1]})]
    return graph(nodes, {"x": ("n", "m", "k")}, constants={"from": np.array([0, 1]), "to": np.array([9999, -1])})


def resized() -> pf.Model:
    constants = {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 3], np.float32)}
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return graph(
        [("Resize", ["x", "roi", "scales"], ["y"], attributes)], {"x": (1, 3, "height", "width")}, constants=constants
    )


CASES = (
    Growing("elementwise", lambda: one("Tanh", ("n", "m", "k")), np.tanh, ((2, 3, 4), (1, 1, 1), (1, 5, 1), (7, 1, 9))),
    Growing(
        "broadcast",
        broadcast,
        lambda x: x * SCALE - x.mean((2, 3), keepdims=True),
        ((1, 3, 4, 5), (2, 3, 1, 1), (1, 3, 1, 7), (2, 3, 40, 41)),
    ),
    Growing(
        "conv",
        lambda: graph(
            [("Conv", ["x", "w"], ["z"], {"pads": [1, 1, 1, 1]}), ("Relu", ["z"], ["y"])],
            {"x": ANY_PICTURE},
            constants={"w": KERNEL},
        ),
        conv,
        ((1, 3, 8, 8), (2, 3, 1, 1), (1, 3, 17, 3)),
    ),
    Growing(
        "pool",
        lambda: one("MaxPool", ANY_PICTURE, kernel_shape=[2, 2], strides=[2, 2]),
        pool,
        ((1, 3, 8, 8), (2, 3, 2, 2), (1, 3, 17, 5)),
    ),
    Growing("matmul", lambda: one("MatMul", ("n", "m", 6), {"w": WEIGHTS}), lambda x: x @ WEIGHTS, ((1, 4, 6), (3, 1, 6))),
    Growing("softmax", lambda: one("Softmax", ("n", "m")), softmax, ((3, 7), (1, 1), (5, 1), (2, 3000), (2, 1024))),
    Growing(
        "softmax-inside",
        lambda: one("Softmax", ("n", "m", "k"), axis=1),
        lambda x: softmax(x, 1),
        ((2, 7, 3), (1, 1, 5), (2, 2500, 2)),
    ),
    Growing(
        "sum",
        lambda: one("ReduceSum", ("n", "m", "k"), {"axes": np.array([1, 2])}),
        lambda x: x.sum((1, 2), dtype=np.float64)[:, None, None],
        ((2, 3, 4), (1, 1, 1), (2, 1, 9), (2, 40, 50), (1, 1100, 1000)),
    ),
    Growing(
        "largest",
        lambda: one("ReduceMax", ("n", "m"), {"axes": np.array([0])}),
        lambda x: x.max(0, keepdims=True),
        ((3, 4), (1, 1), (3000, 2)),
    ),
    Growing(
        "norm",
        lambda: one("ReduceL2", ("n", "m"), {"axes": np.array([1])}),
        lambda x: np.sqrt((x.astype(np.float64) ** 2).sum(1, keepdims=True)),
        ((3, 4), (2, 1), (2, 3000)),
    ),
    Growing("concat", joining, joined, ((2, 3), (1, 1), (30, 7))),
    Growing("slice-transpose", sliced, lambda x: x[:, 1:-1].transpose(2, 0, 1), ((2, 4, 3), (1, 3, 1), (5, 9, 2))),
    Growing("resize", resized, lambda x: x.repeat(2, 2).repeat(3, 3), ((1, 3, 4, 5), (1, 3, 1, 1), (1, 3, 1, 9))),
    Growing("network", network, lambda x: np.maximum(2 * x - 0.5, 0), ((1, 3, 4, 5), (1, 3, 1, 1), (1, 3, 33, 9))),
)


def compilations(backend: str, ctx: Any) -> int:
    """How many kernels were compiled so far for a backend."""
    if backend == "cpu":
        return len(jit.compiled)
    from perframe.backends.gl.context import device_for

    return device_for(ctx).programs.compiled


@pytest.fixture
def fresh(backend: str, backend_context: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Kernels are compiled here as in a process that has compiled none."""
    if backend == "cpu":
        monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path))
        jit.kernel.cache_clear()
        yield None
        return
    from perframe.backends.gl.context import device_for

    programs = device_for(backend_context).programs
    monkeypatch.setattr(programs, "_programs", {})
    yield backend_context


@pytest.mark.parametrize("case", CASES, ids=str)
def test_another_shape_compiles_nothing(case: Growing, backend: str, fresh: Any) -> None:
    with pf.Worker(case.model(), backend, fresh, strict=backend != "cpu") as worker:
        counts = [compilations(backend, fresh)]
        for shape in case.shapes:
            x = random(*shape)
            y = worker.schedule(x).peek_output().download_to_array()
            expected = case.expected(x)
            assert y.shape == expected.shape
            np.testing.assert_allclose(y, expected, rtol=2e-4, atol=2e-5 * max(1, np.abs(expected).max()))
            counts.append(compilations(backend, fresh))
    made = np.diff(counts)
    assert made[0] > 0, "the first shape compiled nothing: this test does not see compilations"
    assert not made[1:].any(), f"new kernels for each of {case.shapes}: {made}"
