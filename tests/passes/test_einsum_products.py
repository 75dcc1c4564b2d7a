from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from passes.graphs import apply, check_numbers_stay, graph, node, ops, prepared, random

FIRES = [
    ("ij,jk->ik", (3, 5), (5, 7), ["MatMul"]),
    ("ij,kj->ik", (3, 5), (7, 5), ["Transpose", "MatMul"]),
    ("ij,kj->ki", (3, 5), (7, 5), ["Transpose", "MatMul"]),
    ("ibh,hnd->ibnd", (3, 2, 5), (5, 7, 4), ["Reshape", "MatMul", "Reshape"]),
    ("ibnd,hnd->ibh", (3, 2, 7, 4), (5, 7, 4), ["Reshape", "Transpose", "Reshape", "MatMul"]),
    ("ibnd,jbnd->bnij", (3, 2, 4, 5), (6, 2, 4, 5), ["Transpose", "Transpose", "MatMul"]),
    ("bnij,jbnd->ibnd", (2, 4, 3, 6), (6, 2, 4, 5), ["Transpose", "MatMul", "Transpose"]),
    ("bhlk,bhtk->bhlt", (2, 3, 4, 5), (2, 3, 6, 5), ["Transpose", "MatMul"]),
    ("bhlk,bhtk->bhlt", (1, 3, 4, 5), (2, 1, 6, 5), ["Transpose", "MatMul"]),
    ("bqc, bchw -> bqhw", (2, 3, 4), (2, 4, 5, 6), ["Reshape", "MatMul", "Reshape"]),
    ("bchw,bkhw->bck", (2, 3, 4, 5), (2, 6, 4, 5), ["Reshape", "Transpose", "Reshape", "MatMul"]),
    ("...pd,...qd->...pq", (2, 3, 5), (2, 4, 5), ["Transpose", "MatMul"]),
    ("i,i", (7,), (7,), ["Reshape", "MatMul", "Reshape"]),
    ("i,ij->j", (3,), (3, 5), ["MatMul"]),
    ("ij,j->i", (3, 5), (5,), ["Transpose", "MatMul"]),
    ("bi,bij->bj", (2, 3), (2, 3, 5), ["Reshape", "MatMul", "Reshape"]),
    ("bnqd,bmkd->bnmqk", (2, 3, 4, 5), (2, 2, 3, 5), None),
    ("ij,jk->ik", (0, 5), (5, 3), ["MatMul"]),
    ("ij,jk->ik", (3, 0), (0, 4), ["MatMul"]),
    ("bij,bjkl->bikl", (2, 0, 3), (2, 3, 4, 5), ["Reshape", "MatMul", "Reshape"]),
]


def einsum(equation: str, *shapes: Any, dtype: str = "float32") -> Any:
    names = "abc"[: len(shapes)]
    return graph(
        [node("Einsum", " ".join(names), "y", equation=equation)], dict(zip(names, shapes, strict=True)), dtype=dtype
    )


@pytest.mark.parametrize(("equation", "first", "second", "made"), FIRES, ids=str)
def test_it_fires(equation: str, first: Any, second: Any, made: list[str] | None) -> None:
    model, changed = apply("einsum_products", einsum(equation, first, second))
    found = ops(model)
    assert changed == 1 and "Einsum" not in found and (made is None or found == made)
    fed = {"a": random(*first), "b": random(*second, seed=1)}
    (y,) = pf.run(model, fed).values()
    np.testing.assert_allclose(y, np.einsum(equation, *fed.values()), 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->ji", [(3, 5)]),
        ("ij,jk,kl->il", [(3, 5), (5, 2), (2, 4)]),
        ("iij,jk->ik", [(3, 3, 5), (5, 2)]),  # a diagonal
        ("ij,jk->k", [(3, 5), (5, 2)]),  # a sum over one operand
        ("i,j->ij", [(3,), (5,)]),  # no sum
        ("ij,jk->ik", [(3, 1), (5, 2)]),  # a size of 1 that repeats
        ("ij,jk->ik", [(3, "n"), ("m", 2)]),  # sizes that may differ
        ("abh,hnd->abnd", [("a", "b", 5), (5, "n", 4)]),  # columns of an unknown size
        ("bijh,bhd->bijd", [(2, "i", "j", 5), (2, 5, 4)]),  # rows of unknown sizes
        ("bijh,bhd->bijd", [(2, 3, 4, 5), (2, 5, "d")]),  # a size that would be behind them
    ],
)
def test_it_does_not_fire(equation: str, shapes: Any) -> None:
    assert apply("einsum_products", einsum(equation, *shapes))[1] == 0


def test_it_leaves_whole_numbers_alone() -> None:
    assert apply("einsum_products", einsum("ij,jk->ik", (3, 5), (5, 7), dtype="int64"))[1] == 0


def test_open_dims_stay_open() -> None:
    model = prepared(einsum("ibnd,jbnd->bnij", ("i", "b", 4, 5), ("j", "b", 4, 5)))
    assert "Einsum" not in ops(model)
    for rows, columns, batch in ((3, 6, 2), (1, 1, 1), (0, 3, 2)):
        fed = {"a": random(rows, batch, 4, 5), "b": random(columns, batch, 4, 5, seed=1)}
        (y,) = pf.run(model, fed).values()
        np.testing.assert_allclose(y, np.einsum("ibnd,jbnd->bnij", *fed.values()), 1e-4, 1e-5)


def test_constant_weights_are_turned_once() -> None:
    model = graph([node("Einsum", "x w", "y", equation="ibnd,hnd->ibh")], {"x": ["i", 2, 7, 4]}, {"w": random(5, 7, 4)})
    assert ops(prepared(model)) == ["Reshape", "MatMul"]


def test_the_numbers_stay(backend: str, backend_context: Any) -> None:
    model = graph(
        [
            node("Einsum", "x q", "a", equation="ibh,hnd->ibnd"),
            node("Einsum", "x k", "c", equation="jbh,hnd->jbnd"),
            node("Einsum", "a c", "scores", equation="ibnd,jbnd->bnij"),
            node("Softmax", "scores", "share", axis=-1),
            node("Einsum", "share c", "seen", equation="bnij,jbnd->ibnd"),
            node("Einsum", "seen q", "z", equation="ibnd,hnd->ibh"),
            node("Relu", "z", "y"),
        ],
        {"x": ["length", "batch", 8]},
        {"q": random(8, 2, 3, seed=1), "k": random(8, 2, 3, seed=2)},
    )
    check_numbers_stay(model, {"x": random(5, 3, 8)}, backend, backend_context, 1e-4)
