"""Samples the resources of a process, and finds those that grow.

A scenario warms up for half of its rounds. Of the samples that are taken during the others, the least of the last third
is compared with the most of the first third: what goes up and down does not count, and what each round leaves does.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.threads import jobs
from perframe.backends.gl.context import device as context
from perframe.graphics import current_context
from perframe.graphics.headless_context import entry_point
from perframe.ir.declaration import Declaration

KINDS = ("Buffer", "Texture", "Framebuffer", "Program", "Shader", "VertexArray", "Sampler", "Query")
NAMES = 4096  # are asked for, from 1 on: Mesa takes the lowest that is free
SAMPLES = 9
SECONDS_TO_SETTLE = 60

# An allocator keeps some of what was freed, and where depends on chance: memory goes up and down by one to two
# megabytes where nothing is left behind. A scenario's rounds that left one of its tensors each would leave more.
MEMORY_NOISE = 4 << 20
# Python's own caches fill by the way: free lists, specialised bytecode. A round that left an object would leave a block
# or more. Caches of ours that have a limit may fill up to it.
BLOCKS_NOISE = 200
BLOCKS_A_ROUND = 0.25
BLOCKS_A_RESULT = 16
# Some of ours are made when first needed, such as a template's program; others go when their storage is used again.
OBJECTS_NOISE = 3
# A busy machine traces sizes late. A part keeps a limited number of templates, and each holds objects of many kinds.
TEMPLATE, OBJECTS_A_TEMPLATE, BLOCKS_A_TEMPLATE = "plan.refit.Template", 60, 2000
# A large array has a mapping of its own while it lives, and the allocator splits others.
MAPPINGS_NOISE = 16


class Fences:
    """GL's fences, which have no names to ask for, are counted where they are made and deleted."""

    living = 0

    @classmethod
    def count(cls, gl: Any) -> None:
        """Count those that are made with these functions from now on."""
        if hasattr(gl.glFenceSync, "is_counted"):
            return
        make, delete = gl.glFenceSync, gl.glDeleteSync

        def made(*arguments: Any) -> Any:
            cls.living += 1
            return make(*arguments)

        def deleted(sync: Any) -> None:
            cls.living -= 1
            delete(sync)

        made.is_counted = True  # type: ignore[attr-defined]
        gl.glFenceSync, gl.glDeleteSync = made, deleted


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's


def sample() -> dict[str, int]:
    """The process's memory, descriptors, threads, mappings and GL names, and perframe's objects by class."""
    settle()
    gc.collect()
    found = gl_names()  # frees dropped objects before anything else is counted
    gc.collect()
    if _trim is not None:
        _trim(0)
    found["memory"] = resident_bytes()
    found["descriptors"] = len(os.listdir("/proc/self/fd"))
    found["threads"] = len(os.listdir("/proc/self/task"))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        found["mappings"] = sum(1 for _ in maps)
    found |= living_objects()
    found["cached results"] = cached_results()
    found["Python's blocks"] = sys.getallocatedblocks()
    return found


def settle() -> None:
    """Let all jobs and compilers end: a job that traces sizes takes much memory meanwhile.

    Besides, a tuple that another thread is making breaks when the garbage collector shows it here.
    """
    jit.settle()
    until, idle = time.monotonic() + SECONDS_TO_SETTLE, 0
    while idle < 3:  # a thread that has just taken a job has not noted it yet
        pool = jobs._pool
        idle = 0 if pool is not None and (pool._queue.qsize() or any(pool._current)) else idle + 1
        assert time.monotonic() < until, "a job does not end"
        time.sleep(0.001)


