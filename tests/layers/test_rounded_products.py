"""Products whose file lets the left operand be rounded to 8 bits: the CPU does that, block by block, as onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

import perframe as pf
from layers.test_packed import CASES, ROWS, matmul_n_bits
from passes.graphs import ops, prepared
from perframe.backends.cpu.families import packed as family
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.processor import has

random = np.random.default_rng(6)
PAIRS = LANES > 4 and has("avx512bw" if LANES == 16 else "avx2")
KINDS = ["best", pytest.param("pairs", marks=pytest.mark.skipif(not PAIRS, reason="the CPU multiplies no such pairs"))]


def rounded(x: Any, block: int) -> Any:
    """Each block of the last axis in steps of a 127th of its largest element."""
    made = np.zeros_like(x)
    for begin in range(0, x.shape[-1], block):
        part = x[..., begin : begin + block]
        most = np.abs(part).max(-1, keepdims=True)
        codes = np.rint(part * np.where(most > 0, np.float32(127) / np.where(most > 0, most, 1), 0).astype(np.float32))
        made[..., begin : begin + block] = codes * (most / 127)
    return made


def allows(kind: str, bits: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the CPU rounds, with instructions of this kind."""
    if kind == "pairs":
        monkeypatch.setattr(family, "instructions", lambda: ("plain",))
        return bits < 8
    return "vnni" in family.instructions() or (PAIRS and bits < 8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_rows_are_rounded_in_blocks(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    depth, _, block, bits, *_ = (*CASES[name], 4)[:4]
    exact, rough = (pf.load(matmul_n_bits(*CASES[name], accuracy=level)) for level in (0, 4))
    does = allows(kind, bits, monkeypatch)
    with pf.Worker(exact) as one, pf.Worker(rough) as other:
        for dims in ROWS:
            x = random.standard_normal((*dims, depth)).astype(np.float32)
            expected = one.schedule(rounded(x, min(block, depth)) if does else x).peek_output().numpy()
            found = other.schedule(x).peek_output().numpy()
            loose = 2e-5 * np.abs(expected).max(initial=1)
            np.testing.assert_allclose(found, expected, 1e-4, loose, err_msg=str(dims))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("rows", [1, 4, 19])
def test_onnxruntime_rounds_alike(bits: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = matmul_n_bits(128, 48, 32, bits, True, False, accuracy=4)
    if not allows("best", bits, monkeypatch):
        pytest.skip("the CPU does not round")
    x = random.standard_normal((rows, 128)).astype(np.float32)
    wanted = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]
    with pf.Worker(pf.load(proto)) as worker:
        found = worker.schedule(x).peek_output().numpy()
    np.testing.assert_allclose(found, wanted, 1e-4, 2e-5 * np.abs(wanted).max())


def test_zeros_infinities_and_nan() -> None:
    """A block with one of these makes the row NaN; other rows stay."""
    x = np.zeros((4, 64), np.float32)
    x[1, 3], x[2, 40], x[3] = np.inf, np.nan, 1e-38
    with pf.Worker(pf.load(matmul_n_bits(64, 20, 32, accuracy=4))) as worker:
        found = worker.schedule(x).peek_output().numpy()
    assert not found[0].any()
    assert not np.isfinite(found[1]).any() and np.isnan(found[2]).all()
    assert np.abs(found[3]).max() < 1e-35


def test_other_backends_and_files_keep_floats(backend: str, backend_context: Any, tmp_path: Any) -> None:
    """The permission is no part of the product: GPUs compute in floats, and ONNX's MatMul has no such attribute."""
    model = pf.load(matmul_n_bits(96, 40, 32, accuracy=4))
    assert "PackedMatMul" in ops(prepared(matmul_n_bits(96, 40, 32, accuracy=4), backend))
    x = random.standard_normal((2, 96)).astype(np.float32)
    exact = pf.run(matmul_n_bits(96, 40, 32), {"x": x})["y"]
    loose = 2e-2 if backend == "cpu" else 1e-4
    found = pf.run(model, {"x": x}, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_allclose(found, exact, loose, loose * np.abs(exact).max())
    for name in ("again.onnx", "again.perframe"):
        pf.save(model, tmp_path / name)
        again = pf.run(tmp_path / name, {"x": x})["y"]
        np.testing.assert_allclose(again, exact, 2e-2, 2e-2 * np.abs(exact).max())
