"""Loading, preparing and planning pause Python's garbage collector, and always resume it."""

from __future__ import annotations

import gc
import os
import weakref
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from garbage import collect_garbage
from perframe.errors import ModelError
from perframe.execution import parts, planned_part
from perframe.safety.collection import uncollected
from small import load, node


class _Made:
    itself: _Made


def test_a_block_pauses_the_collector_until_the_outermost_one_ends() -> None:
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_load_pauses_the_collector() -> None:
    seen = list[bool]()
    graph = onnx.parser.parse_graph("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    pf.load(proto, progress=lambda _what, _done: seen.append(gc.isenabled()))
    assert seen and not any(seen)
    assert gc.isenabled()


@pytest.mark.parametrize(("module", "name"), [(parts, "partition"), (planned_part, "Analysis")])
def test_preparing_and_planning_pause_the_collector(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, original = list[bool](), getattr(module, name)

    def noting(*given: Any) -> Any:
        seen.append(gc.isenabled())
        return original(*given)

    monkeypatch.setattr(module, name, noting)
    pf.run(load([node("Relu", "x", "y")], {"x": [2]}), {"x": np.zeros(2, np.float32)})
    assert seen == [False]
    assert gc.isenabled()


@pytest.mark.quick(cases=0)
@pytest.mark.usefixtures("thawed")
def test_objects_of_a_block_are_old_and_are_collected() -> None:
    with uncollected():
        made = _Made()
        gone = weakref.ref(made)
        made.itself = made
    assert any(one is made for one in gc.get_objects(generation=2))
    del made
    collect_garbage()
    assert gone() is None


@pytest.mark.usefixtures("thawed")
def test_frozen_objects_of_the_caller_stay_frozen_and_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, count = list[int](), gc.get_freeze_count
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counts.append(count()) or counts[-1])
    gc.freeze()
    try:
        for _ in range(3):
            with uncollected():
                pass
        assert count()
        assert len(counts) == 1  # each count walks all frozen objects, and a server may freeze millions
    finally:
        gc.unfreeze()


def test_an_error_resumes_the_collector() -> None:
    with pytest.raises(ModelError):
        pf.load(b"no model")
    assert gc.isenabled()


def test_a_caller_who_disabled_the_collector_keeps_it_disabled() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_child_that_is_forked_within_a_block_collects() -> None:
    with uncollected():
        child = os.fork()
        if not child:
            os._exit(7 if gc.isenabled() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert not gc.isenabled()
