"""What kernels read in place of constants, in host memory: made once for all workers that have the same arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from perframe.backends.base import Operand
from perframe.locks import new_lock


class SharedOperand:
    """What was made of an array, for as many pools as have taken it."""

    def __init__(self, source: NDArray[Any], key: tuple[int, str]) -> None:
        self.source, self.key = weakref.ref(source), key
        self.users = 0
        self._made: Operand | None = None
        self._making = new_lock()

    def operand(self, make: Callable[[], Operand]) -> Operand:
        """The operand, which the first who asks makes."""
        with self._making:
            if self._made is None:
                self._made = make()
            return self._made

    def free(self) -> None:
        """Nobody reads it any more."""
        if self._made is not None:
            self._made.storage.release()


_lock = new_lock()
# weak, since a worker may go without being released
_known: weakref.WeakValueDictionary[tuple[int, str], SharedOperand] = weakref.WeakValueDictionary()


def take(source: NDArray[Any], kind: str) -> SharedOperand:
    """What `kind` names of an array that nobody changes; who takes it gives it back."""
    key = (id(source), kind)
    with _lock:
        found = _known.get(key)
        if found is None or found.source() is not source:  # another array may have had its place
            found = _known[key] = SharedOperand(source, key)
        found.users += 1
        return found


def give_back(shared: SharedOperand) -> None:
    """Free it, if nobody else has it."""
    with _lock:
        shared.users -= 1
        if shared.users:
            return
        if _known.get(shared.key) is shared:
            del _known[shared.key]
    shared.free()
