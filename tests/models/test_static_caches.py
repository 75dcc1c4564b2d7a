"""PyTorch's exports of caches of a fixed size: a run writes only the rows that it replaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import perframe as pf

RNG = np.random.default_rng(5)


class Cached(torch.nn.Module):
    """Attention over a cache, of which `replace` replaces rows."""

    def __init__(self, replace: Any) -> None:
        super().__init__()
        self.keys, self.replace = torch.nn.Linear(16, 16), replace

    def forward(self, x: Any, past: Any, at: Any) -> tuple[Any, Any]:
        rows = self.keys(x).view(1, -1, 2, 8).transpose(1, 2)
        cache = self.replace(past, at, rows)
        return (rows @ cache.transpose(2, 3)).softmax(-1) @ cache, cache


def put(cache: Any, at: Any, rows: Any) -> Any:
    made = cache.clone()
    made[:, :, at] = rows
    return made


def copied(cache: Any, at: Any, rows: Any) -> Any:
    return cache.index_copy(2, at, rows)


@pytest.mark.parametrize(("replace", "dynamo"), [(put, True), (copied, True), (put, False)])
def test_rows_are_replaced_in_place(replace: Any, dynamo: bool, backend: str, tmp_path: Path) -> None:
    module, file = Cached(replace), tmp_path / "cached.onnx"
    names = {"input_names": ["x", "past", "at"], "output_names": ["y", "present"]}
    example = torch.zeros(1, 1, 16), torch.zeros(1, 2, 32, 8), torch.tensor([3])
    torch.onnx.export(module, example, file, dynamo=dynamo, verbose=False, **names)  # type: ignore[arg-type]
    past = torch.zeros(1, 2, 32, 8)
    with pf.Worker(file, backend, carry={"present": "past"}) as worker:  # type: ignore[arg-type]
        for run in range(40):
            x, at = RNG.standard_normal((1, 1, 16)).astype(np.float32), np.array([run % 32])
            with torch.no_grad():
                y, past = module(torch.from_numpy(x), past, torch.from_numpy(at))
            worker.schedule(x=x, at=at)
            np.testing.assert_allclose(worker.peek_output("y").numpy(), y.numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(worker.state().numpy(), past.numpy(), rtol=1e-4, atol=1e-5)
        (part,) = worker.parts.planned_parts()
        assert part.latest_plan is not None and part.latest_plan.replaced
