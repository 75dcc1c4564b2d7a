"""A second input shape compiles nothing, and a frame allocates nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import moderngl
import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from gl.graphs import graph, network
from perframe.backends.cpu.compile import jit
from perframe.backends.gl.compile import program
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.texels import SHEETS
from perframe.tensor import storage
from under_way import finish_jobs

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
    Growing(
        "matmul", lambda: one("MatMul", ("n", "m", 6), {"w": WEIGHTS}), lambda x: x @ WEIGHTS, ((1, 4, 6), (3, 1, 6))
    ),
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
    """How many kernels were compiled so far for a backend, or read from disk."""
    if backend == "cpu":
        return jit.kernel.cache_info().misses
    return device_for(ctx).programs.compiled


@pytest.fixture
def fresh(backend: str, backend_context: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Kernels are looked up as in a process that has none."""
    if backend == "cpu":
        finish_jobs()
        jit.kernel.cache_clear()
        for name in ("arithmetic", "arithmetic.write"):  # a trace beside the runs asks for them
            jit.kernel(name)
        yield None
        return
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path))
    programs = device_for(backend_context).programs
    monkeypatch.setattr(programs, "_programs", {})
    yield backend_context


@pytest.mark.slow
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


@pytest.mark.parametrize("backend", ["gpu_compute", "gpu_pixel"])
def test_another_shape_reads_no_shader_text_again(backend: str, fresh: Any) -> None:
    if backend == "gpu_compute" and fresh.version_code < 430:
        pytest.skip("gpu_compute needs GL 4.3")
    model = graph([("Conv", ["x", "w"], ["y"], {"pads": [1, 1, 1, 1]})], {"x": ANY_PICTURE}, constants={"w": KERNEL})
    questions = (program._compose,)
    with pf.Worker(model, backend, fresh, strict=True) as worker:
        worker.schedule(random(1, 3, 16, 16))
        read = [question.cache_info().misses for question in questions]
        worker.schedule(random(1, 3, 24, 40)).peek_output().download_to_array()
    assert [question.cache_info().misses for question in questions] == read


@pytest.mark.parametrize("biased", [True, False], ids=["bias", "no-bias"])
def test_another_shape_uploads_no_weights(
    biased: bool, where: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are uploaded once, as kernels want them, for all plans of a worker."""
    weights, bias = random(64, 64, 3, 3), random(64)
    constants = {"w": weights, "b": bias} if biased else {"w": weights}
    model = graph(
        [("Conv", ["x", *constants], ["y"], {"pads": [1, 1, 1, 1]})],
        {"x": ("n", 64, "height", "width")},
        constants=constants,
    )
    sizes: list[int] = []
    device = device_for(gl_context)
    buffer, texture = device.buffer, device.texture
    monkeypatch.setattr(device, "buffer", lambda size: (sizes.append(size), buffer(size))[1])
    monkeypatch.setattr(
        device, "texture", lambda size, kind: (sizes.append(16 * SHEETS * size[0] * size[1]), texture(size, kind))[1]
    )
    with pf.Worker(model, where, gl_context, strict=True) as worker:
        made = []
        for size in range(2, 13):  # more than there are plans
            sizes.clear()
            y = worker.schedule(np.ones((1, 64, size, 2), np.float32)).peek_output().download_to_array()
            made.append(sum(sizes) / weights.nbytes)
        padded = np.pad(np.ones((size, 2), np.float32), 1)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
        expected = np.einsum("hwij,ocij->ohw", windows, weights) + (bias[:, None, None] if biased else 0)
        np.testing.assert_allclose(y[0], expected, rtol=1e-4, atol=1e-4)
    assert 1 <= made[0] < 1.5 and max(made[1:]) < 0.5


class Allocations:
    """Counts the objects that are made through moderngl and through raw GL, and allocations of host memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ctx: Any) -> None:
        self.made: list[str] = []
        for name in ("buffer", "texture", "framebuffer", "sampler", "vertex_array", "external_texture", "program"):
            self._count(monkeypatch, moderngl.Context, name)
        self._count(monkeypatch, storage, "aligned_bytes")
        self.device = None if ctx is None else device_for(ctx)
        if self.device is not None:
            for name in [name for name in vars(self.device.gl) if name.startswith("glGen")]:
                self._count(monkeypatch, self.device.gl, name)

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            self.made.append(name)
            return original(*args, **options)

        monkeypatch.setattr(owner, name, counted)

    @property
    def total(self) -> int:
        """How many in all."""
        return len(self.made) + (self.device.allocations if self.device else 0)


