"""The bar that is drawn while kernels are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.host import App, ManualClock
from perframe.host.blank import BlankSurface


class Compiling:
    progress = 0.0


def test_the_bar_grows_and_goes() -> None:
    worker, surface = Compiling(), BlankSurface((200, 100))
    bar = pf.host.ProgressBar(worker, "one moment")
    with App(surface=surface, clock=ManualClock(1 / 60), stop_on_error=True) as app:
        app.add(bar)
        lengths = []
        for worker.progress in (0.0, 0.25, 0.5, 0.99):
            app.loop_once()
            pixels = surface.read_pixels()
            lengths.append(int((pixels[-1] == (70, 110, 200)).all(-1).sum()))
            assert bar.shown and not pixels[:80].any(), "it lies along the bottom"
        assert lengths == [0, 50, 100, 198]
        worker.progress = 1.0
        app.loop_once()
        assert not bar.shown and not surface.read_pixels().any()


def test_it_shows_the_progress_of_a_worker(gl_context: Any, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    share = [0.5]
    monkeypatch.setattr("perframe.execution.worker.kernel_progress", lambda: share[0])
    graph = pf.FunctionalGraph()
    x = graph.add_input(pf.DataType.FLOAT32, (2, 2))
    with pf.Worker(graph.compile(x + 1), backend) as worker, App((160, 90), headless=True, stop_on_error=True) as app:
        app.add(pf.host.ProgressBar(worker))
        app.loop_once()
        below = np.asarray(app.surface.read_pixels())[-1]
        assert (below[:80] == (70, 110, 200)).all() and (below[80:] == (16, 18, 24)).all()
        share[0] = 1.0
        app.loop_once()
        assert not np.asarray(app.surface.read_pixels()).any()
