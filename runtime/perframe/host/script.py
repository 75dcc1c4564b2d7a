"""The base class of scripts, and the scripts that come with the host."""

from __future__ import annotations

from typing import Protocol

from perframe.host.app import App
from perframe.host.frame import Frame
from perframe.host.progress import ProgressPicture
from perframe.host.scripts import Hooks


class Script(Hooks):
    """A participant in a frame loop. Override the hooks that you need; `self.app` is set before they run.

    Every hook but `destroy` may be `async def`: it runs at once up to its first `await`, then continues once a frame,
    together with the coroutines. An async per-frame hook is not called again before it has ended; an async `on_event`
    runs once for each event. The loop does not wait for an async `start`: `update` runs meanwhile.
    """

    app: App

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, 'app', 'of no app yet')})"


class HasProgress(Protocol):
    """A worker, as the host sees it."""

    @property
    def progress(self) -> float:
        """The share of the work that is done, from 0 to 1."""


class ProgressBar(Script):
    """A script that draws a bar along the bottom of the surface while a worker's kernels are compiled. In a window the
    app does that itself.

    It draws nothing once they are compiled, and begins again when new ones are needed. `text` stands on the bar.
    """

    is_overlay = True

    def __init__(self, worker: HasProgress, text: str = "compiling kernels") -> None:
        self.worker, self.text = worker, text
        self.shown = False
        """Whether the bar is on the screen."""
        self._picture = ProgressPicture()

    def render(self, _frame: Frame) -> None:
        """Draw the bar."""
        progress = self.worker.progress
        self.shown = progress < 1
        draw_over = getattr(self.app.surface, "draw_over", None)  # a surface of the caller's may have none
        if not self.shown or draw_over is None:
            return
        draw_over(self._picture.of(self.text, progress, self.app.size))
