"""Long runs. A scenario is an endless generator. Its steps are rounds, which check their results."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import moderngl
import numpy as np

import perframe as pf
from soak import small_models as models

ALL = ("cpu", "gpu_compute", "gpu_pixel")
GL = ALL[1:]
SILERO = Path(__file__).resolve().parents[3] / "shared" / "models" / "silero_vad.onnx"
Rounds = Callable[[str, Any], Iterator[None]]


@dataclass(frozen=True)
class Scenario:
    """Rounds, their number in a full and in a short run, and the backends."""

    run: Rounds
    full: int
    short: int
    backends: tuple[str, ...]


SCENARIOS: dict[str, Scenario] = {}


def scenario(full: int, short: int, backends: tuple[str, ...] = ALL) -> Callable[[Rounds], Rounds]:
    """Add a scenario under the function's name."""

    def add(run: Rounds) -> Rounds:
        SCENARIOS[run.__name__] = Scenario(run, full, short, backends)
        return run

    return add


def ones(*shape: int, value: float = 1) -> Any:
    return np.full(shape, value, np.float32)


def check(values: Any, expected: Any) -> None:
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


class InFlight:
    """Up to three readbacks that are polled, each with the middle element that it must bring."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[pf.Readback, float]] = deque()

    def add(self, tensor: pf.Tensor, expected: float) -> None:
        self._waiting.append((tensor.readback_request(), expected))
        while self._waiting and (len(self._waiting) > 3 or self._waiting[0][0].done):
            readback, wanted = self._waiting.popleft()
            check(readback.result(wait=True)[0, :, 8, 8], wanted)


@scenario(full=10_000, short=500)
def frames(backend: str, ctx: Any) -> Iterator[None]:
    """A picture is uploaded, or comes from a texture and goes to one; the readback is polled."""
    in_flight = InFlight()
    with pf.Worker(models.picture(4), backend, ctx) as worker:
        for index in count():
            value = index % 7 / 7
            y = worker.schedule(ones(1, 3, 17, 17, value=value)).peek_output()
            in_flight.add(y, value)
            yield


@scenario(full=10_000, short=500, backends=GL)
def textures(backend: str, ctx: Any) -> Iterator[None]:
    """A camera's texture goes through a tensor and a worker to another texture; the readback is polled."""
    in_flight, camera, shown = InFlight(), ctx.texture((32, 32), 4), ctx.texture((16, 16), 4)
    with pf.Worker(models.picture(4), backend, ctx) as worker, pf.TextureConverter(ctx, backend) as converter:
        x = worker.empty_input("x", (1, 3, 17, 17))
        for index in count():
            level = index % 5 * 51
            camera.write(bytes([level] * (4 * 32 * 32)))
            converter.to_tensor(camera, x)
            y = worker.schedule(x).peek_output()
            in_flight.add(y, level / 255)
            converter.to_texture(y, shown)
            if index % 10 == 0:
                assert abs(shown.read()[4 * (16 * 8 + 8)] - level) <= 1
                _record(camera, shown, worker, ctx)
                assert abs(shown.read()[4 * (16 * 8 + 8)] - level) <= 1
            yield


def _record(camera: Any, shown: Any, worker: pf.Worker, ctx: Any) -> None:
    """The way of a frame as commands, which are dropped with their tensor."""
    commands, x = pf.CommandBuffer(ctx), pf.Tensor.empty((1, 3, 17, 17))
    commands.to_tensor(camera, x)
    commands.schedule_worker(worker, x)
    commands.to_texture(worker.peek_output(), shown)
    commands.execute()


MODELS: tuple[tuple[Callable[[], pf.Model], dict[str, Any], Any], ...] = (
    (models.picture, {"x": ones(1, 3, 12, 12)}, None),
    (models.products, {"x": ones(5, models.WIDTH)}, 0.5),
    (models.table, {"index": np.array([0, -1])}, -np.arange(64000).reshape(1000, 64)[[0, -1]]),
    (models.found, {"x": np.array([0, 1, 1, 0, 1], np.float32)}, -np.array([[1, 2, 4]])),
    (models.doubling, {"n": np.array(3), "x": ones(1000)}, 8),
    (models.branching, {"x": ones(3, 64), "flag": np.array(True)}, 2),
)


