"""Kernels that only tests use, and teams of helpers for them."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.program.program import NativeStep


@functools.cache
def kernel(build: Callable[[], Any]) -> int:
    """Compile the function (numbers, begin, end) that `build` returns, and return its address."""
    from perframe.backends.cpu.kernels import compiler

    module: Any = types.ModuleType(f"perframe.backends.cpu.kernels.{build.__name__}")
    module.build = build
    sys.modules[module.__name__] = module
    return jit._linker().link(*compiler.compile_kernel(build.__name__, ""))


def mix() -> Any:
    """Mix the array at n[0] into the one at n[1]. Each element depends on several, so that order matters."""
    from perframe.backends.cpu.kernels.memory import int64s

    def kernel(numbers, begin, end):  # type: ignore[no-untyped-def]
        n = int64s(numbers)
        source, target, count = int64s(n[0]), int64s(n[1]), n[2]
        for i in range(begin, end):
            target[i] = source[i] * 3 + source[(i * 7 + 1) % count] - source[(i + count // 2) % count]

    return kernel


def tally() -> Any:
    """Count at n[0] how often each item runs. Each takes a while."""
    from perframe.backends.cpu.kernels.memory import int64s

    def kernel(numbers, begin, end):  # type: ignore[no-untyped-def]
        n = int64s(numbers)
        counts = int64s(n[0])
        for i in range(begin, end):
            value = counts[i]
            for k in range(n[1]):
                value = (value * 5 + k) ^ (value >> 3)
            counts[i] += 1 + (value & 0)

    return kernel


def step(build: Callable[[], Any], numbers: list[int], items: int, grain: int | None = None, keep: Any = None) -> Any:
    return NativeStep("layer", kernel(build), [], numbers, items, keep, grain=grain)
