"""Those who watch the runs of all workers of the process, such as a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from perframe.execution.worker import Worker


class Watcher(Protocol):
    """Called for each run of each worker, on the scheduling thread; must not schedule runs."""

    def run_begins(self, worker: Worker) -> None:
        """A run begins: its inputs are checked, and nothing is submitted."""

    def run_submitted(self, worker: Worker) -> None:
        """All layers of the run are submitted."""

    def worker_ends(self, worker: Worker) -> None:
        """The worker is being released. Its last run is over, and its plans are still there."""


watchers: list[Watcher] = []