def _workers(backend: str, ctx: Any, released: bool) -> Iterator[None]:
    known = [make() for make, _, _ in MODELS]
    for index in count():
        at = index % len(MODELS)
        make, given, expected = MODELS[at]
        model = make() if index // len(MODELS) % 2 else known[at]  # a model that earlier workers had, or a new one
        worker = pf.Worker(model, backend, ctx)
        y = worker.schedule(dict(given)).peek_output()
        if expected is not None:
            check(y.download_to_array(), expected)
        worker.schedule(dict(given)).peek_output().readback_request()  # is under way at the end
        if released:
            worker.release()
        del worker, y, model
        yield


@scenario(full=500, short=54)
def released_workers(backend: str, ctx: Any) -> Iterator[None]:
    """Workers of several models are made, run and released."""
    return _workers(backend, ctx, True)


@scenario(full=500, short=54)
def dropped_workers(backend: str, ctx: Any) -> Iterator[None]:
    """Workers of several models are made, run and dropped."""
    return _workers(backend, ctx, False)


@scenario(full=300, short=90)
def shapes(backend: str, ctx: Any) -> Iterator[None]:
    """One worker gets pictures of ever other sizes, each some times; another one rows whose number is a value."""
    random = np.random.default_rng(0)
    with pf.Worker(models.picture(8), backend, ctx) as worker, pf.Worker(models.expanded(), backend, ctx) as rows:
        for index in count():
            batch, height, width = 1 + index % 2, *random.integers(8, 56, 2)
            for again in range(3):
                value = 0.1 * (1 + index % 9) + again
                y = worker.schedule(ones(batch, 3, height, width, value=value)).peek_output()
                assert y.shape == (batch, 3, height, width)
                check(y.download_to_array()[:, :, 4, 4], value)
            number = 10 + 37 * index % 200  # small and large ones from the begin: templates are made while it warms up
            y = rows.schedule({"x": ones(1, 64), "shape": np.array([number, 1])}).peek_output()
            check(y.download_to_array(), -ones(number, 64))
            yield


@scenario(full=2_000, short=100, backends=GL)
def contexts(backend: str, ctx: Any) -> Iterator[None]:
    """Two contexts of the caller's have a worker each, and take turns."""
    other = moderngl.create_context(standalone=True, backend="egl")
    pairs = []
    for one in (ctx, other):
        with one:
            pairs.append((one, pf.Worker(models.picture(4), backend, one), pf.TextureConverter(one, backend)))
    for index in count():
        for one, worker, converter in pairs:
            with one:
                value = index % 7 / 7
                y = worker.schedule(ones(1, 3, 16, 16, value=value)).peek_output()
                check(y.readback_request().result(wait=True)[0, :, 8, 8], value)
                texture = one.texture((16, 16), 4)
                converter.to_texture(y, texture)
                texture.release()
        ctx.__enter__()
        yield


@scenario(full=500, short=54)
def threads(backend: str, ctx: Any) -> Iterator[None]:
    """Threads that end have a worker each; on a GPU in a context of their own, which perframe makes."""
    model, failures = models.picture(4), list[BaseException]()

    def use() -> None:
        try:
            with pf.Worker(model, backend) as worker:
                check(worker.schedule(ones(1, 3, 16, 16)).peek_output().download_to_array()[0, :, 8, 8], 1)
        except BaseException as error:
            failures.append(error)

    for _ in count():
        pair = [threading.Thread(target=use) for _ in range(2)]
        for thread in pair:
            thread.start()
        for thread in pair:
            thread.join()
        if failures:
            raise failures[0]
        yield


@scenario(full=3_000, short=150)
def abandoned(backend: str, ctx: Any) -> Iterator[None]:
    """Runs that are taken layer by layer end half-way; a whole one comes between."""
    with pf.Worker(models.picture(4), backend, ctx) as worker:
        for index in count():
            steps = worker.schedule_iterable(ones(1, 3, 16, 16 + index % 2))
            for _ in range(index % 5):
                next(steps, None)
            if index % 3 == 0:
                y = worker.schedule(ones(1, 3, 16, 16, value=index % 4)).peek_output()
                check(y.download_to_array()[0, :, 8, 8], index % 4)
            yield