def resident_bytes() -> int:
    """Memory of the process that is no file's: pages of libraries come and go as the system likes."""
    with open("/proc/self/status", encoding="utf-8") as status:
        sizes = dict(line.split(":", 1) for line in status)
    return sum(int(sizes[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem"))


def living_objects() -> dict[str, int]:
    """How many objects of perframe's classes the garbage collector knows, by class."""
    found: dict[str, int] = {}
    for thing in gc.get_objects():
        kind = type(thing)
        if str(kind.__module__).startswith("perframe."):
            name = f"{kind.__module__.removeprefix('perframe.')}.{kind.__qualname__}"
            found[name] = found.get(name, 0) + 1
    return found


def cached_results() -> int:
    """The number of results in perframe's caches with a limit."""
    found = 0
    for thing in gc.get_objects():
        if isinstance(thing, Declaration):
            found += len(thing._accepted)
        elif isinstance(thing, functools._lru_cache_wrapper) and thing.__module__.startswith("perframe."):
            found += thing.cache_info().currsize if thing.cache_info().maxsize is not None else 0
    return found


def gl_names() -> dict[str, int]:
    """Free dropped objects, and count the names of each kind and the fences in all contexts."""
    found = dict.fromkeys((f"GL {kind}s" for kind in KINDS), 0)
    previous = current_context.current()
    for device in list(context._devices):
        if type(device.ctx.mglo).__name__ == "InvalidObject":  # it was released
            continue
        Fences.count(device.gl)
        with device.ctx:
            device.free_dropped()
            for kind in KINDS:
                exists = ctypes.CFUNCTYPE(ctypes.c_ubyte, ctypes.c_uint)(entry_point(device.ctx, f"glIs{kind}"))
                found[f"GL {kind}s"] += sum(map(bool, map(exists, range(1, NAMES))))
            # the pool that readbacks go through has as many buffers of a size as were in flight together
            found["GL Buffers"] -= sum(map(len, device._staging.values()))
    current_context.restore(previous)
    found["GL fences"] = Fences.living
    return found


@dataclass(frozen=True)
class Report:
    """The samples of a scenario's second half, `rounds` rounds apart."""

    samples: list[dict[str, int]]
    rounds: float

    @property
    def third(self) -> int:
        """A third of the samples."""
        return max(1, len(self.samples) // 3)

    def growth(self, name: str) -> int:
        """By how much a count grew from the first third of the samples to the last."""
        counts = [one.get(name, 0) for one in self.samples]
        return min(counts[-self.third :]) - max(counts[: self.third])

    @property
    def _templates(self) -> int:
        """How many templates of plans were made meanwhile."""
        return min(OBJECTS_NOISE, max(0, self.growth(TEMPLATE)))

    def limit(self, name: str) -> float:
        """By how much it may grow."""
        if name == "Python's blocks":
            rounds = self.rounds * (len(self.samples) - 2 * self.third + 1)
            kept = BLOCKS_A_RESULT * max(0, self.growth("cached results")) + BLOCKS_A_TEMPLATE * self._templates
            return BLOCKS_NOISE + BLOCKS_A_ROUND * rounds + kept
        if "." in name and name != TEMPLATE:  # a class of ours
            return OBJECTS_NOISE + OBJECTS_A_TEMPLATE * self._templates
        if name == TEMPLATE:
            return OBJECTS_NOISE
        return {"memory": MEMORY_NOISE, "mappings": MAPPINGS_NOISE, "cached results": float("inf")}.get(name, 0)

    def grown(self) -> dict[str, int]:
        """All that grew, and by how much."""
        names = sorted({name for one in self.samples for name in one})
        return {name: growth for name in names if (growth := self.growth(name)) > 0}

    def too_much(self) -> list[str]:
        """Describe each count that grew by more than it may."""
        return [
            f"{name} grew by {growth:,}, more than {self.limit(name):,.0f}; {self.rounds:.0f} rounds apart it was "
            + " ".join(str(one.get(name, 0)) for one in self.samples)
            for name, growth in self.grown().items()
            if growth > self.limit(name)
        ]


def watch(rounds: Iterator[None], count: int) -> Report:
    """Run so many rounds, and look at the second half of them."""
    steps = min(2 * SAMPLES, count)
    samples: list[str] = []  # texts, since a dict of numbers is hundreds of blocks
    done = 0
    for step in range(1, steps + 1):
        until = count * step // steps
        for _ in range(until - done):
            next(rounds)
        done = until
        if 2 * step <= steps:
            settle()  # so that sizes are traced while it warms up
        else:
            samples.append(json.dumps(sample()))
    return Report([json.loads(text) for text in samples], count / steps)
