"""The per-frame hooks of scripts, and the list that calls them in order."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Coroutine, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from perframe.errors import InputError
from perframe.host.frame import Frame
from perframe.host.input import Event
from perframe.host.signatures import check_hook, check_no_yield, described, has_yield
from perframe.host.tasks import Task

log = logging.getLogger("perframe")

AnyScript = Any
"""A Script, or a function that is called as a script's `update`. It may have the parameters `frame` and `app`."""

Hook = Coroutine[Any, Any, object] | None
"""The result of a hook: None, or a coroutine if the hook is an `async def`."""

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Hooks:
    """The hooks of a script, which do nothing. `app` is the script's `App`."""

    app: Any
    enabled: bool = True
    """Whether the hooks are called, except `awake` and `destroy`. A script that is not enabled starts when it is. Its
    tasks continue."""
    is_overlay: bool = False
    """Whether `render` runs after that of the other scripts, whatever the order in which they were added."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say when `app` is there; called for an attribute that is missing."""
            hint = ": an app sets it before it calls `awake`, and it is not there in `__init__`" * (name == "app")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

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
        """Called once, when the script is removed or the app is released. The script's tasks are canceled before."""


class FunctionScript(Hooks):
    """A script whose `update` calls a function."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        try:
            parameters = inspect.signature(function).parameters
        except ValueError:
            raise InputError(f"Python knows no parameters of {self.name}: wrap it in a function of `frame`") from None
        self.arguments = tuple(parameters)
        if not set(self.arguments) <= {"frame", "app"} or any(one.kind not in _NAMED for one in parameters.values()):
            raise InputError(
                f"{described(function, self.name)}: a function that is a script can have `frame` and `app`, "
                "passed by name"
            )
        check_no_yield(function, self.name)

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__qualname__", repr(self.function))

    def update(self, frame: Frame) -> Any:
        """Call the function."""
        given = {"frame": frame, "app": self.app}
        return self.function(**{argument: given[argument] for argument in self.arguments})


class ScriptList:
    """The scripts of an app, called in the order in which they were added. Any hook may add and remove scripts.

    `fails` is called with a hook's name and its error, and returns whether the loop continues. A script whose `start`
    has failed is disabled.
    """

    def __init__(
        self,
        start_coroutine: Callable[[Coroutine[Any, Any, Any], str, Hooks], Task[Any]],
        fails: Callable[[str, Exception, bool], bool],
    ) -> None:
        self._start_coroutine = start_coroutine
        self._fails = fails
        self._not_started: set[Hooks] = set()  # their `start` failed
        self._scripts: list[Hooks] = []
        self._waiting: list[Hooks] = []
        self._under_way: dict[tuple[Hooks, str], Task[Any]] = {}

    def __iter__(self) -> Iterator[Hooks]:
        return iter((*self._scripts, *self._waiting))

    def accept(self, given: AnyScript) -> Hooks:
        """Return the script, or one that calls the function. Raises InputError if it cannot be added."""
        if isinstance(given, type):
            raise InputError(f"{given.__name__} is a class: pass an object of it, {given.__name__}()")
        if not (isinstance(given, Hooks) or callable(given)):
            raise InputError(f"{given!r} is not a perframe.Script, an object of such a class, or a function")
        script: Hooks = given if isinstance(given, Hooks) else FunctionScript(given)
        if any(_is_given(one, given) for one in self):
            raise InputError(f"{name_of(script)} is already part of the app")
        if inspect.iscoroutinefunction(script.destroy):
            raise InputError(f"{name_of(script)}.destroy is async: it cannot be, because no frame comes after it")
        check_hooks(script)
        return script

    def find(self, script: AnyScript) -> Hooks:
        """Return the script of the app, or the one that calls the function. Raises InputError."""
        for one in self:
            if _is_given(one, script):
                return one
        raise InputError(f"{getattr(script, '__qualname__', type(script).__name__)} is not part of the app")

    def add(self, script: Hooks) -> None:
        """Add a script: `awake` runs now, `start` when the next frame begins. If `awake` fails, it is not added.

        Methods that look like a misspelt hook are logged, and a script without hooks.
        """
        misspelt = list(_misspelt(type(script)))
        for method, hook in misspelt:
            log.warning("%s.%s is never called: is it the hook `%s`?", name_of(script), method, hook)
        if not misspelt and not any(_is_own(type(script), hook) for hook in _HOOKS.values()):
            log.warning("%s has no hooks, so nothing of it is called: %s", name_of(script), ", ".join(_HOOKS.values()))
        self._call(script, "awake")
        self._waiting.append(script)

    def start_waiting(self) -> None:
        """Start the scripts that were added since the last frame."""
        for script in tuple(self._waiting):
            if script in self._waiting and script.enabled:
                self._waiting.remove(script)
                self._scripts.append(script)
                self._try(script, "start")

    def call(self, hook: str, argument: Frame | Event) -> None:
        """Call one hook of every script that has started."""
        scripts = tuple(self._scripts)
        if hook == "render" and any(script.is_overlay for script in scripts):
            scripts = tuple(sorted(scripts, key=_is_overlay))
        for script in scripts:
            if script in self._scripts and script.enabled:  # a script before it may have removed or disabled it
                self._try(script, hook, argument)

    def start_again(self, script: Hooks) -> None:
        """Let a script whose `start` has failed start in the next frame, because its code is new."""
        if script in self._not_started:
            self._not_started.remove(script)
            self._scripts.remove(script)
            self._waiting.append(script)
            script.enabled = True

    def destroy(self, script: Hooks) -> None:
        """Remove a script, and call its `destroy`. Does nothing if another script's `destroy` has removed it."""
        if script not in self:
            return
        for scripts in (self._scripts, self._waiting):
            if script in scripts:
                scripts.remove(script)
        self._under_way = {key: task for key, task in self._under_way.items() if key[0] is not script}
        self._not_started.discard(script)
        self._call(script, "destroy")

    def _try(self, script: Hooks, hook: str, *arguments: Frame | Event) -> None:
        """Call a hook. An error ends the loop if `fails` says so, or if no script has started."""
        try:
            self._check_start(script)
            if script.enabled:
                self._call(script, hook, *arguments)
        except Exception as error:
            if hook == "start":
                self._disable(script)
            nothing_runs = bool(self._not_started) and self._not_started.issuperset(self)
            if nothing_runs or not self._fails(_place(script, hook), error, hook == "start"):
                raise

    def _check_start(self, script: Hooks) -> None:
        """Disable a script whose async `start` has failed meanwhile. The failure itself is reported already."""
        task = self._under_way.get((script, "start"))
        if task is not None and task.done:
            del self._under_way[script, "start"]
            if task.failed:
                self._disable(script)

    def _disable(self, script: Hooks) -> None:
        script.enabled = False
        if script in self:
            self._not_started.add(script)

    def _call(self, script: Hooks, hook: str, *arguments: Frame | Event) -> None:
        key = (script, hook)
        if key in self._under_way:
            if not self._under_way[key].done:
                return
            del self._under_way[key]
        name = _place(script, hook)
        try:
            coroutine = getattr(script, hook)(*arguments)
        except Exception as error:
            error.add_note(f"in {name}")
            raise
        if coroutine is None:
            return
        if inspect.isgenerator(coroutine):
            raise has_yield(name)
        if inspect.iscoroutine(coroutine):
            task = self._start_coroutine(coroutine, name, script)
            if not task.done and hook != "on_event":
                self._under_way[key] = task


