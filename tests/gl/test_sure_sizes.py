"""Variants of kernels that need sizes which are the same in all runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import perframe as pf
from gl.graphs import graph
from perframe.backends.gl.compile.program import load_kernel
from perframe.backends.gl.lowering import steps


def random(*shape: int) -> Any:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def variants(monkeypatch: pytest.MonkeyPatch, kernel: str) -> list[str]:
    """The defines of a kernel's bindings, from now on: those that choose how operands are read."""
    found: list[str] = []
    bind = steps.Call.bind

    def noting(self: Any, name: str, *arguments: Any, **named: Any) -> Any:
        made = bind(self, name, *arguments, **named)
        if name == kernel:
            found.append(next((one for one in ("ELEMENTS", "STRIDED", "WHOLE", "ROWS") if one in made.defines), ""))
        return made

    monkeypatch.setattr(steps.Call, "bind", noting)
    return found


@pytest.mark.parametrize(
    ("x", "y", "shapes", "variant"),
    [
        ((2, 3, 5), (2, 3, 5), (), ""),
        (("n", 3, "m"), ("n", 3, "m"), ((2, 3, 5), (1, 3, 1), (4, 3, 8)), ""),
        ((2, 3, 8), (3, 1), (), "STRIDED"),
        ((2, 6, 7, 4), (6, 1, 1), (), "STRIDED"),
        ((2, 3, 5), (3, 1), (), "ELEMENTS"),
        (("n", "m", 8), (8,), ((2, 3, 8), (1, 1, 8), (5, 1, 8)), "STRIDED"),
        (("n", 3, "m"), (3, 1), ((2, 3, 8), (1, 3, 1), (2, 3, 5)), "ELEMENTS"),
        (("n", 3, "m"), (1, 1, 1), ((2, 3, 8), (1, 3, 1), (2, 3, 5)), ""),
    ],
)
def test_elementwise_layers_read_texels_where_sizes_are_sure(
    x: Sequence[Any],
    y: Sequence[Any],
    shapes: Sequence[Any],
    variant: str,
    where: str,
    gl_context: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = graph([("Sub", ["x", "s"], ["y"])], {"x": x, "s": y}, optimize=False)
    found = variants(monkeypatch, "elementwise")
    with pf.Worker(model, where, gl_context, strict=True) as worker:
        for shape in shapes or (x,):
            a, b = random(*shape), random(*(shape if tuple(x) == tuple(y) else y))
            assert (worker.schedule({"x": a, "s": b}).peek_output().numpy() == a - b).all()
    assert found and set(found) == {variant}


@pytest.mark.parametrize(
    ("x", "perm", "cut", "shapes", "variant"),
    [
        ((3, 5, 2, 8), (0, 2, 1, 3), (1, 0), (), "WHOLE"),
        (("n", "m", 2, 8), (1, 0, 2, 3), (1, 0), ((3, 5, 2, 8), (2, 1, 2, 8)), "WHOLE"),
        ((3, 8, 5), (0, 2, 1), (1, 0), (), "ROWS"),
        ((3, 5, 8), (1, 0, 2), (0, 3), (), "ROWS"),
        ((3, 5, 7), (1, 0, 2), (1, 0), (), ""),
        ((3, 5, "k"), (1, 0, 2), (1, 0), ((3, 5, 8), (3, 5, 7)), ""),
    ],
)
def test_moves_take_texels_where_sizes_are_sure(
    x: Sequence[Any],
    perm: Sequence[int],
    cut: tuple[int, int],
    shapes: Sequence[Any],
    variant: str,
    where: str,
    gl_context: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`cut` has the elements to leave out at the begin of the first and the last dim; four at the end of the last."""
    first, last = cut
    constants = {"from": np.array([first, last]), "to": np.array([9999, 9999 if not last else last + 4])}
    axes = {"axes": np.array([0, len(perm) - 1])}
    nodes = [("Slice", ["x", "from", "to", "axes"], ["a"]), ("Transpose", ["a"], ["y"], {"perm": list(perm)})]
    model = graph(nodes, {"x": x}, constants={**constants, **axes}, optimize=False)
    found = variants(monkeypatch, "move")
    with pf.Worker(model, where, gl_context, strict=True) as worker:
        for shape in shapes or (x,):
            a = random(*shape)
            wanted = a[first:, ..., last : last + 4 if last else None].transpose(perm)
            assert (worker.schedule(a).peek_output().numpy() == wanted).all()
    assert variant in found and (variant or set(found) == {""})


@pytest.mark.parametrize("kernel", ["elementwise", "move"])
def test_variants_for_sure_sizes_read_no_single_elements(kernel: str) -> None:
    loaded = load_kernel(kernel)
    sure, other = ((), ("ELEMENTS",)) if kernel == "elementwise" else (("WHOLE",), ())
    name = next(iter(loaded.inputs))
    assert loaded.reads(name, sure) == (False, True) and loaded.reads(name, other)[0]
