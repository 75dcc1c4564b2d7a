"""Two apps in one process take turns, each with workers of its own, on the GPU and on the CPU."""

from __future__ import annotations

import pytest

from fresh import run_fresh

APPS = """
import sys
import numpy as np, perframe as pf
from gl.graphs import network

class Show(pf.Script):
    def __init__(self, backend, factor):
        self.backend, self.factor, self.results, self.seen = backend, factor, [], []

    async def start(self):
        ctx = self.app.ctx
        self.x = np.full((1, 3, 8, 8), self.factor, np.float32)
        self.worker = pf.Worker(network(), self.backend, None if self.backend == "cpu" else ctx)
        self.converter = pf.TextureConverter(ctx)
        self.texture = ctx.texture((8, 8), 4)
        while True:
            y = self.worker.schedule(self.x).peek_output()
            self.results.append((await y.readback_request()).max())

    def render(self, frame):
        y = self.worker.schedule(self.x).peek_output()
        self.converter.to_texture(y, self.texture)
        self.converter.render_to_screen(y)
        self.seen.append((self.texture.read()[0], self.app.surface.read_pixels()[4, 4, 0]))

    def destroy(self):
        for thing in (self.worker, self.converter):
            thing.release()

backend, headless = sys.argv[1], [kind == "headless" for kind in sys.argv[2:]]
apps = [pf.App(size=(64, 64), headless=kind, vsync=False, stop_on_error=True) for kind in headless]
scripts = [Show(backend, 0.3), Show(backend, 0.45)]
for app, script in zip(apps, scripts):
    app.add(script)
own = pf.Worker(network(), backend)  # of neither
for frame in range(8):
    for app in apps if frame % 2 else reversed(apps):
        app.loop_once()
    assert own.schedule(np.ones((1, 3, 4, 5), np.float32)).peek_output().download_to_array().max() == 1.5
apps[0].release()
third = pf.App(size=(32, 32), headless=headless[0], vsync=False, stop_on_error=True)
third.add(Show(backend, 0.5))
for _ in range(4):
    third.loop_once()
    apps[1].loop_once()
for script, value in zip(scripts, (0.1, 0.4)):
    assert len(script.results) >= 4 and np.allclose(script.results, value), script.results
    assert np.abs(np.array(script.seen) - 255 * value).max() <= 1, script.seen
for app in (apps[1], third):
    assert app.ctx.error == "GL_NO_ERROR"
    app.release()
"""


@pytest.mark.slow
@pytest.mark.window
@pytest.mark.parametrize(
    "kinds", [("headless", "headless"), ("window", "window"), ("headless", "window")], ids="-".join
)
def test_two_apps_take_turns(display: None, backend: str, kinds: tuple[str, str]) -> None:
    run_fresh(APPS, backend, *kinds)


OTHERS = """
import sys
import numpy as np, perframe as pf

graph = pf.FunctionalGraph()
model = graph.compile(pf.functional.relu(graph.add_input(pf.DataType.FLOAT32, (4,))))
with pf.App(size=(8, 8), headless=True) as first, pf.App(size=(8, 8), headless=True, stop_on_error=True) as second:
    first.loop_once()
    worker = pf.Worker(model, sys.argv[1], first.ctx)
    second.add(lambda: worker.schedule(np.ones(4, np.float32)))
    try:
        second.loop_once()
    except pf.BackendError as error:
        print(error)
"""


@pytest.mark.parametrize("gpu", ["gpu_compute", "gpu_pixel"])
def test_a_worker_of_another_app_says_whose_frames_it_may_be_used_in(gl_context: object, gpu: str) -> None:
    if gpu == "gpu_compute" and gl_context.version_code < 430:  # type: ignore[attr-defined]
        pytest.skip("gpu_compute needs GL 4.3")
    assert "of two Apps, use each one's workers in its own scripts" in run_fresh(OTHERS, gpu)
