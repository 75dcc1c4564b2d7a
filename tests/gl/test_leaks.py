"""Many workers, converters and shapes in one context, and many contexts in one process, leave nothing behind."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import moderngl
import numpy as np
import pytest

import perframe as pf
from fresh import run_fresh
from garbage import collect_garbage
from gl.graphs import network
from perframe.backends.gl.context import devices as context
from perframe.backends.gl.context.devices import device_for
from perframe.graphics.headless_context import entry_point

KINDS = ("Buffer", "Texture", "Framebuffer", "Program", "Shader", "VertexArray", "Sampler", "Query")


def living(ctx: Any) -> dict[str, int]:
    """How many GL names of each kind exist, among the first: Mesa takes the lowest that is free. Without the pool of
    staging buffers, which has as many as were in flight together.
    """
    collect_garbage()
    device = device_for(ctx)
    device.free_dropped()
    kinds = {}
    for kind in KINDS:
        exists = ctypes.CFUNCTYPE(ctypes.c_ubyte, ctypes.c_uint)(entry_point(ctx, f"glIs{kind}"))
        kinds[kind] = sum(bool(exists(name)) for name in range(1, 5000))
    kinds["Buffer"] -= sum(map(len, device._staging.values()))
    return kinds


def use(where: str, ctx: Any, released: bool) -> None:
    """Workers, conversions and readbacks of many shapes; some of it is released, and the rest is dropped."""
    worker, converter, commands = (
        pf.Worker(network(), where, ctx),
        pf.TextureConverter(ctx, where),
        pf.CommandBuffer(ctx),
    )
    texture = ctx.texture((8, 8), 4)
    for size in range(3, 9):
        y = worker.schedule(np.ones((1, 3, size, size), np.float32)).peek_output()
        readback = y.readback_request()
        if size % 2:
            readback.result(wait=True)
        x = converter.to_tensor(texture, pf.Tensor.empty((1, 3, size, size)))
        worker.schedule(x)
        how = pf.TextureTransform(resample="antialias")
        uploaded = ctx.texture((5, size), 4)
        converter.upload(np.zeros((size, 5, 4), np.uint8), uploaded)
        uploaded.release()
        converter.to_tensor([texture] * size, pf.Tensor.empty((size, 3, 4, size)), how)
        converter.to_texture(x, texture)
        converter.to_texture(pf.Tensor(np.ones((1, 3, size, size), np.float32)), texture)
        commands.to_tensor(texture, pf.Tensor.empty((3, size, size)))
    commands.execute()
    texture.release()
    if released:
        for thing in (worker, converter, commands):
            thing.release()


@pytest.mark.slow
def test_names(where: str, gl_context: Any) -> None:
    ctx = moderngl.create_context(standalone=True, backend="egl", require=gl_context.version_code)
    for released in (True, False):
        use(where, ctx, released)
    before = living(ctx)
    for released in (True, False, True, False):
        use(where, ctx, released)
    assert living(ctx) == before
    assert ctx.error == "GL_NO_ERROR"
    ctx.release()
    gl_context.__enter__()


CONTEXTS = """
import gc, os, sys
import moderngl, numpy as np, perframe as pf
from gl.graphs import network

def use(count):
    for _ in range(count):
        ctx = moderngl.create_context(standalone=True, backend="egl")
        worker = pf.Worker(network(), sys.argv[1], ctx)
        assert worker.schedule(np.ones((1, 3, 4, 5), np.float32)).peek_output().download_to_array().max() == 1.5
        worker.release()
        ctx.release()
        app = pf.App(size=(16, 16), headless=True)
        worker = pf.Worker(network(), sys.argv[1], app.ctx)
        worker.schedule(np.ones((1, 3, 4, 5), np.float32))
        app.loop_once()
        app.release()
    gc.collect()
    pages = int(open("/proc/self/statm").read().split()[1])
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), pages * 4096 / 2**20

use(3)
files, threads, megabytes = use(3)
more_files, more_threads, more_megabytes = use(15)
assert (more_files, more_threads) == (files, threads), (files, more_files, threads, more_threads)
assert more_megabytes < megabytes + 15, (megabytes, more_megabytes)
"""


@pytest.mark.slow
def test_contexts(where: str) -> None:
    run_fresh(CONTEXTS, where)


def test_threads_that_end_leave_their_contexts_to_others(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their numbers: those are where their stacks lie, and stacks of other sizes lie elsewhere."""
    monkeypatch.setattr(context, "_default", {})
    numbers, made = set[int](), list[Any]()

    def use() -> None:
        numbers.add(threading.get_ident())
        with pf.Worker(network(), where) as worker:
            made.append(worker.schedule(np.ones((1, 3, 4, 5), np.float32)).peek_output().download_to_array())

    before = threading.stack_size()
    try:
        for megabytes in range(1, 7):
            threading.stack_size(megabytes << 20)
            thread = threading.Thread(target=use)
            thread.start()
            thread.join()
    finally:
        threading.stack_size(before)
    assert len(numbers) > 1 and len(made) == 6 and all(values.max() == 1.5 for values in made)
    assert len(context._default) == 1
