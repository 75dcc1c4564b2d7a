"""How large a tensor may be: refused by layer and shape before anything is allocated."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import perframe as pf
from passes.graphs import graph, node
from perframe.tensor import checks
from perframe.testing import Case, ints
from perframe.testing.checks import trace

HUGE = 1 << 50
ONE = np.ones(1, np.float32)
HUGE_CASES = [
    Case("", "ConstantOfShape", [ints(1 << 20, 1 << 30)]),
    Case("", "Range", [np.array(0), np.array(HUGE), np.array(1)]),
    Case("wraps", "Tile", [np.ones(4, np.float32), ints(1 << 62)]),
    Case("", "Tile", [np.ones(4, np.float32), ints(HUGE)]),
    Case("", "Expand", [ONE, ints(1 << 40, 1 << 40)]),
    Case("", "Pad", [ONE, ints(0, 1 << 62)]),
    Case("", "OneHot", [ints(0, 1), np.array(HUGE), np.array([0, 1], np.float32)]),
    Case("", "Resize", [np.ones((1, 1, 8, 8), np.float32), None, np.array([1, 1, 1e9, 1e9], np.float32)]),
    Case("", "RandomNormal", [], {"shape": [1 << 20, 1 << 30]}),
    Case("", "Conv", [np.ones((1, 1, 4), np.float32), np.ones((1, 1, 1), np.float32)], {"pads": [1 << 28] * 2}),
]


@pytest.mark.parametrize("known", [True, False], ids=["known", "of a run"])
@pytest.mark.parametrize("case", HUGE_CASES, ids=str)
def test_what_no_machine_holds_is_refused_by_name(
    case: Case, known: bool, backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFRAME_MAX_TENSOR_BYTES", str(1 << 30))
    given = case if known else Case(case.name, case.op, case.inputs, case.attributes, constants=[])
    begin = time.monotonic()
    with pytest.raises(pf.InferenceError, match=f"'node' .{case.op}.* would take .* bytes"):
        pf.run(given.proto(), given.fed, backend=backend, ctx=backend_context)
    assert time.monotonic() - begin < 10


def test_a_tensor_without_elements_may_have_large_dims() -> None:
    made = pf.run(Case("", "ConstantOfShape", [ints(0, 1 << 40)], constants=[]).proto(), {"x0": ints(0, 1 << 40)})
    assert made["y0"].shape == (0, 1 << 40)
    with pytest.raises(pf.InferenceError, match="no array has the shape"):
        pf.run(Case("", "Expand", [ONE, ints(0, 1 << 62)]).proto(), {"x0": ONE})


def test_what_a_layer_between_plans_makes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_MAX_TENSOR_BYTES", "1000")
    model = pf.load(Case("", "NonZero", [np.ones(200, np.float32)]).proto())
    with pytest.raises(pf.InferenceError, match=r"'node' .NonZero.*1600 bytes, and at most 1000 are possible"):
        pf.run(model, {"x0": np.ones(200, np.float32)})


def test_sizes_that_were_followed_are_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_MAX_TENSOR_BYTES", str(1 << 20))
    made = graph([node("Tile", "x many", "t"), node("Neg", "t", "y")], {"x": ["n"]}, {"many": np.array([1000])})
    with pf.Worker(pf.load(made), pf.BackendType.CPU) as worker:
        for size in range(5, 40):
            made = worker.schedule(np.ones(size, np.float32)).peek_output()
            assert made.download_to_array().shape == (1000 * size,)
            trace(worker)
        for size in (1000, 10**7):
            with pytest.raises((pf.InputError, pf.InferenceError), match=r"would take|too large"):
                worker.schedule(np.ones(size, np.float32))
        made = worker.schedule(np.ones(50, np.float32)).peek_output()
        assert made.download_to_array().shape == (50000,)


def test_the_limit_is_half_of_the_memory_or_the_configured_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFRAME_MAX_TENSOR_BYTES", raising=False)
    assert 1 << 28 < checks.most_bytes() == checks.machine_bytes() // 2
    monkeypatch.setenv("PERFRAME_MAX_TENSOR_BYTES", "4096")
    assert checks.most_bytes() == 4096
    assert not checks.too_large((1024,), pf.DataType.FLOAT32)
    assert "(1025) would take 4100 bytes" in checks.too_large((1025,), pf.DataType.FLOAT32)


@pytest.mark.parametrize("value", ["0", "-1", "1e9", "much"])
def test_nonsense_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_MAX_TENSOR_BYTES", value)
    with pytest.raises(pf.InputError, match="PERFRAME_MAX_TENSOR_BYTES is a number of bytes"):
        checks.most_bytes()


@pytest.mark.parametrize(("value", "wanted"), [("", False), ("0", False), ("1", True)])
def test_checks_are_asked_for(value: str, wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_CHECK", value)
    assert checks.enabled() is wanted
