"""Pending downloads: the caller polls them, awaits them, or asks to block."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol

from perframe.errors import ReadbackPendingError
from perframe.tensor.frames import current_frame, give_frames_back

if TYPE_CHECKING:
    import numpy as np


class Pending(Protocol):
    """A download that a backend has begun."""

    def poll(self) -> bool:
        """Whether the values have arrived. Never blocks."""

    def wait(self) -> None:
        """Block until the values have arrived."""

    def values(self) -> np.ndarray[Any, Any]:
        """Return the values. Call it only after `poll` has returned True."""


class Given:
    """A request whose result the caller has: the tensor keeps no array that the caller may overwrite."""

    done, shared = True, None

    def share(self) -> None:
        """Do nothing."""


class Readback:
    """A requested download that may not have arrived yet. `frame` is the host's frame in which it was requested."""

    def __init__(self, pending: Pending, name: str = "", given: Callable[[Readback], None] | None = None) -> None:
        """`given` is called once the caller has the result itself."""
        self.frame = current_frame().index
        self.name = name
        self._pending = pending
        self._result: np.ndarray[Any, Any] | None = None
        self._is_shared, self._given = False, given  # whether a tensor reads the result too

    def __repr__(self) -> str:
        state = "arrived" if self._result is not None else "not read yet"
        return f"Readback({self.name or 'a tensor'}, requested in frame {self.frame}, {state})"

    @property
    def done(self) -> bool:
        """Whether `result()` has the values. Blocks only in loops that wait for readbacks, as `pf.process` does."""
        if current_frame().waits and self._result is None:
            self._pending.wait()
        return self._result is not None or self._pending.poll()

    def result(self, wait: bool = False) -> np.ndarray[Any, Any]:
        """The values as an array. Raises ReadbackPendingError before `done`, unless `wait`, which blocks."""
        values = self._values(wait)
        if self._is_shared:
            return values.copy()
        if self._given is not None:
            self._given(self)
            self._given = None
        return values

    def share(self) -> None:
        """Let the tensor read the result too. Callers then receive copies, which they may overwrite."""
        self._is_shared = True

    @property
    def shared(self) -> np.ndarray[Any, Any] | None:
        """The result, for the tensor that shares it."""
        return self._values() if self._is_shared else None

    def _values(self, wait: bool = False) -> np.ndarray[Any, Any]:
        if self._result is None:
            if not self._pending.poll():
                if not wait:
                    raise ReadbackPendingError(
                        f"the readback of {self.name or 'a tensor'} asked in frame {self.frame} has not arrived: "
                        "poll .done, await it, or call result(wait=True), which blocks"
                    )
                current_frame().blocking("Readback.result(wait=True)")
                self._pending.wait()
            self._result = self._pending.values()
        return self._result

    def __await__(self) -> Generator[Any, None, np.ndarray[Any, Any]]:
        """Give the frame back until the values have arrived.

        A readback that was requested in this frame gives the frame back at least once. Otherwise a loop that requests
        and awaits would hold the frame for ever.
        """
        yield from give_frames_back(lambda: self.done, self.frame)
        return self.result()
