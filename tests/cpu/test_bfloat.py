"""activations="bfloat16" on the CPU: products round what they multiply, add up float32, and all else stays the same."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from perframe.backends import waiting_for_kernels
from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.lowering import bfloat_product
from perframe.testing import Draw
from small import load, node

KINDS = [*bfloat_product.instructions(), "bfloat_plain"]
draw = Draw(35)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each kind of tiles that this processor has; AMX takes no few rows."""
    kinds = tuple(dict.fromkeys((request.param, "bfloat_plain")))
    monkeypatch.setattr(bfloat_product, "instructions", lambda: kinds)
    return str(request.param)


def rounded(values: Any) -> Any:
    """The nearest bfloat16, in float64, by ml_dtypes."""
    return np.asarray(values, np.float32).astype(onnx.helper.tensor_dtype_to_np_dtype(16)).astype(np.float64)


def outputs_of(model: pf.Model, *inputs: Any, activations: str = "bfloat16") -> Any:
    with waiting_for_kernels(), pf.Worker(model, activations=activations) as worker:
        return worker.schedule(*inputs).peek_output().numpy()


def exact(op: str, x: Any, w: Any, **attributes: Any) -> Any:
    """The result in float64, by ONNX's definition, and the sum of the sizes of what it adds up."""
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(
            [node(op, "x w", "y", **attributes)],
            "exact",
            [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, None) for name in ("x", "w")],
            [onnx.ValueInfoProto(name="y")],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
    )
    session = onnx.reference.ReferenceEvaluator(proto)
    return session.run(None, {"x": x, "w": w})[0], session.run(None, {"x": np.abs(x), "w": np.abs(w)})[0]


