"""Everything at once in one process: two apps, two processes of films, and a worker in a thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fresh import run_fresh
from media.films import film, index_of
from perframe.media import open_source
from processing.scripts import INVERTER, save_inverter

ALL = """
import logging, sys, threading
from pathlib import Path
import numpy as np, perframe as pf
from gl.graphs import network

BACKEND, HERE, END = sys.argv[1], Path(sys.argv[2]), threading.Event()
errors, said, rounds = [], [], [0]


class Warnings(logging.Handler):
    def emit(self, record):
        if "blocked inside" in record.getMessage():
            said.append(record.getMessage())


logging.getLogger("perframe").addHandler(Warnings())


class Live(pf.Script):
    # Polls, and never waits: each result is that of the numbers it was asked for.

    def __init__(self, factor):
        self.factor, self.seen, self.waiting = factor, 0, []

    def start(self):
        ctx = None if BACKEND == "cpu" else self.app.ctx
        self.worker, self.slow = pf.Worker(network(), BACKEND, ctx), pf.Worker(network(), BACKEND, ctx)
        self.x = np.zeros((1, 3, 40, 50), np.float32)

    def update(self, frame):
        self.x[:] = value = 1 + self.factor * (frame.index % 50)
        readback = self.worker.schedule(self.x).peek_output().readback_request()
        assert readback.frame == frame.index
        self.waiting.append((value, readback))
        while self.waiting and self.waiting[0][1].done:
            value, readback = self.waiting.pop(0)
            assert np.allclose(readback.result(), 2 * value - 0.5), (value, readback.result().max())
            self.seen += 1
        run = self.app.schedule(self.slow, self.x, 2, policy="skip", source=float(self.x.max()), on_done=self.done)
        assert run.frame == frame.index

    def done(self, run):
        self.app.when_done(self.slow.peek_output().readback_request(), lambda found: self.compare(run.source, found))

    def compare(self, value, found):
        assert np.allclose(found, 2 * value - 0.5), (value, found.max())

    def destroy(self):
        self.worker.release()
        self.slow.release()


def guarded(work):
    def run():
        try:
            work()
        except BaseException as error:
            errors.append(f"{work}: {type(error).__name__}: {error}")
    return run


def process(name):
    def run():
        for part in range(2):
            out = HERE / f"{name} out {part}"
            pf.process(HERE / name, out, HERE / "model.onnx", script=HERE / f"of {name}" / "script.py", backend=BACKEND)
    return run


def worker_of_a_thread():
    with pf.Worker(network(), BACKEND) as worker:
        while not END.is_set():
            x = np.full((1, 3, 7, 9), 1 + rounds[0] % 5, np.float32)
            assert np.allclose(worker.schedule(x).peek_output().download_to_array(), 2 * x - 0.5)
            rounds[0] += 1


apps = [pf.App((32, 24), headless=True, stop_on_error=True) for _ in range(2)]
scripts = [Live(0.5), Live(2.0)]
for app, script in zip(apps, scripts):
    app.add(script)
threads = [threading.Thread(target=guarded(process(name))) for name in ("one", "two")]
beside = threading.Thread(target=guarded(worker_of_a_thread))
for thread in (*threads, beside):
    thread.start()
count = 0
while any(thread.is_alive() for thread in threads) or count < 60:
    for app in apps if count % 2 else reversed(apps):
        app.loop_once()
    count += 1
END.set()
beside.join()
for app in apps:
    app.release()
assert not errors, errors
assert not said, said
assert rounds[0] > 10 and all(script.seen > 10 for script in scripts), (rounds, [script.seen for script in scripts])
print("frames", count, "rounds", rounds[0])
"""

WORKERS = """
import sys, threading, time
import numpy as np, perframe as pf
from gl.graphs import network

BACKEND, END, errors, rounds = sys.argv[1], time.monotonic() + 8, [], [0, 0, 0]


def work(place):
    try:
        with pf.Worker(network(), BACKEND) as worker:
            while time.monotonic() < END:
                x = np.full((1, 3, 7 + rounds[place] % 3, 9), 1 + rounds[place] % 5, np.float32)
                assert np.allclose(worker.schedule(x).peek_output().download_to_array(), 2 * x - 0.5)
                rounds[place] += 1
    except BaseException as error:
        errors.append(repr(error))


threads = [threading.Thread(target=work, args=(place,)) for place in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
assert all(done > 10 for done in rounds), rounds
"""


@pytest.mark.slow
def test_workers_of_three_threads_share_nothing(backend: str, gl_context: Any) -> None:
    # llvmpipe crashed here in most runs, while the threads drew
    run_fresh(WORKERS, backend)


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """Two films, and for each a script of the same name: the second one does not invert."""
    save_inverter(tmp_path / "model.onnx")
    for name, frames in (("one", 40), ("two", 9)):
        film(tmp_path / name, frames)
        folder = tmp_path / f"of {name}"
        folder.mkdir()
        drawn = "present(" if name == "one" else "present(255 - "
        (folder / "script.py").write_text(INVERTER.replace("present(", drawn))
    return tmp_path


@pytest.mark.slow
def test_two_apps_two_films_and_a_worker_share_nothing(backend: str, gl_context: Any, films: Path) -> None:
    run_fresh(ALL, backend, str(films))
    for name, frames in (("one", 40), ("two", 9)):
        for part in range(2):
            with open_source(films / f"{name} out {part}") as source:
                shown = [picture.pixels for picture in source]
            upright = [255 - pixels for pixels in shown] if name == "one" else shown
            assert [index_of(pixels) for pixels in upright] == [index % 38 for index in range(frames)], name
            inverted = [255 - pixels for pixels in upright]
            assert [int(pixels[0, 0, 0]) for pixels in inverted] == list(range(frames)), "frames since the start"
