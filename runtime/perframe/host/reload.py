"""New code for scripts while they run: what has changed in a file runs again, and what the scripts hold is kept."""

from __future__ import annotations
import __future__

import ast
import logging
import sys
from collections.abc import Callable, Iterator
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeGuard

from perframe.errors import ClosedError, InputError
from perframe.host.failures import Failures
from perframe.host.scripts import FunctionScript, Hooks, ScriptList, check_hooks, name_of
from perframe.host.watching import FileWatcher

log = logging.getLogger("perframe")

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Assignment = (ast.Assign, ast.AnnAssign)
_Definition = (ast.ClassDef, *_Function)


class PendingSwap(Protocol):
    """A model on its way into a worker, as the host sees it."""

    @property
    def done(self) -> bool:
        """Whether it has finished, failed or been canceled. Never blocks."""
        ...

    def result(self) -> None:
        """Raise the error that ended it."""

    def cancel(self) -> None:
        """End it."""


class SwapsModels(Protocol):
    """A worker, as the host sees it."""

    def swap(self, source: Path, /) -> PendingSwap:
        """Begin to put the model of a file in the place of its model."""
        ...


class Reloader:
    """Reloads the files of an app's scripts when they change, calls the functions that watch a file, and swaps models
    of workers that watch one.

    An error is shown until the file is fixed; the old code keeps running.
    """

    def __init__(self, scripts: ScriptList, failures: Failures) -> None:
        self._scripts, self._failures = scripts, failures
        self._watcher = FileWatcher()
        self._texts: dict[Path, str] = {}  # of modules, as they last ran
        self._modules: dict[Path, ModuleType] = {}
        self._callbacks: list[tuple[Path, Callable[[Path], object], object | None]] = []
        self._swaps: list[tuple[Path, PendingSwap, object | None]] = []

    def add(self, script: Hooks) -> None:
        """Watch the file of a script's class or function."""
        code = _code_of(script)
        module = sys.modules.get(code.__module__)
        file = getattr(module, "__file__", None)
        if module is None or file is None or "<locals>" in code.__qualname__:
            log.warning("%s is not reloaded when it changes: it must stand at the top of a file", name_of(script))
            return
        path = Path(file).resolve()
        if path in self._modules:
            return
        try:
            self._texts[path] = _source(path)
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            log.warning("%s is not reloaded when it changes: %s cannot be read: %s", name_of(script), path.name, error)
            return
        self._modules[path] = module
        self._watcher.add(path)

    def watch(self, path: Path, callback: Callable[[Path], object], owner: object | None) -> None:
        """Call a function whenever a file has changed."""
        self._callbacks.append((path, callback, owner))
        self._watcher.add(path)

    def watch_model(self, path: Path, worker: SwapsModels, owner: object | None) -> None:
        """Swap a worker's model whenever its file has changed."""

        def swap(changed: Path) -> None:
            self._swaps.append((changed, worker.swap(changed), owner))

        self.watch(path, swap, owner)

    def cancel(self, owner: object) -> None:
        """Forget the functions and the workers of a script."""
        self._callbacks = [kept for kept in self._callbacks if kept[2] is not owner]
        for _, swap, other in self._swaps:
            if other is owner:
                swap.cancel()

    def step(self) -> None:
        """Load what has changed since the frame before."""
        for path in self._watcher.take():
            try:
                if path in self._modules:
                    self._load(path)
                for watched, callback, _ in tuple(self._callbacks):
                    if watched == path:
                        callback(path)
            except Exception as error:
                self._failures.forget(path.name)
                self._failures.add(path.name, error, stays=True)
            else:
                if not any(path == other for other, *_ in self._swaps):
                    self._failures.forget(path.name)
                    log.info("%s is reloaded", path)
        if self._swaps:
            self._look_at_swaps()

    def _look_at_swaps(self) -> None:
        """Show the errors of swaps that have ended."""
        pending, self._swaps = self._swaps, []
        for path, swap, owner in pending:
            if not swap.done:
                self._swaps.append((path, swap, owner))
                continue
            try:
                swap.result()
            except ClosedError:  # another swap took its place, or its script is gone
                pass
            except Exception as error:
                self._failures.forget(path.name)
                self._failures.add(path.name, error, stays=True)
            else:
                self._failures.forget(path.name)
                log.info("%s is reloaded", path)

    def release(self) -> None:
        """Stop watching."""
        self._watcher.release()

    def _load(self, path: Path) -> None:
        module, text = self._modules[path], _source(path)
        run_changes(module, path, self._texts[path], text)
        self._texts[path] = text
        for script in self._scripts:
            old = _code_of(script)
            if old.__module__ != module.__name__:
                continue
            new = _find(module, old.__qualname__)
            if isinstance(script, FunctionScript):
                script.function, script.arguments = new, FunctionScript(new).arguments
            elif new is not old:
                script.__class__ = new
                try:
                    check_hooks(script)
                except InputError:
                    script.__class__ = old
                    raise
            self._failures.forget(name_of(script))
            self._scripts.start_again(script)


