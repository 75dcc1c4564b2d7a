"""`load_async`: models are loaded beside the frames, with the options and the errors of `load`."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from fresh import run_fresh
from perframe.errors import (
    ClosedError,
    InputError,
    MissingFileError,
    ModelError,
    PerframeError,
    UnsupportedOperatorError,
)
from perframe.host import App, ManualClock
from perframe.host.surface import BlankSurface
from perframe.tensor import background, frames
from small import node

DIM = 8


def saved(folder: Path, blocks: int = 6, op: str = "Tanh") -> Path:
    """A file whose layers several passes change."""
    nodes = []
    for at in range(blocks):
        nodes += [
            node("MatMul", f"v{at} w", f"m{at}"),
            node("Add", f"m{at} b", f"a{at}"),
            node(op, f"a{at}", f"v{at + 1}"),
        ]
    weight = np.random.default_rng(0).normal(size=(DIM, DIM)).astype(np.float32)
    bias = np.arange(DIM, dtype=np.float32)
    shape = ["n", DIM]
    graph = onnx.helper.make_graph(
        nodes,
        "blocks",
        [onnx.helper.make_tensor_value_info("v0", onnx.TensorProto.FLOAT, shape)],
        [onnx.helper.make_tensor_value_info(f"v{blocks}", onnx.TensorProto.FLOAT, shape)],
        [onnx.numpy_helper.from_array(weight, "w"), onnx.numpy_helper.from_array(bias, "b")],
    )
    path = folder / "blocks.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
    return path


def run(model: pf.Model) -> Any:
    x = np.linspace(-1, 1, 3 * DIM, dtype=np.float32).reshape(3, DIM)
    return pf.run(model, {"v0": x})["v6"]


def ended(loading: Any) -> bool:
    """Whether the thread has ended, after a moment."""
    loading._thread.join(10)
    return not loading._thread.is_alive()


def in_app(work: Callable[[], Any], gate: threading.Event) -> tuple[Any, int]:
    """The result of a coroutine in an app, and the number of frames meanwhile. The third one opens the gate."""
    with App(surface=BlankSurface((4, 3)), clock=ManualClock(1 / 60), stop_on_error=True) as app:
        task, count = app.start_coroutine(work()), 0
        until = time.monotonic() + 60
        while not task.done and time.monotonic() < until:
            app.loop_once()
            time.sleep(0.001)
            count += 1
            if count == 3:
                gate.set()
        return task.result(), count


def wait_for(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let loads wait where they give way, until the gate is open."""
    give_way = background.Work.give_way

    def waiting(self: background.Work) -> None:
        gate.wait(10)
        give_way(self)

    monkeypatch.setattr(background.Work, "give_way", waiting)


def test_frames_go_on_while_a_script_awaits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, told, gate = saved(tmp_path), list[tuple[str, float, int]](), threading.Event()
    wait_for(gate, monkeypatch)

    async def work() -> pf.Model:
        def progress(what: str, done: float) -> None:
            told.append((what, done, threading.get_ident()))

        return await pf.load_async(path, progress=progress)

    model, count = in_app(work, gate)
    assert count >= 3
    np.testing.assert_array_equal(run(model), run(pf.load(path)))
    assert [layer.op for layer in model.layers] == [layer.op for layer in pf.load(path).layers]
    assert {thread for *_, thread in told} <= {threading.get_ident()}
    assert all(what and 0 <= done <= 1 for what, done, _ in told)


def test_a_program_of_asyncio_loads_several(tmp_path: Path) -> None:
    path = saved(tmp_path)

    async def main() -> list[pf.Model]:
        return await asyncio.gather(pf.load_async(path), pf.load_async(path.read_bytes(), optimize=False))

    optimized, plain = asyncio.run(main())
    assert len(optimized.layers) < len(plain.layers) == 18
    np.testing.assert_allclose(run(optimized), run(plain), 1e-5)


def test_polling_without_a_loop(tmp_path: Path) -> None:
    loading = pf.load_async(saved(tmp_path), dims={"n": 3})
    if not loading.done:
        with pytest.raises(PerframeError, match="not done"):
            loading.result()
    model = loading.result(wait=True)
    assert loading.done and not loading.failed and loading.progress == 1
    assert str(model.inputs[0].shape) == "(3, 8)"
    loading.cancel()  # too late
    assert loading.result() is model


