"""Padding by every mode, and cutting by negative pads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check, ints

draw = Draw(5)


def pad(
    name: str,
    shape: tuple[int, ...],
    pads: list[int],
    mode: str = "constant",
    *more: Any,
    dtype: Any = np.float32,
    gl: bool = True,
) -> Case:
    x = draw(*shape, high=9, dtype=dtype)
    reference = "onnxruntime" if min(pads) < 0 else "onnx"  # ONNX's takes no negative pads
    return Case(f"{mode} {name}", "Pad", [x, ints(*pads), *more], {"mode": mode}, reference=reference, gl=gl)


CASES = [
    pad("one dim", (5,), [2, 3]),
    pad("two dims", (3, 5), [0, 1, 2, 3]),
    pad("four dims", (2, 3, 5, 7), [0, 0, 1, 2, 0, 0, 3, 1]),
    pad("channels", (2, 3, 5, 7), [0, 1, 0, 0, 0, 2, 0, 0]),
    pad("five dims", (2, 1, 3, 2, 4), [1, 0, 0, 2, 1, 0, 1, 2, 0, 1]),
    pad("a value", (3, 5), [1, 1, 1, 1], "constant", np.float32(-2.5)),
    pad("a value absent, axes", (3, 5), [1, 2], "constant", None, ints(1)),
    pad("negative axes", (3, 5, 2), [1, 2, 0, 1], "constant", np.float32(7), ints(-1, 0)),
    pad("cut", (6, 5), [-1, 2, -2, -1]),
    pad("cut more than it pads", (6, 5), [-4, 0, 1, 0]),
    pad("nothing", (3, 5), [0, 0, 0, 0]),
    pad("of nothing", (0, 3), [2, 1, 1, 0], "constant", np.float32(3)),
    pad("int64", (3, 4), [1, 0, 0, 2], "constant", np.int64(2**40), dtype=np.int64, gl=False),  # beyond int32
    pad("int32", (3, 4), [1, 0, 0, 2], "constant", np.int32(-7), dtype=np.int32),
    pad("uint8", (3, 4), [1, 0, 0, 2], "constant", np.uint8(200), dtype=np.uint8),
    pad("float64", (3, 4), [1, 0, 0, 2], "constant", np.float64(0.1), dtype=np.float64),
    pad("bool", (3, 4), [1, 0, 0, 2], "constant", np.bool_(True), dtype=bool),
    *(
        pad(name, shape, pads, mode)
        for mode in ("edge", "reflect", "wrap")
        for name, shape, pads in (
            ("one dim", (5,), [2, 3]),
            ("two dims", (3, 7), [0, 2, 2, 3]),
            ("four dims", (2, 3, 5, 7), [0, 0, 1, 2, 0, 0, 3, 1]),
            ("all it can", (4, 3), [3, 2, 3, 2]),
        )
    ),
    pad("more than there is", (3,), [7, 8], "wrap"),
    pad("more than there is", (3,), [5, 7], "edge"),
    pad("int32", (3, 5), [1, 2, 1, 1], "reflect", dtype=np.int32),
    Case("pads given at run time", "Pad", [draw(3, 5), ints(1, 0, 0, 2)], constants=()),
    Case("pads and value given at run time", "Pad", [draw(3, 5), ints(1, 0, 0, 2), np.float32(4)], constants=()),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pad(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
