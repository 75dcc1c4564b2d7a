"""PyTorch's tensors and ours over one memory, and as inputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import perframe as pf
from garbage import collect_garbage

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]


def memory_of(tensor: pf.Tensor) -> int:
    storage: Any = tensor.data_on_backend
    return int(storage.address)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_both_ways_without_a_copy(dtype: torch.dtype) -> None:
    given = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(dtype)
    tensor = pf.Tensor.from_dlpack(given, copy=False)
    assert memory_of(tensor) == given.data_ptr() and str(dtype) == f"torch.{tensor.dtype}"
    back = torch.from_dlpack(tensor)
    assert back.data_ptr() == given.data_ptr() and back.dtype is dtype
    given[0, 0] = 0
    assert torch.equal(back, given)
    assert tensor.numpy()[0, 0] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_copy(dtype: torch.dtype) -> None:
    tensor = pf.Tensor.from_dlpack(torch.ones(4, dtype=dtype))
    copy = torch.from_dlpack(tensor, copy=True)
    copy.zero_()
    assert (tensor.numpy() == 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_memory_outlives_its_owner(dtype: torch.dtype) -> None:
    tensor = pf.Tensor.from_dlpack(torch.arange(1000).to(dtype))
    collect_garbage()
    again = torch.from_dlpack(tensor)
    tensor.release()
    del tensor
    collect_garbage()
    assert torch.equal(again, torch.arange(1000).to(dtype))


def test_a_tensor_is_an_input() -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (2, "n"), "x")
    with pf.Worker(graph.compile(y=x + 1)) as worker:
        given = torch.arange(6.0).reshape(2, 3)
        for _ in range(2):
            np.testing.assert_array_equal(worker.schedule(given).peek_output().numpy(), given.numpy() + 1)
        np.testing.assert_array_equal(worker.schedule(given.T[:2]).peek_output().numpy(), given.T[:2].numpy() + 1)
        with pytest.raises(pf.InputError, match=r"input 'x' is not an array: .*Use tensor\.detach\(\)"):
            worker.schedule(torch.ones(2, 3, requires_grad=True))
        with pytest.raises(pf.InputError, match=r"from_dlpack takes its bfloat16 numbers"):
            worker.schedule(torch.ones(2, 3, dtype=torch.bfloat16))
        with pytest.raises(pf.InputError, match="float32, and got float64"):
            worker.schedule(torch.ones(2, 3, dtype=torch.float64))


def test_the_constructor_and_upload_copy() -> None:
    given = torch.arange(3.0)
    tensor = pf.Tensor(given)
    given.zero_()
    np.testing.assert_array_equal(tensor.numpy(), [0, 1, 2])
    tensor.upload(given)
    assert not tensor.numpy().any()


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: torch.ones(2, requires_grad=True), r"use tensor\.detach\(\)"),
        (lambda: torch.ones(2).to_sparse(), "torch.strided"),
        (lambda: torch.ones(2, dtype=torch.complex64).conj(), "conjugate bit"),
        (lambda: torch.ones(2, device="meta"), "meta"),
    ],
)
def test_what_cannot_be_shared(make: Any, advice: str) -> None:
    with pytest.raises(pf.InputError, match=f"(?i){advice}"):
        pf.Tensor.from_dlpack(make())
    with pytest.raises(pf.InputError, match="is not an array in host memory"):
        pf.Tensor(make())


def test_a_strided_tensor_is_copied() -> None:
    given = torch.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(pf.Tensor.from_dlpack(given).numpy(), given.numpy())
    with pytest.raises(pf.InputError, match="row-major"):
        pf.Tensor.from_dlpack(given, copy=False)


def test_the_program_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "other-libraries.md").read_text(encoding="utf-8")
    program, shown = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", page, re.S | re.M)[0]
    exec(compile(program, "other-libraries.md", "exec"), {"__name__": "__main__"})
    assert "import torch" in program and capsys.readouterr().out == shown
