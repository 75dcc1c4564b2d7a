"""A tensor under a newcomer's hands: numpy(), len, indexing, loops, operators, and what a notebook shows."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.host.surface import BlankSurface
from small import load, node

ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_numpy_len_indexing_and_loops() -> None:
    tensor = pf.Tensor(ROWS)
    assert (tensor.numpy() == ROWS).all() and tensor.numpy() is not tensor.numpy()
    assert len(tensor) == tensor.ndim == 2 and tensor[1, 2] == 5 and (tensor[:, 1] == [1, 4]).all()
    assert [row.tolist() for row in tensor] == ROWS.tolist()
    with pytest.raises(TypeError, match="no dims"):
        len(pf.Tensor(np.float32(3)))
    with pytest.raises(IndexError):
        tensor[2]


def test_a_tensor_on_a_gpu_says_what_to_call(gl_context: Any) -> None:
    with pf.Worker(load([node("Neg", "x", "y")], {"x": [2, 3]}), "gpu_pixel", gl_context) as worker:
        y = worker.schedule(ROWS).peek_output()
        assert len(y) == 2 and (y.numpy() == -ROWS).all()
        for access in (lambda: y[0], lambda: list(y), lambda: np.asarray(y), lambda: bool(y)):
            with pytest.raises(pf.InputError, match=r"numpy\(\)"):
                access()
        assert "img" in pf.Tensor(np.zeros((8, 8), np.uint8))._repr_html_()
        assert "min -5" in y._repr_html_() or "[" in y._repr_html_()


@pytest.mark.parametrize(
    "of", [operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul, operator.lt]
)
@pytest.mark.parametrize("other", [2, 2.5, ROWS, [1, 2, 3], pf.Tensor(ROWS)], ids=type)
def test_operators_say_what_to_call(of: Any, other: Any) -> None:
    with pytest.raises(pf.InputError, match=r"tensor\.numpy\(\).*pf\.functional"):
        of(pf.Tensor(ROWS), other)
    if isinstance(other, (int, float, list)):
        with pytest.raises(pf.InputError, match="functional"):
            of(other, pf.Tensor(ROWS))


def test_functional_tensors_take_over() -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (2, 3), "x")
    model = graph.compile(a=pf.Tensor(ROWS) + x, b=x * pf.Tensor(ROWS))
    found = pf.run(model, np.ones((2, 3), np.float32))
    assert (found["a"] == ROWS + 1).all() and (found["b"] == ROWS).all()


@pytest.mark.parametrize(
    ("values", "shows"),
    [
        (np.random.default_rng(0).random((1, 3, 16, 24), np.float32), r"<img width=\"96\" height=\"64\".*image/png"),
        (np.zeros((16, 24, 4), np.uint8).transpose(2, 0, 1), "<img"),
        (np.random.default_rng(0).standard_normal((100, 3)).astype(np.float32), "<svg.*mean"),
        (np.full((20,), np.nan, np.float32), "no finite value"),
        (np.array([1, np.inf, *range(30)], np.float32), "1 values are NaN or infinite"),
        (np.array([1, 2], np.int64), r"\[1 2\]"),
        (np.array(["<b>", "c"]), "object"),
        (np.zeros((0, 3), np.float32), r"\(0, 3\)"),
    ],
    ids=["picture", "bytes", "histogram", "NaN", "infinite", "few", "texts", "empty"],
)
def test_a_notebook_shows_a_picture_or_a_histogram(values: Any, shows: str) -> None:
    assert re.search(shows, pf.Tensor(values)._repr_html_(), re.S)


def test_a_released_tensor_still_shows_its_shape() -> None:
    tensor = pf.Tensor(ROWS)
    tensor.release()
    assert "(2, 3)" in tensor._repr_html_()


def test_models_reports_profiles_and_failures_show_themselves() -> None:
    model = load([node("Neg", "x", "<y>")], {"x": [2, 3]}, outputs="<y>")
    page = model._repr_html_()
    assert page is not None and page.startswith("<iframe") and "sandbox" in page
    with pf.profile() as profile, pf.Worker(model) as worker:
        worker.schedule(ROWS).peek_output().numpy()
        report = worker.report()
        assert isinstance(report, list) and "operator" in repr(report) and "2×3" in repr(report)
        assert report._repr_html_().startswith("<pre") and "<y>" not in report._repr_html_()  # type: ignore[attr-defined]
    assert profile._repr_html_().startswith("<pre")
    app = pf.App(surface=BlankSurface((4, 4)))
    assert repr(app.failures) == "no failures" and app.failures._repr_html_().startswith("<pre")

    def fails() -> None:
        raise ValueError("<oops>")

    app.add(fails)
    app.loop_once()
    assert "ValueError: <oops>" in repr(app.failures) and "&lt;oops&gt;" in app.failures._repr_html_()
    assert len(app.failures) == 1
    app.release()


@pytest.mark.parametrize("convert", [bool, float, int, complex, round])
def test_a_tensor_of_one_value_is_a_number(convert: Any) -> None:
    assert convert(pf.Tensor(np.float32([[2.5]]))) == convert(2.5) and not convert(pf.Tensor(np.float32(0)))
    for several in (ROWS, np.zeros(0, np.float32)):
        with pytest.raises(pf.InputError, match=rf"{convert.__name__}\(Tensor.* one value.*numpy\(\)"):
            convert(pf.Tensor(several))


def test_a_released_tensor_says_so() -> None:
    tensor = pf.Tensor(ROWS)
    tensor.release()
    assert repr(tensor) == "Tensor(float32 (2, 3) released)"
    with pytest.raises(pf.ClosedError, match=r"tensor \(2, 3\) was released: by you"):
        tensor.numpy()


def test_a_misspelled_name_of_the_package_is_told() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Workr': did you mean Worker\?$"):
        pf.Workr  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'zzzz'$"):
        pf.zzzz  # type: ignore[attr-defined]  # noqa: B018


def test_what_only_an_array_has_is_named() -> None:
    tensor = pf.Tensor(np.ones(1, np.float32))
    with pytest.raises(AttributeError, match=r"no attribute 'mean'.*\.numpy\(\)\.mean"):
        tensor.mean()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute 'mena'$"):
        tensor.mena()  # type: ignore[attr-defined]
    assert not hasattr(tensor, "__array_interface__")


@pytest.mark.parametrize("other", [0, 1.5, [1, 2], (1, 2), np.float32(1), ROWS], ids=type)
def test_a_comparison_with_values_says_what_to_call(other: Any) -> None:
    tensor = pf.Tensor(ROWS)
    for compare in (operator.eq, operator.ne):
        with pytest.raises(pf.InputError, match=r"no operator ==.*tensor\.numpy\(\)"):
            compare(tensor, other)
    assert tensor == tensor and tensor != pf.Tensor(ROWS) and tensor in [None, tensor] and {tensor: 1}[tensor] == 1


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<", "<=", ">", ">="])
def test_a_refused_operator_is_named_by_its_sign(sign: str) -> None:
    said = re.escape(f"has no operator {sign}: ")
    with pytest.raises(pf.InputError, match=said):
        eval(f"x {sign} 2", {"x": pf.Tensor(np.ones(2, np.float32))})


def test_a_readback_shows_itself() -> None:
    with pf.Worker("digits") as worker:
        readback = worker.schedule(np.zeros((1, 1, 28, 28), np.float32)).peek_output().readback_request()
        assert "probabilities, requested in frame" in repr(readback)
        readback.result(wait=True)
        assert repr(readback).endswith("arrived)")