CONVOLUTIONS: list[tuple[Sequence[int], Sequence[int], Mapping[str, Any]]] = [
    ((1, 32, 9, 11), (32, 32, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 17, 13, 7), (33, 17, 3, 3), {"pads": [0, 1, 2, 1]}),
    ((1, 64, 8, 8), (48, 64, 1, 1), {}),
    ((3, 16, 5, 5), (16, 16, 1, 1), {"strides": [2, 2]}),
    ((1, 3, 31, 29), (24, 3, 7, 7), {"strides": [2, 2], "pads": [3, 3, 3, 3]}),
    ((1, 64, 6, 7), (40, 32, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    ((1, 20, 16, 15), (19, 20, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    ((1, 32, 3, 3), (16, 32, 3, 3), {"pads": [2, 2, 2, 2]}),
    ((2, 24, 20, 33), (40, 24, 3, 3), {"pads": [1, 2, 0, 1]}),
    ((1, 64, 12, 40), (16, 64, 5, 3), {"dilations": [2, 1], "pads": [4, 1, 4, 1]}),
    ((1, 128, 8, 64), (64, 64, 3, 3), {"group": 2}),
    ((1, 600, 4, 4), (37, 600, 3, 3), {"pads": [1, 1, 1, 1]}),
]


@pytest.mark.parametrize(("size", "weights", "attributes"), CONVOLUTIONS)
def test_convolutions(kind: str, size: Sequence[int], weights: Sequence[int], attributes: Mapping[str, Any]) -> None:
    x, w, b = draw(*size), draw(*weights), draw(weights[0])
    model = load(
        [node("Conv", "x w b", "c", **attributes), node("Relu", "c", "r"), node("Sigmoid", "r", "y")],
        {"x": size},
        constants={"w": w, "b": b},
    )
    sums, sizes = exact("Conv", rounded(x), rounded(w), **attributes)
    before = np.maximum(sums + b.reshape(-1, 1, 1), 0)
    found = outputs_of(model, x)
    assert np.abs(found - 1 / (1 + np.exp(-before))).max() <= 1e-6 * sizes.max() + 1e-6
    assert not np.array_equal(found, outputs_of(model, x, activations="float32")), "nothing was rounded"


@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(1, 512, 40), (3, 130, 33), (5, 17, 16), (37, 64, 100), (300, 333, 65)]
)
def test_products(kind: str, rows: int, depth: int, columns: int) -> None:
    x, w, b = draw(rows, depth), draw(depth, columns), draw(columns)
    model = load(
        [node("MatMul", "x w", "p"), node("Add", "p b", "y")], {"x": (rows, depth)}, constants={"w": w, "b": b}
    )
    sums, sizes = exact("MatMul", rounded(x), rounded(w))
    found = outputs_of(model, x)
    assert np.abs(found - (sums + b)).max() <= 1e-6 * sizes.max()
    assert not np.array_equal(found, outputs_of(model, x, activations="float32")), "nothing was rounded"


def test_batches_of_matrices(kind: str) -> None:
    x, w = draw(2, 3, 7, 32), draw(3, 32, 24)
    model = load([node("MatMul", "x w", "y")], {"x": x.shape}, constants={"w": w})
    sums, sizes = exact("MatMul", rounded(x), rounded(w))
    assert np.abs(outputs_of(model, x) - sums).max() <= 1e-6 * sizes.max()


def test_addends_and_parts_of_a_concat(kind: str) -> None:
    """A residual, whose result is the first part of a Concat with gaps between its rows, which a convolution reads."""
    x, w, v = draw(1, 32, 10, 9), draw(32, 32, 3, 3) / 17, draw(16, 48, 1, 1) / 7
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Add", "c x", "a"),
        node("Relu", "a", "r"),
        node("MaxPool", "half", "m", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Concat", "r m", "j", axis=1),
        node("Conv", "j v", "y"),
        node("Slice", "r first last axis", "half"),
    ]
    nodes.insert(3, nodes.pop())
    ends = {"first": [0], "last": [16], "axis": [1]}
    constants = {"w": w, "v": v} | {name: np.array(value, np.int64) for name, value in ends.items()}
    model = load(nodes, {"x": x.shape}, constants=constants)
    whole = outputs_of(model, x, activations="float32")
    assert np.abs(outputs_of(model, x) - whole).max() <= 0.02 * np.abs(whole).max()


@pytest.mark.parametrize("channels", [17, 32])
def test_nan_and_infinities_reach_their_sums_alone(kind: str, channels: int) -> None:
    """What lies behind a row or beside the picture meets weights of zero, and must not be NaN."""
    x, w = draw(1, channels, 6, 6), draw(16, channels, 3, 3)
    x[0, 3, 0, 0], x[0, 5, 5, 5], x[0, channels - 1, 2, 5] = np.nan, np.inf, -np.inf
    model = load([node("Conv", "x w", "y", pads=[1, 1, 1, 1])], {"x": x.shape}, constants={"w": w})
    found = outputs_of(model, x)
    with np.errstate(invalid="ignore"):
        wanted, _ = exact("Conv", rounded(x), rounded(w), pads=[1, 1, 1, 1])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(found[np.isinf(wanted)], wanted[np.isinf(wanted)])


def test_numbers_are_rounded_to_the_nearest(kind: str) -> None:
    """Ties go to even, NaN stays NaN, and what is beyond the largest bfloat16 becomes infinite."""
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0x7F800001, 0xFFC00000, 0x80000000], np.uint32)
    x = np.concatenate([bits, draw(9).view(np.uint32)]).view(np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal((bfloat_product.rounded(x).astype(np.uint32) << 16).view(np.float32), rounded(x))
    model = load([node("MatMul", "x w", "y")], {"x": (16, 16)}, constants={"w": np.eye(16, dtype=np.float32)})
    found = outputs_of(model, np.diag(x[:4].tolist() + x[6:].tolist() + [0, 0]).astype(np.float32))
    wanted = rounded(np.array(x[:4].tolist() + x[6:].tolist(), np.float32))
    np.testing.assert_array_equal(np.diagonal(found)[:3], wanted[:3])
    np.testing.assert_array_equal(np.diagonal(found)[4:14], wanted[4:14])


def test_other_sizes_follow(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates of rounded products serve rounded workers, and float32 ones beside them have their own. No other size
    needs another kernel.
    """
    requested, first, kernel = list[tuple[str, str]](), set[tuple[str, str]](), jit.kernel

    def noting(name: str, text: str = "") -> int:
        if name.startswith("bfloat"):
            requested.append((name, text))
        return kernel(name, text)

    monkeypatch.setattr(jit, "kernel", noting)
    w = draw(32, 16, 3, 3)
    model = load([node("Conv", "x w", "y", pads=[1, 1, 1, 1])], {"x": ("n", 16, "h", "w")}, constants={"w": w})
    with waiting_for_kernels(), pf.Worker(model, activations="bfloat16") as short, pf.Worker(model) as whole:
        for size in [(1, 9, 9), (2, 18, 7), (1, 3, 40), (3, 9, 9), (1, 1, 1), (2, 31, 17)] * 2:
            x = draw(size[0], 16, *size[1:])
            for worker, kept in ((short, rounded), (whole, np.float64)):
                sums, sizes = exact("Conv", kept(x), kept(w), pads=[1, 1, 1, 1])
                found = worker.schedule(x).peek_output().numpy()
                assert np.abs(found - sums).max() <= 5e-6 * sizes.max(), (size, kept)
            first = first or set(requested)
            assert set(requested) == first, f"another kernel for {size}"


def test_weights_take_half(kind: str) -> None:
    w = draw(512, 512)
    model = load([node("MatMul", "x w", "y")], {"x": (8, 512)}, constants={"w": w})
    sizes = []
    for activations in ("float32", "bfloat16"):
        with waiting_for_kernels(), pf.Worker(model, activations=activations) as worker:
            worker.schedule(draw(8, 512)).peek_output()
            sizes.append(sum(one.packed for one in worker.memory_use))
    assert sizes[1] == sizes[0] - w.nbytes // 2


def test_compare_measures_the_rounding(kind: str) -> None:
    x, w = draw(1, 16, 8, 8), draw(16, 16, 3, 3) / 12
    model = load([node("Conv", "x w", "c"), node("Relu", "c", "y")], {"x": x.shape}, constants={"w": w})
    (found,) = [one for one in pf.compare(model, {"x": x}, activations="bfloat16") if one.output == "y"]
    assert found.agrees
    assert 1e-4 < found.relative < 2e-2


# --- what it refuses ---


def test_processors_without_it_say_so(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat_product, "instructions", tuple)
    x, w = draw(4, 64), draw(64, 64)
    model = load([node("MatMul", "x w", "y")], {"x": x.shape}, constants={"w": w})
    with caplog.at_level(logging.WARNING, "perframe"):
        found = outputs_of(model, x)
    assert "changes nothing on this processor" in caplog.text
    np.testing.assert_array_equal(found, outputs_of(model, x, activations="float32"))


def test_it_is_for_activations_on_the_cpu(gl_context: Any) -> None:
    model = load([node("Relu", "x", "y")], {"x": (2,)})
    with pytest.raises(pf.InputError, match=r"gpu_pixel keeps .*'bfloat16' is for backend='cpu'"):
        pf.Worker(model, "gpu_pixel", gl_context, activations="bfloat16")
    with pytest.raises(pf.InputError, match=r"weights='bfloat16' is neither 'float32' nor 'float16'"):
        pf.Worker(model, weights="bfloat16")
    with pytest.raises(pf.InputError, match=r"round products by activations='bfloat16'"):
        pf.Worker(model, activations="float16")