def _source(path: Path) -> str:
    """The text of a Python file, in the encoding that its first lines name, and without a byte order mark."""
    return decode_source(path.read_bytes())


def run_changes(module: ModuleType, path: Path, old: str, new: str) -> None:
    """Run those imports, assignments, functions and classes at the top of a file that differ between two versions, also
    those under an `if` or a `try` that holds nothing else.

    What has not changed keeps its values. Calls at the top, such as `App().run(...)`, do not run again. If anything
    fails, the module is as it was.
    """
    before, after = ast.parse(old), ast.parse(new, str(path))
    body = list(_changes(before, after))
    kept = dict(vars(module))
    try:
        code = compile(ast.Module(body, []), str(path), "exec", _future_flags(after), dont_inherit=True)
        exec(code, vars(module))
    except BaseException:
        vars(module).clear()
        vars(module).update(kept)
        raise


def _future_flags(tree: ast.Module) -> int:
    """The compiler's flags for the `from __future__ import`s of a file."""
    names = [alias.name for statement in tree.body if _is_future(statement) for alias in statement.names]
    flags = 0
    for name in names:
        flags |= getattr(__future__, name).compiler_flag
    return flags


def _is_future(statement: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _changes(old: ast.Module, new: ast.Module) -> Iterator[ast.stmt]:
    known = {_identity(statement) for statement in old.body}
    if _future_flags(old) != _future_flags(new):
        known.clear()  # all code means something else
    changed: set[str] = set()  # names that have other values now
    for statement in new.body:
        if _is_future(statement) or not _is_declarative(statement):
            continue
        uses = {name.id for part in _run_at_once(statement) for name in ast.walk(part) if isinstance(name, ast.Name)}
        if _identity(statement) in known and not uses & changed:
            continue
        if not isinstance(statement, (*_Function, ast.Import, ast.ImportFrom)):
            changed |= _targets(statement)
        yield statement


def _is_declarative(statement: ast.stmt) -> bool:
    """Whether a statement at the top of a file may run again."""
    match statement:
        case ast.If(test, body, orelse):
            asks_for_main = any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))
            return not asks_for_main and all(map(_is_declarative, [*body, *orelse]))
        case ast.Try(body, handlers, orelse, finalbody):
            inner = [line for handler in handlers for line in handler.body]
            return all(map(_is_declarative, [*body, *inner, *orelse, *finalbody]))
        case ast.Pass() | ast.Raise():
            return True
    return isinstance(statement, (*_Definition, *_Assignment, ast.Import, ast.ImportFrom))


def _targets(statement: ast.stmt) -> set[str]:
    """The classes and variables that a statement sets. Functions are looked up again when they are called."""
    if isinstance(statement, ast.ClassDef):
        return {statement.name}
    names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _identity(statement: ast.stmt) -> tuple[str, int]:
    """A function or class that has moved runs again too, so that errors name its present lines."""
    return ast.dump(statement), statement.lineno if isinstance(statement, (ast.ClassDef, *_Function)) else 0


def _run_at_once(statement: ast.stmt) -> list[ast.AST]:
    """The parts of a statement whose names are looked up when it runs, and not later."""
    if isinstance(statement, ast.ClassDef):
        return [*statement.bases, *statement.decorator_list]
    if isinstance(statement, _Function):
        return [*statement.decorator_list, *statement.args.defaults]
    return [statement]


def _code_of(script: Hooks) -> Any:
    return script.function if isinstance(script, FunctionScript) else type(script)


def _find(module: ModuleType, qualname: str) -> Any:
    found: Any = module
    for name in qualname.split("."):
        found = getattr(found, name, None)
    if found is None:
        raise InputError(f"the file has no {qualname} any more; the script keeps its old code")
    return found
