"""Scripts, whose per-frame hooks a user writes, and the list that calls them in order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from perframe.errors import InputError
from perframe.host.frame import Frame
from perframe.host.input import Event
from perframe.host.tasks import Task

if TYPE_CHECKING:
    from perframe.host.app import App

Hook = Coroutine[Any, Any, object] | None
"""The result of a hook: None, or a coroutine if the hook is an `async def`."""


class Script:
    """A participant in a frame loop. Override the hooks that you need; `self.app` is set before they run.

    Every hook but `destroy` may be `async def`: it runs at once up to its first `await`, and then goes on once a frame,
    together with the coroutines. An async per-frame hook is not called again before it has ended; an async `on_event`
    runs once for each event. The loop does not wait for an async `start`: `update` runs meanwhile.
    """

    app: App

    def awake(self) -> Hook:
        """Called as soon as the script is added to an app."""

    def start(self) -> Hook:
        """Called once, at the beginning of the script's first frame."""

    def fixed_update(self, frame: Frame) -> Hook:
        """Called every `frame.fixed_delta_time` seconds: zero, one or several times in a frame."""

    def update(self, frame: Frame) -> Hook:
        """Called once a frame."""

    def late_update(self, frame: Frame) -> Hook:
        """Called once a frame, after `update` of all scripts."""

    def render(self, frame: Frame) -> Hook:
        """Called once a frame to draw into `self.app.framebuffer`, which is bound."""

    def on_event(self, event: Event) -> Hook:
        """Called for each event, before the frame's updates."""

    def destroy(self) -> None:
        """Called once, when the script is removed or the app is released. The script's tasks are cancelled before."""


class ScriptList:
    """The scripts of an app, called in the order in which they were added. Any hook may add and remove scripts."""

    def __init__(self, start_coroutine: Callable[[Coroutine[Any, Any, Any], str, Script], Task[Any]]) -> None:
        self._start_coroutine = start_coroutine
        self._scripts: list[Script] = []
        self._waiting: list[Script] = []
        self._under_way: dict[tuple[Script, str], Task[Any]] = {}

    def __iter__(self) -> Iterator[Script]:
        return iter((*self._scripts, *self._waiting))

    def check(self, script: Script) -> None:
        """Raise InputError if the script cannot be added."""
        if not isinstance(script, Script):
            raise InputError(f"{script!r} is not a perframe.Script")
        if script in self:
            raise InputError(f"{_name(script)} is already part of the app")
        if inspect.iscoroutinefunction(script.destroy):
            raise InputError(f"{_name(script)}.destroy is async: it cannot be, because no frame comes after it")

    def add(self, script: Script) -> None:
        """Add a script: `awake` runs now, `start` when the next frame begins. If `awake` fails, it is not added."""
        self._call(script, "awake")
        self._waiting.append(script)

    def start_waiting(self) -> None:
        """Start the scripts that were added since the last frame."""
        for script in tuple(self._waiting):
            if script in self._waiting:
                self._waiting.remove(script)
                self._scripts.append(script)
                self._call(script, "start")

    def call(self, hook: str, argument: Frame | Event) -> None:
        """Call one hook of every script that has started."""
        for script in tuple(self._scripts):
            if script in self._scripts:  # a script before it may have removed it
                self._call(script, hook, argument)

    def destroy(self, script: Script) -> None:
        """Remove a script, and call its `destroy`. Does nothing if another script's `destroy` has removed it."""
        if script not in self:
            return
        for scripts in (self._scripts, self._waiting):
            if script in scripts:
                scripts.remove(script)
        self._under_way = {key: task for key, task in self._under_way.items() if key[0] is not script}
        self._call(script, "destroy")

    def _call(self, script: Script, hook: str, *arguments: Frame | Event) -> None:
        key = (script, hook)
        if key in self._under_way:
            if not self._under_way[key].done:
                return
            del self._under_way[key]
        name = f"{_name(script)}.{hook}"
        try:
            coroutine = getattr(script, hook)(*arguments)
        except Exception as error:
            error.add_note(f"in {name}")
            raise
        if coroutine is None:
            return
        if inspect.isgenerator(coroutine):
            raise InputError(
                f"{name} has a `yield`, so it would never run: make it `async def`, and await next_frame()"
            )
        if inspect.iscoroutine(coroutine):
            task = self._start_coroutine(coroutine, name, script)
            if not task.done and hook != "on_event":
                self._under_way[key] = task


def _name(script: object) -> str:
    return type(script).__name__
