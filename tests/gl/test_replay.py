"""Command lists: native code makes the calls, each part of GL's state is set once, and kernels wait only where they
must.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import perframe as pf
from gl.graphs import graph
from perframe.backends.gl.replay import CommandList, Name

ARGUMENTS = {
    "glActiveTexture": (ctypes.c_uint,),
    "glBindBufferBase": (ctypes.c_uint, ctypes.c_uint, ctypes.c_uint),
    "glBindBufferRange": (ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_ssize_t, ctypes.c_ssize_t),
    "glBindSampler": (ctypes.c_uint, ctypes.c_uint),
    "glBindTexture": (ctypes.c_uint, ctypes.c_uint),
    "glDispatchCompute": (ctypes.c_uint, ctypes.c_uint, ctypes.c_uint),
    "glMemoryBarrier": (ctypes.c_uint,),
    "glUseProgram": (ctypes.c_uint,),
    "six": (ctypes.c_ssize_t,) * 6,
}


class Calls:
    """Functions at addresses that note their calls."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []
        self._functions = {name: self._function(name, types) for name, types in ARGUMENTS.items()}
        self.addresses = {
            name: ctypes.cast(function, ctypes.c_void_p).value for name, function in self._functions.items()
        }

    def _function(self, name: str, types: Sequence[Any]) -> Any:
        return ctypes.CFUNCTYPE(None, *types)(lambda *arguments: self.made.append((name, *arguments)))

    def of(self, commands: CommandList) -> list[tuple[Any, ...]]:
        """Run the commands, and return the calls that they made."""
        self.made.clear()
        commands.finish().run()
        return list(self.made)


@dataclass(eq=False)
class Thing:
    """An object with a GL name."""

    glo: int


def test_native_code_passes_all_words() -> None:
    calls = Calls()
    commands = CommandList(calls, {})
    words = (1, -2, 2**40, -(2**50), 5, 6)
    commands.call("six", *words)
    commands.call("glMemoryBarrier", 0xFFFFFFFF)
    commands.call("glBindBufferRange", 0x8A11, 0, 3, 2**33, 64)
    assert calls.of(commands) == [
        ("six", *words),
        ("glMemoryBarrier", 0xFFFFFFFF),
        ("glBindBufferRange", 0x8A11, 0, 3, 2**33, 64),
    ]


def test_state_is_set_once() -> None:
    calls, a, b = Calls(), Thing(3), Thing(3)
    commands = CommandList(calls, {})
    for thing, program in ((a, 1), (a, 1), (b, 1), (b, 2)):
        commands.set(0, "glUseProgram", program)
        commands.set(2, "glBindBufferBase", 0x90D2, 4, Name(thing, "glo"))
        commands.set_texture(2, 0x0DE1, Name(thing, "glo"), 9)
        commands.set_texture(1, 0x0DE1, 8, 9)
    texture, other = ("glBindTexture", 0x0DE1, 3), ("glBindTexture", 0x0DE1, 8)
    units = [("glActiveTexture", 0x84C2), ("glActiveTexture", 0x84C1)]
    buffer, samplers = ("glBindBufferBase", 0x90D2, 4, 3), [("glBindSampler", 2, 9), ("glBindSampler", 1, 9)]
    first = [("glUseProgram", 1), buffer, units[0], texture, samplers[0], units[1], other, samplers[1]]
    # an object of another place may come to differ, although its name is the same now
    assert calls.of(commands) == [*first, buffer, units[0], texture, ("glUseProgram", 2)]


@pytest.mark.parametrize(
    ("second", "waits"),
    [
        ((["x"], "z"), False),  # both read x
        ((["y"], "z"), True),  # reads what the first wrote
        ((["u"], "x"), True),  # overwrites what the first reads
        ((["u"], "y"), True),  # overwrites what the first wrote
        (([], "z"), False),
    ],
)
def test_kernels_wait_for_those_that_share_storage(second: tuple[list[str], str], waits: bool) -> None:
    calls = Calls()
    commands = CommandList(calls, {})
    for reads, writes in ((["x"], "y"), second):
        commands.order(reads, writes)
        commands.call("glDispatchCompute", 1, 1, 1)
    barriers = [index for index, call in enumerate(calls.of(commands)) if call[0] == "glMemoryBarrier"]
    assert barriers == ([1, 3] if waits else [2]), "and later work waits for all"