@scenario(full=5_000, short=250)
def unread(backend: str, ctx: Any) -> Iterator[None]:
    """Readbacks that are never read. Some of them are kept for a while."""
    kept: deque[pf.Readback] = deque(maxlen=3)
    with pf.Worker(models.picture(4), backend, ctx) as worker:
        for index in count():
            y = worker.schedule(ones(1, 3, 16, 16 + index % 2)).peek_output()
            readback = y.readback_request()
            if index % 2:
                kept.append(readback)
            if index % 3:
                y.is_readback_request_done()
            yield


@scenario(full=3_000, short=150)
def control_flow(backend: str, ctx: Any) -> Iterator[None]:
    """Loops of other lengths, and branches that values and shapes decide."""
    with (
        pf.Worker(models.doubling(), backend, ctx) as loop,
        pf.Worker(models.branching(), backend, ctx) as branch,
        pf.Worker(models.found(), backend, ctx) as found,
    ):
        for index in count():
            loop.schedule({"n": np.array(index % 4), "x": ones(64)})
            check(loop.peek_output("last").download_to_array(), 2 ** (index % 4))
            assert np.shape(loop.peek_output("rows").download_to_array())[0] == index % 4
            rows, flag = 5 + index % 10, bool(index % 3)
            y = branch.schedule({"x": ones(rows, 64), "flag": np.array(flag)}).peek_output()
            check(y.download_to_array(), 2 if rows < 10 else 1 if flag else -1)
            x = (np.arange(20) % (2 + index % 3) == 0).astype(np.float32)
            check(found.schedule(x).peek_output().download_to_array()[0], -np.nonzero(x)[0])
            yield


@scenario(full=1_000, short=54)
def voice(backend: str, ctx: Any) -> Iterator[None]:
    """A model of a hundred layers and branches, whose state is fed back."""
    state, rate = ones(2, 1, 128, value=0), np.array(16000)
    with pf.Worker(pf.load(SILERO), backend, ctx) as worker:
        for index in count():
            sound = np.sin(np.arange(512, dtype=np.float32) * (index % 9) / 20)[None]
            worker.schedule({"input": sound, "state": state, "sr": rate})
            state = worker.peek_output(1).download_to_array()
            assert np.isfinite(state).all()
            yield


@scenario(full=1_000, short=100)
def failures(backend: str, ctx: Any) -> Iterator[None]:
    """Runs that fail, for indices, shapes, names and released tensors; a right one follows each of them."""
    if backend != "cpu":
        os.environ["PERFRAME_CHECK"] = "1"  # a GPU looks at indices as well
    good = np.array([0, 999])
    released = pf.Tensor(good)
    released.release()
    with pf.Worker(models.table(), backend, ctx) as worker:
        for index in count():
            for bad in (np.array([index, 1000 + index]), ones(2), ones(2, 2), {"i": good}, released):
                try:
                    worker.schedule(bad).peek_output().download_to_array()
                except pf.PerframeError:
                    continue
                raise AssertionError(f"{bad!r} raised nothing")
            check(worker.schedule(good).peek_output().download_to_array()[1, 63], -63999)
            yield


@scenario(full=100, short=24)
def forks(backend: str, ctx: Any) -> Iterator[None]:
    """Twenty runs, and a child that runs the model itself; on a GPU it is told that it cannot."""
    model = models.picture(4)
    with pf.Worker(model, backend, ctx) as worker:
        for _ in count():
            for value in range(20):
                y = worker.schedule(ones(1, 3, 16, 16, value=value)).peek_output()
                check(y.download_to_array()[0, :, 8, 8], value)
            child = os.fork()
            if child == 0:
                os._exit(_in_child(worker, backend))
            assert os.waitpid(child, 0)[1] == 0
            yield


def _in_child(worker: pf.Worker, backend: str) -> int:
    """The exit status: 0 where all is as it should be."""
    try:
        y = worker.schedule(ones(1, 3, 16, 16)).peek_output()
        return 0 if backend == "cpu" and abs(y.download_to_array()[0, 0, 8, 8] - 1) < 1e-5 else 1
    except pf.BackendError:
        return int(backend == "cpu")
    except BaseException:
        return 2
