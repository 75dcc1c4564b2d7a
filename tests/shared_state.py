"""Finds the mutable state that all threads of a process share: what modules and classes of the package hold."""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import importlib
import inspect
import logging
import re
import types
import typing
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import perframe

ROOT = Path(perframe.__file__).resolve().parent
FOREIGN = ("conversion/workers/",)  # they run in processes of their own, beside other packages
CONTAINERS = (dict, list, set)
MUTATORS = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "move_to_end", "pop", "popitem", "popleft"}
    | {"remove", "reverse", "setdefault", "sort", "update", "difference_update", "intersection_update"}
)


class FieldOfTuple(typing.NamedTuple):
    """It has the descriptor that named tuples have."""

    field: int


_CACHES = (type(functools.cache(len)),)
_CONSTANTS = (
    *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis), frozenset, tuple, range, Fraction, enum.Enum),
    *(type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.GenericAlias),
    *(types.UnionType, types.MappingProxyType, typing.TypeVar, typing.ParamSpec, re.Pattern, logging.Logger, property),
    *(staticmethod, classmethod, functools.cached_property, types.MemberDescriptorType, types.GetSetDescriptorType),
    *(Path, type(FieldOfTuple.field), type(int.__repr__)),
)
_LIBRARIES = ("typing", "__future__", "_abc", "numpy", "llvmlite", "numba")  # whose objects describe types
_PLAIN = ("str", "int", "bool", "float", "tuple", "Mapping", "frozenset")  # that a cached function may return


def modules() -> Iterator[tuple[str, types.ModuleType, ast.Module]]:
    """All modules of the package by their paths, imported and parsed."""
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(FOREIGN):
            parts = ("perframe", *path.relative_to(ROOT).with_suffix("").parts)
            module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
            yield name, module, ast.parse(path.read_text(encoding="utf-8"))


def shared_state() -> dict[str, Any]:
    """The mutable state by "path:name" or "path:Class.name": objects with state, and what functions write anew."""
    found, parsed = dict[str, Any](), list(modules())
    homes = {module.__name__: name for name, module, _ in parsed}
    written = {place for name, module, tree in parsed for place in written_in(name, module, tree, homes)}
    for name, module, tree in parsed:
        for place, held in _members(name, module, tree):
            if place in written or not is_constant(held):
                found[place] = held
    return found


def type_of(value: Any) -> str:
    """The name of a value's type."""
    return type(value).__name__


def _members(name: str, module: types.ModuleType, tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """The places and values that a module and its classes hold, without what it imports."""
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names}
    for what, value in vars(module).items():
        if what.startswith("__") or what in imported:
            continue
        if not isinstance(value, type) or value.__module__ != module.__name__:
            yield f"{name}:{what}", value
            continue
        for member, held in vars(value).items():
            if not member.startswith("__"):
                yield f"{name}:{what}.{member}", held


def is_constant(value: Any) -> bool:
    """Whether a value has no state. A container has some only if a function writes it, and a cache holds what its
    arguments decide; one without arguments holds an object that all share.
    """
    if isinstance(value, _CACHES):
        function = inspect.unwrap(value)
        return bool(inspect.signature(function).parameters) or str(function.__annotations__["return"]).startswith(
            _PLAIN
        )
    if isinstance(value, (*_CONSTANTS, *CONTAINERS)):
        return True
    if dataclasses.is_dataclass(value):
        return type(value).__setattr__ is not object.__setattr__  # a frozen one
    return type(value).__module__.partition(".")[0] in _LIBRARIES


def written_in(name: str, module: types.ModuleType, tree: ast.Module, homes: dict[str, str]) -> Iterator[str]:
    """The places that functions of a module write."""
    origins = {}  # names of this module that stand for another module's
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in homes:
            for alias in node.names:
                origins[alias.asname or alias.name] = f"{homes[node.module]}:{alias.name}"
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        declared = {n for node in ast.walk(function) if isinstance(node, ast.Global) for n in node.names}
        local = _locals(function) - declared
        for target in _targets(function, declared):
            root, *rest = target
            if root in local:
                continue
            if root == "cls":
                owner = next(k.name for k in ast.walk(tree) if isinstance(k, ast.ClassDef) and function in ast.walk(k))
                yield f"{name}:{owner}.{rest[0]}"
                continue
            place = origins.get(root, f"{name}:{root}")
            value = getattr(module, root, None)
            if isinstance(value, types.ModuleType) and value.__name__ in homes and rest:
                yield f"{homes[value.__name__]}:{rest[0]}"
            elif isinstance(value, type) and rest:
                yield f"{place}.{rest[0]}"
            else:
                yield place


def _targets(function: ast.AST, declared: set[str]) -> Iterator[list[str]]:
    """The dotted names that a function assigns to, deletes from, or calls a mutating method of."""
    for node in ast.walk(function):
        stored: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            stored = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            stored = [node.target]
        elif isinstance(node, ast.Delete):
            stored = node.targets
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            stored = [node.func]
        for target in stored:
            for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(part, ast.Name):
                    if part.id in declared:
                        yield [part.id]
                    continue
                calls = isinstance(node, ast.Call) and isinstance(part, ast.Attribute)
                if dotted := _dotted(part.value if calls or isinstance(part, ast.Subscript) else part):
                    yield dotted


def _dotted(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return [*before, node.attr]
    return []


def _locals(function: ast.AST) -> set[str]:
    """The names that a function binds itself."""
    found = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)} - {"cls"}
    found |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return found