def steady(frame: Callable[[int], object], count: Allocations) -> list[str]:
    """Count what seven frames make after the first three."""
    for index in range(3):
        frame(index)
    before, known = count.total, len(count.made)
    assert before > 0, "the first frames made nothing: this test does not see what is made"
    for index in range(3, 10):
        frame(index)
    collect_garbage()
    frame(10)
    return count.made[known:] or ["counted by the device"] * (count.total - before)


def test_a_frame_of_arrays_allocates_nothing(
    backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFRAME_FOLLOW", "0")  # a job that traces sizes beside the frames allocates too
    count = Allocations(monkeypatch, backend_context)
    in_flight = 1 if backend == "cpu" else 3  # a CPU worker that is still reading gives the next run other memory
    with pf.Worker(network(), backend, backend_context) as worker:
        waiting: deque[tuple[int, pf.Readback]] = deque()

        def frame(index: int) -> None:
            worker.schedule(np.full((1, 3, 30, 40), index, np.float32))
            waiting.append((index, worker.peek_output().readback_request()))
            if len(waiting) == in_flight:
                asked, readback = waiting.popleft()
                np.testing.assert_array_equal(readback.result(wait=True), max(2 * asked - 0.5, 0))

        assert steady(frame, count) == []


def test_a_frame_of_textures_allocates_nothing(where: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A camera that pans and zooms, a network, and the screen, with tensors that the frame itself makes among them."""
    ctx = gl_context
    pictures = [ctx.texture((64, 48), 4, np.full((48, 64, 4), 51 * k, np.uint8).tobytes()) for k in range(5)]
    shown, screen = ctx.texture((20, 10), 4), ctx.framebuffer([ctx.texture((33, 21), 4)])
    count = Allocations(monkeypatch, ctx)
    with pf.TextureConverter(ctx, where) as converter, pf.Worker(network(), where, ctx, strict=True) as worker:
        x, small, batch = (
            worker.empty_input("x", (1, 3, 24, 32)),
            pf.Tensor.empty((3, 9, 11)),
            pf.Tensor.empty((5, 3, 9, 11)),
        )

        def frame(index: int) -> None:
            window = pf.TextureTransform(region=(index, 2 * index, 64 / (1 + index), 48 / (1 + index)))
            converter.upload(np.full((48, 64, 4), 51 * (index % 5), np.uint8), pictures[index % 5])
            converter.to_tensor(pictures[index % 5], small, window.replace(resample="antialias"))
            converter.to_tensor(pictures, batch, window.replace(resample="area"))
            converter.to_tensor(pictures[index % 5], x, window)
            y = worker.schedule(x).peek_output()
            converter.to_texture(
                y, shown if index % 2 else shown.glo, window.replace(region=(index % 3, 0, 9, 9 - index % 4))
            )
            screen.use()
            converter.render_to_screen(y, viewport=(index, 0, 20, 21))
            converter.render_to_screen(y, framebuffer=screen)
            wanted = max(2 * 0.2 * (index % 5) - 0.5, 0)
            np.testing.assert_allclose(y.readback_request().result(wait=True), wanted, atol=1e-6)

        assert steady(frame, count) == []


def test_fences_are_deleted(where: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readbacks that were read and readbacks that were dropped both give back their buffers."""
    gl, living = device_for(gl_context).gl, set()
    make, delete = gl.glFenceSync, gl.glDeleteSync

    def made(*args: Any) -> int:
        sync = make(*args)
        living.add(sync)
        return sync

    def deleted(sync: int) -> None:
        living.discard(sync)  # one of an earlier test may be among them
        delete(sync)

    monkeypatch.setattr(gl, "glFenceSync", made)
    monkeypatch.setattr(gl, "glDeleteSync", deleted)
    with pf.Worker(network(), where, gl_context) as worker:
        y = worker.schedule(random(1, 3, 4, 5)).peek_output()
        y.readback_request().result(wait=True)
        for _ in range(5):
            y.readback_request()
        y.download_to_array()
        y.readback_request()
        assert living, "this test does not see fences"
    del y, worker
    collect_garbage()
    with device_for(gl_context).using():  # what was dropped is freed the next time that the device is used
        pass
    assert not living
