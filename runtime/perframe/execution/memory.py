"""The memory of a worker: what it holds, and which of it may go."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock

from perframe.backends.protocol import Backend
from perframe.errors import HeldMemory
from perframe.execution.parts import Parts
from perframe.execution.planned_part import PlannedPart
from perframe.execution.states import States
from perframe.tensor.memory import Holder, ledger


class WorkerMemory(Holder):
    """Counts a worker's memory for errors, and drops its older plans before another allocation fails."""

    def __init__(self, name: str, lock: RLock, backend: Backend, parts: Parts, states: States) -> None:
        self._name, self._lock, self._backend = f"{name} on {backend.backend_type}", lock, backend
        self._parts, self._states = parts, states
        ledger.holders.add(self)

    def _planned(self) -> Iterator[PlannedPart]:
        yield from self._parts.planned_parts()
        yield from self._states.planned_parts()

    def held(self, seen: set[int]) -> HeldMemory:
        """Its bytes, apart from the objects in `seen`: workers of one model share weights."""
        states = self._states.held(seen)
        found = [part.held(seen) for part in self._planned()]
        weights, plan, caches = map(sum, zip(*found, strict=True)) if found else (0, 0, 0)
        return HeldMemory(self._name, weights, plan, caches, states)

    def free_spare(self) -> None:
        """Free the memory that is kept for readbacks, in this thread."""
        if self._backend.is_here and self._lock.acquire(blocking=False):
            try:
                for part in self._planned():
                    part.free_spare()
                self._backend.free_spare()
            finally:
                self._lock.release()

    @property
    def oldest(self) -> int | None:
        """When the oldest plan that may go was used; None if another thread uses the worker."""
        found = self._oldest()
        return None if found is None else found[0]

    def drop_oldest(self) -> bool:
        """Drop that plan, unless another thread uses the worker."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            found = self._oldest()
            return found is not None and found[1].drop_oldest()
        finally:
            self._lock.release()

    def _oldest(self) -> tuple[int, PlannedPart] | None:
        if not self._backend.is_here:
            return None
        found = [(age, part) for part in self._planned() if (age := part.oldest) is not None]
        return min(found, key=lambda one: one[0], default=None)