@pytest.mark.parametrize(
    ("change", "options", "error"),
    [
        (lambda path: path.unlink(), {}, MissingFileError),
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), {}, ModelError),
        (lambda path: saved(path.parent, op="NoSuchOperator"), {}, UnsupportedOperatorError),
        (lambda path: None, {"dims": {"nowhere": 3}}, ModelError),
        (lambda path: None, {"outputs": ["nowhere"]}, ModelError),
        (lambda path: None, {"key": "a key"}, InputError),
        (lambda path: None, {"signature": "serving"}, InputError),
    ],
)
def test_errors_are_those_of_load(
    tmp_path: Path, change: Callable[[Path], object], options: dict[str, Any], error: type[Exception]
) -> None:
    path = saved(tmp_path)
    change(path)
    with pytest.raises(error) as direct:
        pf.load(path, **options)
    loading = pf.load_async(path, **options)
    with pytest.raises(error) as beside:
        asyncio.run(_awaited(loading))
    assert type(beside.value) is type(direct.value) and str(beside.value) == str(direct.value)
    assert loading.done and loading.failed and ended(loading)


async def _awaited(loading: Any) -> Any:
    return await loading


def test_canceled_at_every_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stages, stop = saved(tmp_path), list[str](), [""]
    give_way = background.Work.give_way

    def stopping(self: background.Work) -> None:
        stages.append(self.what)
        if stop[0] and self.what == stop[0]:
            self.is_cancelled = True
        give_way(self)

    monkeypatch.setattr(background.Work, "give_way", stopping)
    pf.load_async(path).result(wait=True)
    found = list(dict.fromkeys(stages))
    assert len(found) > 10 and "reads the file" in found
    threads = threading.active_count()
    for stage in found:
        stop[0] = stage
        loading = pf.load_async(path)
        assert ended(loading) and loading.done and not loading.failed
        with pytest.raises(ClosedError, match="canceled"):
            loading.result()
    assert threading.active_count() == threads
    assert os.listdir(tmp_path) == [path.name] and gc.isenabled()
    stop[0] = ""
    pf.load_async(path).result(wait=True)


def test_who_cancels_the_waiting_code_cancels_the_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, gate = saved(tmp_path), threading.Event()
    wait_for(gate, monkeypatch)
    loadings = []

    async def main() -> None:
        loadings.append(pf.load_async(path))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loadings[0], 0.02)

    asyncio.run(main())
    with App(surface=BlankSurface((4, 3)), clock=ManualClock(1 / 60)) as app:
        loadings.append(pf.load_async(path))
        task = app.start_coroutine(_awaited(loadings[1]))
        app.loop_once()
        task.cancel()
    gate.set()
    for loading in loadings:
        assert ended(loading)
        with pytest.raises(ClosedError):
            loading.result()


def test_an_error_of_the_callback_ends_the_load(tmp_path: Path) -> None:
    loading = pf.load_async(saved(tmp_path, blocks=200), progress=lambda what, done: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(_awaited(loading))
    assert ended(loading)


def test_a_dropped_load_ends(tmp_path: Path) -> None:
    loading = pf.load_async(saved(tmp_path, blocks=200))
    thread = loading._thread
    del loading
    thread.join(10)
    assert not thread.is_alive()


def test_a_load_pauses_in_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a frame the thread asks, after each turn, whether the frame is over."""
    asked = list[bool]()

    class Between(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            asked.append(self.is_set())
            return super().wait(timeout)

    between = Between()
    between.set()
    monkeypatch.setattr(frames, "between", between)
    monkeypatch.setattr(background, "TURN", 0.0)
    state = frames.FrameState()
    with state.entered():
        state.begin(1)
        loading = pf.load_async(saved(tmp_path))
        time.sleep(0.1)
        assert asked and not any(asked) and not loading.done
    loading.result(wait=True)
    assert asked[-1]


def test_the_process_may_end_meanwhile(tmp_path: Path) -> None:
    code = "import sys, perframe as pf; kept = pf.load_async(sys.argv[1]); print('end')"
    assert run_fresh(code, str(saved(tmp_path, blocks=400)), seconds=60) == "end\n"
