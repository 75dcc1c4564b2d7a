"""Checks that the loop can call a user's functions, made before it calls them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from perframe.errors import InputError


def check_callback(function: Any, given_to: str, argument: str | None = None) -> None:
    """Raise InputError unless the function can be called with `argument`, or without arguments if there is none."""
    wanted = f"one argument, `{argument}`" if argument else "no arguments"
    if not callable(function):
        raise InputError(f"{given_to} takes a function that is called with {wanted}, and got {function!r}")
    if not _accepts(function, int(argument is not None)):
        raise InputError(f"{described(function)}: {given_to} calls it with {wanted}")


def check_hook(method: Any, name: str, parameters: list[str]) -> None:
    """Raise InputError unless the bound method of a script can be called with the hook's parameters."""
    hook = name.rpartition(".")[2]
    wanted = f"`def {hook}({', '.join(['self', *parameters])})`"
    if not callable(method):
        raise InputError(f"{name} is {method!r}: a hook is a method, {wanted}")
    if not _accepts(method, len(parameters)):
        advice = " (the app is `self.app`)" if parameters else ""
        raise InputError(f"{described(method, name)}: write {wanted}{advice}")
    check_no_yield(method, name)


def check_no_yield(function: Any, name: str) -> None:
    """Raise InputError for a generator: its body would never run."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise has_yield(name, place_of(function))


def has_yield(name: str, place: str = "") -> InputError:
    """The error of a hook that is a generator."""
    return InputError(
        f"{name} has a `yield`{place}, so it would never run: make it `async def`, and await next_frame()"
    )


def described(function: Any, name: str | None = None) -> str:
    """The function's parameters, file and line, as errors name them."""
    underlying = getattr(function, "__func__", function)  # with its `self`
    parameters = inspect.signature(underlying).parameters.values()
    listed = ", ".join(str(parameter.replace(annotation=parameter.empty)) for parameter in parameters)
    name = name or getattr(function, "__qualname__", repr(function))
    return f"{name} has {f'the parameters {listed}' if listed else 'no parameters'}{place_of(function)}"


def place_of(function: Any) -> str:
    """The file and line of a function in parentheses, or nothing if it is not written in Python."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__"):  # an object of a class that has `__call__`
        function = getattr(type(function), "__call__", None)  # noqa: B004
    code = getattr(function, "__code__", None)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""


def _accepts(function: Callable[..., object], count: int) -> bool:
    """Whether the function takes `count` positional arguments. True if Python cannot tell."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some built-in functions
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True