def test_a_barrier_serves_all_kernels_before_it() -> None:
    calls = Calls()
    commands = CommandList(calls, {})
    for reads, writes in (("x", "a"), ("x", "b"), ("a", "c"), ("b", "d")):
        commands.order([reads], writes)
        commands.call("glDispatchCompute", 1, 1, 1)
    names = [call[0] for call in calls.of(commands)]
    assert names == [
        *("glDispatchCompute", "glDispatchCompute", "glMemoryBarrier"),
        *("glDispatchCompute", "glDispatchCompute", "glMemoryBarrier"),
    ]


def test_another_object_takes_a_place() -> None:
    calls, planned, other = Calls(), Thing(3), Thing(4)
    bound: dict[Any, Any] = {planned: Thing(5)}
    commands = CommandList(calls, bound)
    commands.call("glBindBufferBase", 0x90D2, 1, Name(planned, "glo"))
    commands.call("glBindBufferBase", 0x90D2, 2, Name(other, "glo"))
    assert [call[3] for call in calls.of(commands)] == [5, 4]
    commands.replace(planned, Thing(6))
    commands.replace(Thing(7), Thing(8))
    calls.made.clear()
    commands.run()
    assert [call[3] for call in calls.made] == [6, 4]


def test_a_pause_may_change_state() -> None:
    calls, bound = Calls(), dict[Any, Any]()
    commands = CommandList(calls, bound)
    commands.set(0, "glUseProgram", 1)
    commands.order([], "y")
    commands.pause(lambda owner: calls.made.append(("pause", owner)), "y")
    commands.set(0, "glUseProgram", 1)
    names = [("glUseProgram", 1), ("glMemoryBarrier", 0x2008), ("pause", "y"), ("glUseProgram", 1)]
    assert calls.of(commands) == names
    bound["y"] = "z"
    calls.made.clear()
    commands.run()
    assert calls.made == [*names[:2], ("pause", "z"), names[3]]


def branches() -> pf.Model:
    """r = cumulative sums of relu(a), q = softmax(b), y = r q and z = q r."""
    return graph(
        [
            ("Relu", ["a"], ["p"]),
            ("Softmax", ["b"], ["q"]),
            ("CumSum", ["p", "axis"], ["r"]),
            ("MatMul", ["r", "q"], ["y"]),
            ("MatMul", ["q", "r"], ["z"]),
        ],
        {"a": (4, 4), "b": (4, 4)},
        outputs=("y", "z"),
        constants={"axis": np.array(1, np.int64)},
    )


def expected(a: Any, b: Any) -> tuple[Any, Any]:
    e = np.exp(b - b.max(-1, keepdims=True))
    q, r = e / e.sum(-1, keepdims=True), np.cumsum(np.maximum(a, 0), 1)
    return r @ q, q @ r


def test_parts_of_a_run_and_whole_runs_alternate(where: str, gl_context: Any) -> None:
    """Every input takes its turn in every place, in whole runs, layer by layer, and in runs that are given up."""
    random = np.random.default_rng(1)
    arrays = [random.uniform(-1, 1, (4, 4)).astype(np.float32) for _ in range(3)]
    with pf.Worker(branches(), where, gl_context, strict=True) as worker:
        tensors = [worker.empty_input("a", (4, 4)) for _ in arrays]
        for tensor, array in zip(tensors, arrays, strict=True):
            tensor.upload(array)
        ways: list[Callable[[Any], object]] = [
            lambda given: worker.schedule(given),
            lambda given: list(worker.schedule_iterable(given)),
            lambda given: (next(iter(worker.schedule_iterable(given))), worker.schedule(given)),
        ]
        for turn in range(12):
            a, b = turn % 3, turn // 3 % 3
            ways[turn % len(ways)]({"a": tensors[a], "b": tensors[b]})
            for name, wanted in zip(("y", "z"), expected(arrays[a], arrays[b]), strict=True):
                found = worker.peek_output(name).download_to_array()
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, err_msg=f"{name} in turn {turn}")


def test_a_plan_sets_shared_state_once(where: str, gl_context: Any) -> None:
    """Layers with one program and one input make fewer calls than each alone."""
    model = graph(
        [("CumSum", ["x", "axis"], [f"y{k}"]) for k in range(4)],
        {"x": (4, 4)},
        outputs=[f"y{k}" for k in range(4)],
        constants={"axis": np.array(1, np.int64)},
        optimize=False,
    )
    with pf.Worker(model, where, gl_context, strict=True) as worker:
        worker.schedule(np.ones((4, 4), np.float32))
        (part,) = worker.parts.planned_parts()
        plan: Any = part.latest_plan
        whole = len(plan.program._commands(0, 4, None))
        assert whole < sum(len(plan.program._commands(k, k + 1, None)) for k in range(4)) - 3
        np.testing.assert_array_equal(worker.peek_output("y3").download_to_array(), np.tile([1, 2, 3, 4], (4, 1)))