def check_hooks(script: Hooks) -> None:
    """Raise InputError for a hook with other parameters than those that the loop passes."""
    for hook in _HOOKS.values():
        own = inspect.getattr_static(Hooks, hook)
        method = getattr(script, hook)
        if getattr(method, "__func__", None) is not own:
            check_hook(method, f"{name_of(script)}.{hook}", list(inspect.signature(own).parameters)[1:])


def _plain(name: str) -> str:
    """A method's name as one compares it: onUpdate, on_update and Update are alike."""
    return name.replace("_", "").lower().removeprefix("on")


_HOOKS = {_plain(name): name for name, value in vars(Hooks).items() if inspect.isfunction(value) and name[0] != "_"}


def _misspelt(kind: type[Hooks]) -> Iterator[tuple[str, str]]:
    """The methods of a class that look like hooks which it lacks, each with the hook's name."""
    for name in dir(kind):
        if name.startswith("_") or hasattr(Hooks, name) or not inspect.isfunction(getattr(kind, name)):
            continue
        plain = _plain(name)
        same_letters = [hook for hook in _HOOKS if sorted(hook) == sorted(plain)]
        for close in same_letters or get_close_matches(plain, _HOOKS, 1, 0.85):
            if not _is_own(kind, _HOOKS[close]):
                yield name, _HOOKS[close]


def _is_own(kind: type[Hooks], hook: str) -> bool:
    """Whether a class has a hook of its own."""
    return getattr(kind, hook) is not getattr(Hooks, hook)


def _is_overlay(script: Hooks) -> bool:
    return script.is_overlay


def _is_given(script: Hooks, given: AnyScript) -> bool:
    """Whether the script is the given one, or calls the given function."""
    return script is given or (isinstance(script, FunctionScript) and script.function == given)


def _place(script: Hooks, hook: str) -> str:
    return name_of(script) if isinstance(script, FunctionScript) else f"{name_of(script)}.{hook}"


def name_of(script: object) -> str:
    """The name of a script: its class's, or its function's."""
    return script.name if isinstance(script, FunctionScript) else type(script).__name__
