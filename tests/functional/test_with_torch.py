"""Every function gives PyTorch's values and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from functional.calling import flat, mapped, run
from functional.cases import CASES, Case


def expected(name: str, case: Case) -> list[Any]:
    """PyTorch's results."""
    args = [mapped(value, lambda array: torch.from_numpy(np.array(array))) for value in case.args]
    named = {key: mapped(value, lambda array: torch.from_numpy(np.array(array))) for key, value in case.named.items()}
    if case.reference is not None:
        made = case.reference(torch, *args, **named)
    else:
        homes = (torch.nn.functional, torch, torch.Tensor)
        call = next(getattr(home, name) for home in homes if hasattr(home, name))
        made = call(*args, **named)
    return [value.numpy() for value in flat(made)]


def compare(got: Any, want: Any, case: Case, what: str) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, what)
        return
    finite = np.abs(want[np.isfinite(want)])
    np.testing.assert_allclose(got, want, 1e-6, case.tolerance * max(1.0, finite.max(initial=0)), err_msg=what)


@pytest.mark.parametrize("name", CASES)
def test_function_is_pytorchs(name: str) -> None:
    cases = CASES[name]
    for index, (got, case) in enumerate(zip(run([(name, case) for case in cases], "cpu"), cases, strict=True)):
        want = expected(name, case)
        assert len(got) == len(want), f"{name}, call {index}"
        for one, other in zip(got, want, strict=True):
            compare(one, other, case, f"{name}, call {index}: {case.args!r:.300}")
