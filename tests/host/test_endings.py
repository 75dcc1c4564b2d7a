"""How a loop ends that does not end as planned: in a process of its own, which must leave nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fresh import run_fresh, virtual_screen

BUSY = """
import asyncio, logging, sys, threading, time
import numpy as np, perframe as pf
logging.basicConfig(level=logging.WARNING, stream=sys.stderr)

def network():
    graph = pf.FunctionalGraph()
    x = graph.add_input(pf.DataType.FLOAT32, (1, 16, 128, 128))
    for _ in range(8):
        weights = np.random.default_rng(0).random((16, 16, 3, 3), np.float32) / 144
        x = pf.functional.relu(pf.functional.conv2d(x, pf.Tensor(weights), padding=1))
    return graph.compile(x)

class Busy(pf.Script):
    def start(self):
        self.worker = pf.Worker(network(), BACKEND, None if BACKEND == "cpu" else self.app.ctx)
        self.x = np.ones((1, 16, 128, 128), np.float32)
        self.app.start_coroutine(self.wait(), owner=self)

    async def wait(self):
        self.task = asyncio.create_task(asyncio.sleep(1000))
        self.readback = self.worker.schedule(self.x).peek_output().readback_request()
        await self.task

    def update(self, frame):
        self.run = self.app.schedule(self.worker, self.x, budget_ms=0.1, policy="skip")
        if frame.index == 3:
            end(self.app)

    def destroy(self):
        self.worker.release()
        print("destroyed", flush=True)
"""

AFTERWARDS = """
print([thread.name for thread in threading.enumerate() if not thread.daemon], flush=True)
"""


def run_until_it_ends(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the code in a new interpreter, which may end by an error."""
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
@pytest.mark.window
def test_a_window_that_is_closed_in_the_middle_of_a_run_ends_cleanly(display: None, backend: str) -> None:
    code = f"""
BACKEND = {backend!r}
{BUSY}
def end(app):
    import glfw
    app.surface._on_close(None)
    glfw.set_window_should_close(app.surface._handle, True)

busy = Busy()
pf.App(size=(64, 64), headless=False, vsync=False, stop_on_error=True).run(busy)
assert busy.run.done and busy.task.cancelled()
{AFTERWARDS}
"""
    assert run_fresh(code).splitlines() == ["destroyed", "['MainThread']"]


@pytest.mark.slow
@pytest.mark.window
def test_an_error_in_the_middle_of_a_run_ends_cleanly_if_asked(display: None, backend: str) -> None:
    code = f"""
BACKEND = {backend!r}
{BUSY}
def end(app):
    raise ZeroDivisionError("as asked")

try:
    pf.App(size=(64, 64), headless=False, vsync=False, stop_on_error=True).run(Busy())
except ZeroDivisionError as error:
    print(*error.__notes__)
{AFTERWARDS}
"""
    assert run_fresh(code).splitlines() == ["destroyed", "in Busy.update", "['MainThread']"]


@pytest.mark.quick(cases=0)
@pytest.mark.window
def test_a_lost_context_ends_the_loop(display: None) -> None:
    """The driver says that the context was lost, as it does after a reset."""
    code = f"""
BACKEND = "gpu_pixel"
{BUSY}
def end(app):
    from perframe.backends.gl.context.state import ConditionalRendering

    refuse = ConditionalRendering.refuse

    class Lost:
        def __getattr__(self, name):
            return (lambda *arguments: 0x507) if name == "glGetError" else (lambda *arguments: None)

    def refuse_as_lost(self):
        self._gl = Lost()
        refuse(self)

    ConditionalRendering.refuse = refuse_as_lost

busy = Busy()
try:
    pf.App(size=(64, 64), headless=False, vsync=False).run(busy)
except pf.ContextLostError as error:
    print(error)
{AFTERWARDS}
"""
    first, said, threads = run_fresh(code).splitlines()
    assert (first, threads) == ("destroyed", "['MainThread']") and "0x507: the GL context was lost" in said


@pytest.mark.window
@pytest.mark.parametrize("headless", [True, False])
def test_a_context_that_a_script_releases_ends_the_loop_and_is_named(display: None, headless: bool) -> None:
    code = f"""
import perframe as pf

def draw(app, frame):
    app.framebuffer.clear()
    if frame.index == 2:
        app.ctx.release()

app = pf.App(size=(16, 16), headless={headless})
try:
    app.run(draw)
except pf.ClosedError as error:
    print(error)
    app.release()
"""
    done = run_until_it_ends(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("the app's GL context was released by somebody else"), done.stdout
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.window
def test_when_the_display_goes_away_the_process_ends() -> None:
    code = f"""
BACKEND = "cpu"
{BUSY}
def end(app):
    print("ready", flush=True)
    sys.stdin.readline()

pf.App(size=(64, 64), headless=False, vsync=False).run(Busy())
"""
    paths = os.pathsep.join(path for path in sys.path if path)
    with virtual_screen() as screen:
        environment = {**os.environ, "PYTHONPATH": paths, "DISPLAY": screen}
        environment.pop("WAYLAND_DISPLAY", None)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    _, errors = process.communicate("go on\n", timeout=60)
    assert process.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT), errors
    assert "X connection to" in errors or "X server" in errors, errors


@pytest.mark.quick(cases=0)
def test_a_script_that_never_gives_the_frame_back_is_named_and_can_be_interrupted(tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text(
        """
import logging, signal, sys, threading
import perframe as pf
from perframe.host import watchdog
from perframe.host.surface import BlankSurface
watchdog.SECONDS_OF_PATIENCE = 0.5
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it

class Interrupting(logging.Handler):
    def emit(self, record):
        print(record.getMessage())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # as Ctrl-C does

logging.getLogger("perframe").addHandler(Interrupting())

class Endless(pf.Script):
    async def update(self, frame):
        while True:
            self.count = frame.index

    def destroy(self):
        print("destroyed")

try:
    pf.App(surface=BlankSurface((4, 4))).run(Endless())
except KeyboardInterrupt:
    print([thread.name for thread in threading.enumerate()])
"""
    )
    done = run_until_it_ends(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")
    assert done.returncode == 0, done.stderr
    warning, destroyed, threads = done.stdout.splitlines()
    assert "this frame has taken" in warning and "in update" in warning
    assert "endless.py, line 18" in warning or "endless.py, line 19" in warning
    assert (destroyed, threads) == ("destroyed", "['MainThread']")
